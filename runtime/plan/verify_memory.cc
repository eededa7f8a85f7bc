// What each read finds in memory: a run of the program in which a write only leaves its name.
#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "runtime/plan/plan_types.h"
#include "runtime/plan/verify_internal.h"

namespace oriel::runtime {
namespace {

// Reads and writes that are followed before the verifier calls it enough: some seconds. Longer
// schedules repeat themselves.
constexpr int64_t kMaxAccesses = 30'000'000;

struct Range {
  int64_t begin;
  int64_t end;
  bool empty() const { return begin == end; }
  bool Overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
  friend bool operator<(const Range& a, const Range& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  }
  friend bool operator==(const Range& a, const Range& b) {
    return a.begin == b.begin && a.end == b.end;
  }
};

// What the last write left in a range.
struct Content {
  int64_t end;
  int buffer;
  int64_t run;  // which entry of the schedule wrote it
  int64_t microbatch;
};

class MemoryVerifier {
 public:
  MemoryVerifier(const plan::Plan& plan, int index, Problems& problems)
      : plan_(plan), index_(index), program_(plan.programs(index)), problems_(problems) {
    for (const auto& buffer : program_.buffers()) {
      ranges_.push_back({buffer.offset(), buffer.offset() + *CheckedBytes(buffer.local())});
      if (buffer.kind() == plan::STASH) stashes_.insert(ranges_.back());
    }
    for (const auto& segment : program_.segments()) {
      std::vector<Access>& accesses = accesses_.emplace_back();
      for (const auto& instruction : segment.instructions()) {
        accesses.push_back(AccessOf(instruction));
      }
    }
  }

  void Verify() {
    if (!PlacePersistent()) return;
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      for (size_t i = 0; i < accesses_[segment].size(); ++i) {
        VerifyInPlace(segment, static_cast<int>(i));
      }
    }
    std::set<int> scheduled;
    for (const auto& entry : program_.schedule()) {
      const int segment = SegmentIndex(entry.segment());
      scheduled.insert(segment);
      Run(segment, entry.microbatch());
    }
    // What the schedule does not run (eval) begins with nothing in memory.
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      if (scheduled.count(segment) > 0) continue;
      contents_.clear();
      Run(segment, 0);
    }
    VerifyOutputs();
  }

 private:
  const plan::Buffer& buffer(int index) const { return program_.buffers(index); }
  std::string Name(int index) const { return BufferName(buffer(index)); }

  int SegmentIndex(const std::string& name) const {
    for (int i = 0; i < program_.segments_size(); ++i) {
      if (program_.segments(i).name() == name) return i;
    }
    return 0;  // VerifyPrograms has refused it
  }

  // The buffer that owns this memory for the whole program, or that overlaps it.
  std::optional<int> PersistentOverlap(const Range& range) const {
    auto after = persistent_.lower_bound(range.end);
    if (after == persistent_.begin()) return std::nullopt;
    const int owner = std::prev(after)->second;
    if (!ranges_[owner].Overlaps(range)) return std::nullopt;
    return owner;
  }

  // Gives each persistent buffer its memory. Temporaries in it have to be views of it.
  bool PlacePersistent() {
    std::vector<int> order;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      if (!ranges_[i].empty()) order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](int a, int b) { return ranges_[a] < ranges_[b]; });
    bool valid = true;
    for (const int i : order) {
      if (!IsPersistent(buffer(i).kind())) continue;
      const auto other = PersistentOverlap(ranges_[i]);
      if (other && !(ranges_[*other] == ranges_[i] && IsViewOfConstant(i, *other))) {
        problems_.Add("program ", index_, ": ", Name(*other), " and ", Name(i),
                      " lie in the same memory");
        valid = false;
      }
      if (!other) persistent_[ranges_[i].begin] = i;
    }
    owners_.assign(program_.buffers_size(), -1);
    for (const int i : order) {
      const auto owner = PersistentOverlap(ranges_[i]);
      if (!owner) continue;
      if (ranges_[*owner] == ranges_[i]) {
        owners_[i] = *owner;
      } else if (!IsPersistent(buffer(i).kind())) {
        problems_.Add("program ", index_, ": ", Name(i), " lies partly in the memory of ",
                      Name(*owner));
        valid = false;
      }
    }
    return valid;
  }

  bool IsViewOfConstant(int a, int b) const {
    return buffer(a).kind() == plan::CONSTANT && buffer(b).kind() == plan::CONSTANT &&
           buffer(a).data() == buffer(b).data();
  }

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
      if (!ranges_[found].Overlaps(range)) return std::nullopt;
      return found;
    };
    for (const int result : access.writes) {
      if (ranges_[result].empty()) continue;
      if (const auto other = overlapping(ranges_[result])) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its results ",
                      Name(*other), " and ", Name(result), " overlap in memory");
        return;
      }
      results[ranges_[result].begin] = result;
    }
    for (const int operand : access.reads) {
      if (ranges_[operand].empty()) continue;
      const auto result = overlapping(ranges_[operand]);
      if (result && MovesPieces(segment, instruction)) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its result ",
                      Name(*result), " lies in the memory of its operand ", Name(operand));
      } else if (result && !(ranges_[*result] == ranges_[operand])) {
        problems_.Add(InstructionPath(plan_, index_, segment, instruction), ": its result ",
                      Name(*result), " overlaps its operand ", Name(operand), " in part");
      }
    }
  }

  void Run(int segment, int64_t microbatch) {
    ++run_;
    microbatch_ = microbatch;
    written_outputs_.clear();
    const std::vector<Access>& accesses = accesses_[segment];
    for (size_t i = 0; i < accesses.size(); ++i) {
      work_ += accesses[i].reads.size() + accesses[i].writes.size();
      if (work_ > kMaxAccesses || problems_.full()) return;
      for (const int read : accesses[i].reads) Read(read, segment, static_cast<int>(i));
      for (const int write : accesses[i].writes) Write(write);
    }
    for (const int output : written_outputs_) {
      const auto found = contents_.find(ranges_[output].begin);
      if (found == contents_.end() || found->second.end != ranges_[output].end) {
        problems_.Add("program ", index_, ", segment ", program_.segments(segment).name(), ": ",
                      Name(output), " is overwritten before the segment ends");
      }
    }
  }

  void Read(int index, int segment, int instruction) {
    const Range& range = ranges_[index];
    if (range.empty() || owners_[index] >= 0) return;
    const auto path = [&] { return InstructionPath(plan_, index_, segment, instruction); };
    const auto found = contents_.find(range.begin);
    if (found == contents_.end() || found->second.end != range.end) {
      const int by = AnyContentIn(range);
      if (by < 0) {
        problems_.Add(path(), " reads ", Name(index), ", which nothing has written");
      } else {
        problems_.Add(path(), " reads ", Name(index), ", whose memory ", Name(by),
                      " has overwritten");
      }
      return;
    }
    const Content& content = found->second;
    if (content.run == run_) return;
    if (stashes_.count(range) == 0) {
      problems_.Add(path(), " reads ", Name(index), ", which this segment has not written");
    } else if (content.microbatch != microbatch_) {
      problems_.Add(path(), " reads ", Name(index), " of microbatch ", microbatch_,
                    ", but there is that of microbatch ", content.microbatch);
    }
  }

  int AnyContentIn(const Range& range) const {
    const auto after = contents_.lower_bound(range.end);
    if (after == contents_.begin()) return -1;
    const auto last = std::prev(after);
    return last->second.end > range.begin ? last->second.buffer : -1;
  }

  void Write(int index) {
    const Range& range = ranges_[index];
    written_.insert(range);
    if (range.empty() || owners_[index] >= 0) return;
    // Whatever overlaps is gone. Contents are disjoint, so that only the one before may reach in.
    auto it = contents_.lower_bound(range.begin);
    if (it != contents_.begin() && std::prev(it)->second.end > range.begin) --it;
    while (it != contents_.end() && it->first < range.end) it = contents_.erase(it);
    contents_[range.begin] = {range.end, index, run_, microbatch_};
    if (buffer(index).kind() == plan::OUTPUT) written_outputs_.insert(index);
  }

  void VerifyOutputs() {
    if (work_ > kMaxAccesses) return;
    for (int i = 0; i < program_.buffers_size(); ++i) {
      if (buffer(i).kind() == plan::OUTPUT && owners_[i] < 0 && written_.count(ranges_[i]) == 0) {
        problems_.Add("program ", index_, ": nothing writes ", Name(i));
      }
    }
  }

  const plan::Plan& plan_;
  const int index_;
  const plan::Program& program_;
  Problems& problems_;
  std::vector<Range> ranges_;                  // of each buffer
  std::vector<std::vector<Access>> accesses_;  // of each segment's instructions
  std::set<Range> stashes_;
  std::map<int64_t, int> persistent_;  // by offset; disjoint
  std::vector<int> owners_;            // the persistent buffer with the same range, or -1

  std::map<int64_t, Content> contents_;  // by offset; disjoint
  std::set<Range> written_;
  std::set<int> written_outputs_;
  int64_t run_ = 0;
  int64_t microbatch_ = 0;
  int64_t work_ = 0;
};

}  // namespace

void VerifyMemory(const plan::Plan& plan, int program, Problems& problems) {
  MemoryVerifier(plan, program, problems).Verify();
}

}  // namespace oriel::runtime
