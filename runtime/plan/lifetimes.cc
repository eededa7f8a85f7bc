#include "runtime/plan/lifetimes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>

#include "runtime/plan/access.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

// A value that leaves in a message is in use until something waits for that, if anything does.
constexpr int64_t kForever = std::numeric_limits<int64_t>::max();

bool IsKept(const plan::Buffer& buffer) {
  return IsPersistent(buffer.kind()) && buffer.kind() != plan::TRANSFER;
}

bool IsCommunication(const plan::Instruction& instruction) {
  return instruction.has_collective() || instruction.has_send() || instruction.has_receive();
}

class Follower {
 public:
  explicit Follower(const plan::Program& program)
      : program_(program), kept_(KeptRanges(program)), accesses_(AccessesOf(program)) {
    for (const auto& buffer : program.buffers()) {
      bytes_.push_back(FromPlan(buffer.local()).bytes());
      is_kept_.push_back(LiesInKept({buffer.offset(), buffer.offset() + bytes_.back()}));
      if (buffer.kind() == plan::STEP_GRADIENT) {
        step_gradients_.emplace(buffer.offset(), buffer.offset() + bytes_.back());
      }
    }
  }

  int SegmentIndex(const std::string& name) const {
    const auto& segments = program_.segments();
    const auto found = std::find_if(segments.begin(), segments.end(),
                                    [&](const auto& segment) { return segment.name() == name; });
    return static_cast<int>(found - segments.begin());
  }

  void Run(int segment, int64_t microbatch) {
    const auto instructions = static_cast<int64_t>(accesses_[segment].size());
    const RunTimes run{segment, microbatch, now_, now_ + 1 + instructions};
    now_ = run.finish + 1;
    EndMessages(run);
    outputs_.clear();
    is_backward_ = IsBackward(program_.segments(segment).name());
    std::map<int, std::vector<size_t>> started;  // by collective: the lives that it works on
    for (size_t i = 0; i < accesses_[segment].size(); ++i) {
      const Access& access = accesses_[segment][i];
      const auto& instruction = program_.segments(segment).instructions(static_cast<int>(i));
      const int64_t time = run.TimeOf(static_cast<int>(i));
      for (const int index : access.reads) Read(index, microbatch, time, instruction);
      for (const int index : access.writes) {
        Write(index, run, static_cast<int>(i), instruction);
      }
      if (instruction.has_collective() && instruction.collective().stream() > 0) {
        started[static_cast<int>(i)] = LivesOf(access, microbatch);
      } else if (instruction.has_wait()) {
        for (const size_t life : started[instruction.wait().collective()]) {
          Extend(lives_[life].life, time);
        }
      }
    }
    for (const size_t output : outputs_) {
      if (IsWhole(lives_[output].life)) Extend(lives_[output].life, run.finish);
    }
    if (SegmentKind(program_.segments(segment).name()) == "eval") ExtendViewedOutputs(run);
    runs_.push_back(run);
  }

  Lifetimes Take() {
    Lifetimes result;
    result.runs = std::move(runs_);
    for (Written& written : lives_) {
      Life& life = written.life;
      life.communication |= written.reads > 0 && written.reads == written.communicating_reads;
      result.lives.push_back(life);
    }
    return result;
  }

 private:
  struct Written {
    Life life;
    int64_t reads = 0;
    int64_t communicating_reads = 0;
  };

  bool LiesInKept(const ByteRange& bytes) const {
    const auto after = std::upper_bound(
        kept_.begin(), kept_.end(), bytes.begin,
        [](int64_t offset, const ByteRange& range) { return offset < range.begin; });
    return after != kept_.begin() && std::prev(after)->end > bytes.begin;
  }

  ByteRange BytesOf(int index, int64_t microbatch) const {
    const int64_t begin = OffsetOf(program_.buffers(index), microbatch);
    return {begin, begin + bytes_[index]};
  }

  // Whether nothing has been written over it.
  bool IsWhole(const Life& life) const {
    const auto found = contents_.find(life.bytes.begin);
    return found != contents_.end() && &lives_[found->second].life == &life;
  }

  static void Extend(Life& life, int64_t time) { life.end = std::max(life.end, time); }

  void Read(int index, int64_t microbatch, int64_t time, const plan::Instruction& instruction) {
    if (is_kept_[index]) return;
    const auto found = contents_.find(BytesOf(index, microbatch).begin);
    if (found == contents_.end()) return;  // of no bytes
    Written& written = lives_[found->second];
    Extend(written.life, time);
    ++written.reads;
    if (IsCommunication(instruction)) ++written.communicating_reads;
    if (instruction.has_send()) {
      written.life.end = kForever;
      sent_.insert(found->second);
    }
  }

  void Write(int index, const RunTimes& run, int at, const plan::Instruction& instruction) {
    const ByteRange bytes = BytesOf(index, run.microbatch);
    if (is_kept_[index] || bytes.begin == bytes.end) return;
    auto it = contents_.lower_bound(bytes.begin);
    if (it != contents_.begin() && lives_[std::prev(it)->second].life.bytes.end > bytes.begin) --it;
    const int64_t time = run.TimeOf(at);
    while (it != contents_.end() && it->first < bytes.end) {
      Life& before = lives_[it->second].life;
      before.overwritten = before.end == time && it->first == bytes.begin;
      it = contents_.erase(it);
    }
    Written written;
    written.life = {index,
                    bytes,
                    static_cast<int>(runs_.size()),
                    at,
                    time,
                    time,
                    instruction.has_collective() || instruction.has_receive()};
    contents_[bytes.begin] = lives_.size();
    const bool is_read_by_host =
        program_.buffers(index).kind() == plan::OUTPUT ||
        (step_gradients_.count({bytes.begin, bytes.end}) > 0 && is_backward_);
    if (is_read_by_host) outputs_.push_back(lives_.size());
    lives_.push_back(written);
  }

  // An output of an evaluation may be a view of what was written, and have no instruction.
  void ExtendViewedOutputs(const RunTimes& run) {
    for (int index = 0; index < program_.buffers_size(); ++index) {
      if (program_.buffers(index).kind() != plan::OUTPUT) continue;
      const int64_t begin = BytesOf(index, run.microbatch).begin;
      const auto after = contents_.upper_bound(begin);
      if (after == contents_.begin()) continue;
      Life& life = lives_[std::prev(after)->second].life;
      const bool is_of_run = life.run == static_cast<int>(runs_.size());
      if (is_of_run && begin < life.bytes.end) Extend(life, run.finish);
    }
  }

  // Of operands and results, as they are in memory behind the instruction.
  std::vector<size_t> LivesOf(const Access& access, int64_t microbatch) const {
    std::vector<size_t> lives;
    for (const auto* list : {&access.reads, &access.writes}) {
      for (const int index : *list) {
        const auto found = contents_.find(BytesOf(index, microbatch).begin);
        if (!is_kept_[index] && found != contents_.end()) lives.push_back(found->second);
      }
    }
    return lives;
  }

  // A run waits before it uses the memory of a message.
  void EndMessages(const RunTimes& run) {
    std::set<int64_t> used;
    for (const Access& access : accesses_[run.segment]) {
      for (const auto* list : {&access.reads, &access.writes}) {
        for (const int index : *list) {
          if (!is_kept_[index]) used.insert(BytesOf(index, run.microbatch).begin);
        }
      }
    }
    for (auto it = sent_.begin(); it != sent_.end();) {
      Life& life = lives_[*it].life;
      if (used.count(life.bytes.begin) == 0) {
        ++it;
        continue;
      }
      life.end = run.start;
      it = sent_.erase(it);
    }
  }

  const plan::Program& program_;
  const std::vector<ByteRange> kept_;
  std::vector<int64_t> bytes_;  // of each buffer
  std::vector<bool> is_kept_;   // likewise
  SegmentAccesses accesses_;
  std::map<int64_t, size_t> contents_;  // by offset; disjoint
  std::vector<Written> lives_;
  std::vector<size_t> outputs_;  // of the run, and gradients of the step, which may be dumped
  std::set<std::pair<int64_t, int64_t>> step_gradients_;  // their bytes
  bool is_backward_ = false;                              // the run
  std::set<size_t> sent_;                                 // for which nothing has waited
  std::vector<RunTimes> runs_;
  int64_t now_ = 0;
};

}  // namespace

std::vector<ByteRange> KeptRanges(const plan::Program& program) {
  std::vector<ByteRange> ranges;
  for (const auto& buffer : program.buffers()) {
    const int64_t bytes = FromPlan(buffer.local()).bytes();
    if (IsKept(buffer) && bytes > 0) ranges.push_back({buffer.offset(), buffer.offset() + bytes});
  }
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  });
  ranges.erase(std::unique(ranges.begin(), ranges.end()), ranges.end());
  return ranges;
}

Lifetimes LifetimesOfStep(const plan::Program& program) {
  Follower follower(program);
  for (const auto& entry : program.schedule()) {
    const int segment = follower.SegmentIndex(entry.segment());
    if (segment < program.segments_size()) follower.Run(segment, entry.microbatch());
  }
  return follower.Take();
}

std::vector<Lifetimes> LifetimesOfOthers(const plan::Program& program) {
  std::set<std::string> scheduled;
  for (const auto& entry : program.schedule()) scheduled.insert(entry.segment());
  std::map<int64_t, int> eval;  // by stage
  std::vector<Lifetimes> result;
  for (int i = 0; i < program.segments_size(); ++i) {
    const std::string& name = program.segments(i).name();
    if (scheduled.count(name) > 0) continue;
    const auto stage = SegmentStage(name);
    if (stage && SegmentKind(name) == "eval") {
      eval[*stage] = i;
      continue;
    }
    Follower follower(program);
    follower.Run(i, 0);
    result.push_back(follower.Take());
  }
  if (!eval.empty()) {
    Follower follower(program);
    for (const auto& [stage, segment] : eval) follower.Run(segment, 0);
    result.push_back(follower.Take());
  }
  return result;
}

}  // namespace oriel::runtime
