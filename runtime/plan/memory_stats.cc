#include "runtime/plan/memory_stats.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/plan/lifetimes.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }
int64_t Aligned(const ByteRange& range) { return Aligned(range.end - range.begin); }

MemoryPart PartOf(plan::BufferKind kind) {
  switch (kind) {
    case plan::PARAMETER:
      return MemoryPart::kParameters;
    case plan::GRADIENT:
    case plan::STEP_GRADIENT:
      return MemoryPart::kGradients;
    case plan::OPTIMIZER_STATE:
      return MemoryPart::kOptimizerState;
    case plan::TRANSFER:
      return MemoryPart::kCommunication;
    default:
      return MemoryPart::kOther;
  }
}

bool IsState(MemoryPart part) {
  return part == MemoryPart::kParameters || part == MemoryPart::kGradients ||
         part == MemoryPart::kOptimizerState;
}

class Peak {
 public:
  explicit Peak(const plan::Program& program) : program_(program) {
    stats_.arena_bytes = program.arena_bytes();
    AddKept();
    AddStepGradients();
  }

  void Add(const Lifetimes& lifetimes) {
    const Most all = MostOf(lifetimes, [&](const Life& life) { return !IsTransfer(life); });
    const Most gradients = MostOf(
        lifetimes, [&](const Life& life) { return ParameterOf(lifetimes, life) != nullptr; });
    if (kept_ + all.bytes > stats_.peak_bytes) Take(lifetimes, all.time, kept_ + all.bytes);
    stats_.state_bytes = std::max(stats_.state_bytes, kept_state_ + gradients.bytes);
    AddStash(lifetimes);
  }

  MemoryStats Finish() {
    std::stable_sort(stats_.holders.begin(), stats_.holders.end(),
                     [](const auto& a, const auto& b) { return a.bytes > b.bytes; });
    return std::move(stats_);
  }

 private:
  void AddStepGradients() {
    for (const auto& buffer : program_.buffers()) {
      const int64_t bytes = FromPlan(buffer.local()).bytes();
      if (buffer.kind() != plan::STEP_GRADIENT || bytes == 0) continue;
      step_gradients_[{buffer.offset(), buffer.offset() + bytes}] = buffer.ref();
    }
  }

  // The most that lives take at a time, and the first such time.
  struct Most {
    int64_t bytes = 0;
    int64_t time = 0;
  };

  template <typename IsCounted>
  static Most MostOf(const Lifetimes& lifetimes, IsCounted is_counted) {
    std::vector<std::pair<int64_t, int64_t>> changes;  // time, bytes
    for (const Life& life : lifetimes.lives) {
      if (!is_counted(life)) continue;
      changes.emplace_back(life.begin, Aligned(life.bytes));
      changes.emplace_back(EndOf(life) + 1, -Aligned(life.bytes));
    }
    std::sort(changes.begin(), changes.end(),
              [](const auto& a, const auto& b) { return a.first < b.first; });
    Most most;
    int64_t in_use = 0;
    for (size_t i = 0; i < changes.size(); ++i) {
      in_use += changes[i].second;
      const bool is_last = i + 1 == changes.size() || changes[i + 1].first != changes[i].first;
      if (is_last && in_use > most.bytes) most = {in_use, changes[i].first};
    }
    return most;
  }

  // Memory that is in use all the time.
  void AddKept() {
    for (int part = 0; part < kMemoryParts; ++part) stats_.parts[static_cast<MemoryPart>(part)] = 0;
    std::set<int64_t> known;  // offsets
    for (const auto& buffer : program_.buffers()) {
      const int64_t bytes = CopiesOf(buffer) * Aligned(FromPlan(buffer.local()).bytes());
      if (!IsPersistent(buffer.kind()) || bytes == 0 || !known.insert(buffer.offset()).second) {
        continue;
      }
      if (buffer.kind() == plan::TRANSFER) transfers_.insert(buffer.offset());
      kept_ += bytes;
      MemoryHolder holder{PartOf(buffer.kind()), bytes, CopiesOf(buffer), buffer.ref()};
      if (!buffer.slot().empty()) absl::StrAppend(&holder.name, " ", buffer.slot());
      if (holder.name.empty())
        holder.name = absl::StrCat(KindName(buffer.kind()), " ", buffer.name());
      stats_.parts[holder.part] += bytes;
      if (IsState(holder.part)) kept_state_ += bytes;
      kept_holders_.push_back(std::move(holder));
    }
    stats_.peak_bytes = kept_;
    stats_.state_bytes = kept_state_;
    stats_.holders = kept_holders_;
  }

  bool IsTransfer(const Life& life) const {
    return transfers_.count(program_.buffers(life.buffer).offset()) > 0;
  }

  // No two values count for the same bytes.
  static int64_t EndOf(const Life& life) { return life.end - (life.overwritten ? 1 : 0); }

  static bool IsHandedOn(const Lifetimes& lifetimes, const Life& life) {
    return life.end > lifetimes.runs[life.run].finish;
  }

  // The parameter whose gradient of a step it is; null for anything else. Stash may have lain there
  // before, and temporaries of the backward.
  const std::string* ParameterOf(const Lifetimes& lifetimes, const Life& life) const {
    const auto found = step_gradients_.find({life.bytes.begin, life.bytes.end});
    const bool is_gradient = found != step_gradients_.end() &&
                             life.end >= lifetimes.runs[life.run].finish &&
                             IsBackward(SegmentOf(lifetimes, life).name());
    return is_gradient ? &found->second : nullptr;
  }

  MemoryPart PartOfLife(const Lifetimes& lifetimes, const Life& life) const {
    if (ParameterOf(lifetimes, life) != nullptr) return MemoryPart::kGradients;
    if (IsHandedOn(lifetimes, life)) return MemoryPart::kStash;
    return life.communication ? MemoryPart::kCommunication : MemoryPart::kTemporaries;
  }

  const plan::Segment& SegmentOf(const Lifetimes& lifetimes, const Life& life) const {
    return program_.segments(lifetimes.runs[life.run].segment);
  }

  // What is in use at a time.
  void Take(const Lifetimes& lifetimes, int64_t time, int64_t bytes) {
    stats_.peak_bytes = bytes;
    stats_.holders = kept_holders_;
    for (auto& [unused, part] : stats_.parts) part = 0;
    for (const MemoryHolder& holder : kept_holders_) stats_.parts[holder.part] += holder.bytes;
    const auto run = std::find_if(lifetimes.runs.begin(), lifetimes.runs.end(),
                                  [&](const RunTimes& one) { return time <= one.finish; });
    const auto& segment = program_.segments(run->segment);
    stats_.segment = segment.name();
    stats_.microbatch = run->microbatch;
    stats_.instruction =
        std::clamp<int64_t>(time - run->start - 1, 0, std::max(segment.instructions_size() - 1, 0));
    std::map<std::pair<int, int>, size_t> known;  // buffer, instruction: the holder
    for (const Life& life : lifetimes.lives) {
      if (life.begin > time || EndOf(life) < time || IsTransfer(life)) continue;
      MemoryHolder holder;
      holder.part = PartOfLife(lifetimes, life);
      holder.bytes = Aligned(life.bytes);
      stats_.parts[holder.part] += holder.bytes;
      auto [place, is_new] =
          known.try_emplace({life.buffer, life.instruction}, stats_.holders.size());
      if (!is_new) {
        stats_.holders[place->second].bytes += holder.bytes;
        ++stats_.holders[place->second].copies;
        continue;
      }
      const auto& writer = SegmentOf(lifetimes, life).instructions(life.instruction);
      if (const std::string* parameter = ParameterOf(lifetimes, life)) holder.name = *parameter;
      if (holder.name.empty())
        holder.name = writer.location().empty() ? writer.op() : writer.location();
      if (holder.name.empty()) holder.name = InstructionName(writer);
      stats_.holders.push_back(std::move(holder));
    }
  }

  void AddStash(const Lifetimes& lifetimes) {
    for (int segment = 0; segment < program_.segments_size(); ++segment) {
      StashStats stash{program_.segments(segment).name()};
      std::map<int64_t, std::pair<int64_t, int64_t>> spans;  // by run: when it has some
      for (const Life& life : lifetimes.lives) {
        if (lifetimes.runs[life.run].segment != segment || IsTransfer(life) ||
            PartOfLife(lifetimes, life) != MemoryPart::kStash) {
          continue;
        }
        if (spans.empty() || spans.begin()->first == life.run) stash.bytes += Aligned(life.bytes);
        auto [span, is_new] = spans.try_emplace(life.run, life.begin, life.end);
        span->second.second = std::max(span->second.second, life.end);
      }
      for (const auto& [unused, span] : spans) {
        const int64_t at = span.first;
        const auto holds = [&](const auto& other) {
          return other.second.first <= at && at <= other.second.second;
        };
        stash.microbatches =
            std::max<int64_t>(stash.microbatches, std::count_if(spans.begin(), spans.end(), holds));
      }
      if (stash.bytes > 0) stats_.stash.push_back(std::move(stash));
    }
  }

  const plan::Program& program_;
  std::map<std::pair<int64_t, int64_t>, std::string> step_gradients_;  // refs, by bytes
  std::set<int64_t> transfers_;  // offsets; nothing but views shares them
  std::vector<MemoryHolder> kept_holders_;
  int64_t kept_ = 0;
  int64_t kept_state_ = 0;  // parameters, gradients and optimizer state among them
  MemoryStats stats_;
};

}  // namespace

std::string MemoryPartName(MemoryPart part) {
  switch (part) {
    case MemoryPart::kParameters:
      return "parameters";
    case MemoryPart::kGradients:
      return "gradients";
    case MemoryPart::kOptimizerState:
      return "optimizer_state";
    case MemoryPart::kStash:
      return "stash";
    case MemoryPart::kTemporaries:
      return "temporaries";
    case MemoryPart::kCommunication:
      return "communication";
    case MemoryPart::kOther:
      return "other";
  }
  return "other";
}

MemoryStats ComputeMemoryStats(const plan::Program& program) {
  Peak peak(program);
  peak.Add(LifetimesOfStep(program));
  for (const Lifetimes& lifetimes : LifetimesOfOthers(program)) peak.Add(lifetimes);
  return peak.Finish();
}

}  // namespace oriel::runtime
