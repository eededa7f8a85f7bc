#include "runtime/plan/verify_overlaps.h"

#include <map>
#include <optional>

#include "runtime/plan/range_set.h"

namespace oriel::runtime {
namespace {

// Searches in what is on its way before the verifier calls it too much: some seconds.
constexpr int64_t kMaxSearches = 30'000'000;

class OverlapVerifier {
 public:
  OverlapVerifier(const plan::Plan& plan, int index, const Rings& rings,
                  const SegmentAccesses& accesses, Problems& problems)
      : plan_(plan),
        index_(index),
        program_(plan.programs(index)),
        rings_(rings),
        accesses_(accesses),
        problems_(problems) {}

  void Verify() {
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      for (const int64_t microbatch :
           rings_.MicrobatchesOf(program_.segments(segment).name(), accesses_[segment])) {
        microbatch_ = microbatch;
        for (size_t i = 0; i < accesses_[segment].size(); ++i) {
          VerifyInPlace(segment, static_cast<int>(i));
        }
        VerifyInFlight(segment);
      }
    }
  }

 private:
  std::string Name(int index) const { return BufferName(program_.buffers(index)); }
  Range RangeOf(int index) const { return rings_.Of(index).Copy(microbatch_); }

  // Peers, or this rank itself, may still read the operand while the result is written.
  bool MovesPieces(int segment, int index) const {
    const auto& instruction = program_.segments(segment).instructions(index);
    return instruction.has_slice() ||
           (instruction.has_collective() &&
            instruction.collective().kind() != plan::Collective::ALL_REDUCE);
  }

  // Results don't overlap each other, and operands only as a whole; where pieces move, not at all.
  void VerifyInPlace(int segment, int instruction) {
    const Access& access = accesses_[segment][instruction];
    std::map<int64_t, int> results;  // by offset; disjoint
    const auto overlapping = [&](const Range& range) -> std::optional<int> {
      const auto after = results.lower_bound(range.end);
      if (after == results.begin()) return std::nullopt;
      const int found = std::prev(after)->second;
      if (!RangeOf(found).Overlaps(range)) return std::nullopt;
      return found;
    };
    for (const int result : access.writes) {
      if (rings_.IsEmpty(result)) continue;
      if (const auto other = overlapping(RangeOf(result))) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its results ",
                      Name(*other), " and ", Name(result), " overlap in memory");
        return;
      }
      results[RangeOf(result).begin] = result;
    }
    for (const int operand : access.reads) {
      if (rings_.IsEmpty(operand)) continue;
      const auto result = overlapping(RangeOf(operand));
      if (result && MovesPieces(segment, instruction)) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its result ",
                      Name(*result), " lies in the memory of its operand ", Name(operand));
      } else if (result && !(RangeOf(*result) == RangeOf(operand))) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its result ",
                      Name(*result), " overlaps its operand ", Name(operand), " in part");
      }
    }
  }

  // Memory of a collective on its way.
  struct InFlight {
    RangeSet read, written;
  };

  // From the start of a collective to its wait, nothing writes its operands, and nothing touches
  // its results.
  void VerifyInFlight(int segment) {
    std::map<int, InFlight> in_flight;  // by the collective's place
    int64_t work = 0;
    for (size_t i = 0; i < accesses_[segment].size(); ++i) {
      const auto& instruction = program_.segments(segment).instructions(static_cast<int>(i));
      const Access& access = accesses_[segment][i];
      for (const auto& [collective, memory] : in_flight) {
        work += static_cast<int64_t>(access.reads.size() + access.writes.size());
        VerifyApart(access, memory, collective, segment, static_cast<int>(i));
      }
      if (work > kMaxSearches) {
        problems_.Add("program ", index_, ", segment ", program_.segments(segment).name(),
                      " has too much on its way to be verified");
      }
      if (problems_.full() || work > kMaxSearches) return;
      if (instruction.has_wait()) in_flight.erase(instruction.wait().collective());
      if (instruction.collective().stream() == 0) continue;
      InFlight& memory = in_flight[static_cast<int>(i)];
      for (const int read : access.reads) Insert(read, memory.read);
      for (const int write : access.writes) Insert(write, memory.written);
    }
  }

  void VerifyApart(const Access& access, const InFlight& other, int collective, int segment,
                   int instruction) {
    const auto refuse = [&](const char* verb, int buffer, const char* other_verb) {
      problems_.Add(InstructionPath(plan_, index_, segment, instruction), verb, Name(buffer),
                    ", whose memory instruction ", collective, ", which is on its way, ",
                    other_verb);
    };
    const auto overlaps = [&](int buffer, const RangeSet& ranges) {
      return !rings_.IsEmpty(buffer) && ranges.Overlaps(RangeOf(buffer));
    };
    for (const int write : access.writes) {
      if (overlaps(write, other.read)) refuse(" writes ", write, "reads");
      if (overlaps(write, other.written)) refuse(" writes ", write, "writes");
    }
    for (const int read : access.reads) {
      if (overlaps(read, other.written)) refuse(" reads ", read, "writes");
    }
  }

  void Insert(int buffer, RangeSet& ranges) const {
    if (!rings_.IsEmpty(buffer)) ranges.Insert(RangeOf(buffer));
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  const Rings& rings_;
  const SegmentAccesses& accesses_;
  Problems& problems_;
  int64_t microbatch_ = 0;
};

}  // namespace

void VerifyOverlaps(const plan::Plan& plan, int program, const Rings& rings,
                    const SegmentAccesses& accesses, Problems& problems) {
  OverlapVerifier(plan, program, rings, accesses, problems).Verify();
}

}  // namespace oriel::runtime
