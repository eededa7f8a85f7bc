#include "runtime/plan/transfer_outline.h"

#include <map>
#include <set>
#include <string>
#include <utility>

#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

class OutlineBuilder {
 public:
  OutlineBuilder(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan), index_(index), program_(plan.programs(index)), problems_(problems) {}

  // None if a problem was found.
  std::optional<ProgramOutline> Build() {
    std::map<Key, int> rings;
    ProgramOutline outline;
    for (const plan::Buffer& buffer : program_.buffers()) {
      if (buffer.kind() != plan::TRANSFER) continue;
      if (rings.emplace(KeyOf(buffer), outline.copies.size()).second) {
        outline.copies.push_back(CopiesOf(buffer));
      }
    }
    // Others in the same memory are views.
    for (const plan::Buffer& buffer : program_.buffers()) {
      const auto found = rings.find(KeyOf(buffer));
      ring_of_.push_back(found == rings.end() ? -1 : found->second);
    }
    uses_.resize(outline.copies.size());
    for (int i = 0; i < program_.segments_size(); ++i) {
      outline.segments.push_back(OutlineOf(i));
    }
    return valid_ ? std::optional(std::move(outline)) : std::nullopt;
  }

 private:
  using Key = std::pair<std::vector<int64_t>, int64_t>;  // offsets of the copies, bytes of one
  struct Use {
    bool sent = false;
    bool received = false;
  };

  static Key KeyOf(const plan::Buffer& buffer) {
    std::vector<int64_t> offsets = {buffer.offset()};
    offsets.insert(offsets.end(), buffer.copy_offsets().begin(), buffer.copy_offsets().end());
    return {std::move(offsets), *CheckedBytes(buffer.local())};
  }

  template <typename... Parts>
  void Refuse(int segment, int instruction, const Parts&... parts) {
    problems_.Add(InstructionPath(plan_, index_, segment, instruction), parts...);
    valid_ = false;
  }

  std::string Name(int buffer) const { return BufferName(program_.buffers(buffer)); }

  SegmentOutline OutlineOf(int segment) {
    SegmentOutline outline;
    std::set<int> used, sent;
    for (int i = 0; i < program_.segments(segment).instructions_size(); ++i) {
      const plan::Instruction& instruction = program_.segments(segment).instructions(i);
      const Access access = AccessOf(instruction);
      // Its data may come at any time before.
      for (const int write : access.writes) {
        const int ring = ring_of_[write];
        if (ring >= 0 && sent.count(ring) > 0) {
          Refuse(segment, i, " writes ", Name(write), ", which is being sent");
        }
        if (ring >= 0 && instruction.has_receive() && used.count(ring) > 0) {
          Refuse(segment, i, " receives ", Name(write), ", which the segment has used before");
        }
      }
      for (const auto* accessed : {&access.reads, &access.writes}) {
        for (const int buffer : *accessed) {
          if (ring_of_[buffer] >= 0) used.insert(ring_of_[buffer]);
        }
      }
      if (instruction.has_send()) {
        const int buffer = instruction.send().buffer();
        sent.insert(ring_of_[buffer]);
        Mark(segment, i, buffer, &Use::sent);
        outline.transfers.push_back({true, i, instruction.send().channel(), ring_of_[buffer]});
      }
      if (instruction.has_receive()) {
        const int buffer = instruction.receive().buffer();
        Mark(segment, i, buffer, &Use::received);
        outline.transfers.push_back({false, i, instruction.receive().channel(), ring_of_[buffer]});
      }
    }
    outline.rings.assign(used.begin(), used.end());
    return outline;
  }

  // A rank gets ready to receive into a copy without a look at what it sends from there.
  void Mark(int segment, int instruction, int buffer, bool Use::*how) {
    Use& use = uses_[ring_of_[buffer]];
    use.*how = true;
    if (use.sent && use.received) {
      Refuse(segment, instruction, ": ", Name(buffer), " is both received and sent");
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  Problems& problems_;
  bool valid_ = true;
  std::vector<int> ring_of_;  // by buffer; -1: nothing that is transferred
  std::vector<Use> uses_;     // by ring
};

}  // namespace

std::optional<ProgramOutline> OutlineTransfers(const plan::Plan& plan, int program,
                                               Problems& problems) {
  return OutlineBuilder(plan, program, problems).Build();
}

}  // namespace oriel::runtime
