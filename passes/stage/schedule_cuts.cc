#include "passes/stage/schedule_cuts.h"

#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <utility>

#include "passes/stage/balance.h"
#include "passes/stage/cut_moves.h"

namespace oriel {

namespace {

using Cuts = std::vector<int64_t>;

// Work behind which no other cuts are set out from (some 0.1 s), and none are tried: replayed runs,
// and parts of cuts that are looked at.
constexpr int64_t kEnoughWork = 10'000'000;
constexpr int64_t kMostWork = 100'000'000;
constexpr int64_t kMostStarts = 100;
// So many rounds of a microbatch for each grid are replayed for all, and in the end about so many
// runs.
constexpr int64_t kRounds = 8;
constexpr int64_t kLastRuns = 4'000'000;
// A cut is not moved for less.
constexpr double kWorthMoving = 1 - 1e-5;
// Cuts that balance stages stay where others save less, which is less than predictions are off by.
constexpr double kWorthUneven = 0.995;

class CutSearch {
 public:
  CutSearch(const std::vector<StageTimes>& parts, const StagesToCut& row)
      : parts_(parts), row_(row) {
    // What no trained part is in front of has no backward.
    while (trained_ < count() && costOf(parts[trained_]) == parts[trained_].forward) ++trained_;
    for (const StageTimes& part : parts) costs_.push_back(costOf(part));
    replayed_ = std::min(row.microbatches, kRounds * row.grids);
  }

  Cuts run() {
    const Cuts even = balancedCuts(costs_, row_.stages, row_.stages);
    const Cuts ofGrids = balancedCuts(costs_, row_.stages, row_.grids);
    const std::optional<double> seconds = secondsOf(even);
    if (!seconds) return ofGrids;
    Found best = improved({even, *seconds});
    auto setOutFrom = [&](const Cuts& cuts) {
      Found found = improved({cuts, secondsOf(cuts).value_or(*seconds)});
      if (found.seconds < best.seconds * kWorthMoving) best = std::move(found);
    };
    if (ofGrids != even) setOutFrom(ofGrids);
    // Beside the best there are others.
    std::mt19937 random(0);
    for (int64_t left = kMostStarts; left > 0 && work_ < kEnoughWork; --left) {
      setOutFrom(shaken(best.cuts, random));
    }
    // More rounds may tell otherwise.
    const int64_t most = std::max(replayed_, kLastRuns / (2 * row_.stages));
    replayed_ = std::min(row_.microbatches, most / row_.grids * row_.grids);
    const bool isWorthIt = *secondsOf(best.cuts) < *secondsOf(even) * kWorthUneven;
    return isWorthIt ? best.cuts : even;
  }

 private:
  struct Found {
    Cuts cuts;
    double seconds;  // of a step
  };

  int64_t count() const { return static_cast<int64_t>(parts_.size()); }

  double costOf(const StageTimes& times) const {
    const bool hasHalves = row_.schedule == ScheduleKind::kZbH1;
    return times.forward +
           (hasHalves ? times.backwardInput + times.backwardWeight : times.backward);
  }

  Cuts shaken(Cuts cuts, std::mt19937& random) const {
    for (int64_t left = 3; left > 0; --left) {
      const int64_t from = random() % row_.stages, to = random() % row_.stages;
      cuts = withPartMoved(cuts, count(), from, to).value_or(cuts);
    }
    return cuts;
  }

  Found improved(Found found) {
    auto isBetter = [&](const Cuts& moved) -> std::optional<bool> {
      if (work_ > kMostWork) return std::nullopt;
      const double wanted = found.seconds * kWorthMoving;
      if (leastSecondsOf(moved) >= wanted) return false;
      const std::optional<double> seconds = secondsOf(moved);
      if (!seconds || *seconds >= wanted) return false;
      found.seconds = *seconds;
      return true;
    };
    found.cuts = improvedCuts(found.cuts, count(), row_.grids, isBetter);
    return found;
  }

  // Those of the busiest grid, which never waits.
  double leastSecondsOf(const Cuts& cuts) {
    work_ += count();
    const std::vector<double> ofGrids = gridCosts(costs_, cuts, row_.grids);
    return static_cast<double>(row_.microbatches) *
           *std::max_element(ofGrids.begin(), ofGrids.end());
  }

  // Of a step; none where there is no such schedule. Each round of microbatches that is not
  // replayed takes what the last one did.
  std::optional<double> secondsOf(const Cuts& cuts) {
    const std::optional<double> all = secondsOf(cuts, replayed_);
    if (!all || replayed_ == row_.microbatches) return all;
    const std::optional<double> before = secondsOf(cuts, replayed_ - row_.grids);
    if (!before) return std::nullopt;
    const double ofOne = (*all - *before) / static_cast<double>(row_.grids);
    return *all + static_cast<double>(row_.microbatches - replayed_) * ofOne;
  }

  std::optional<double> secondsOf(const Cuts& cuts, int64_t microbatches) {
    std::vector<StageTimes> stages(row_.stages);
    int64_t frozen = 0;
    for (int64_t stage = 0; stage < row_.stages; ++stage) {
      const int64_t end = stage + 1 < row_.stages ? cuts[stage + 1] : count();
      if (end <= trained_ && stage + 1 < row_.stages) frozen = stage + 1;
      for (int64_t part = cuts[stage]; part < end; ++part) stages[stage] += parts_[part];
    }
    auto [known, isNew] = replays_.try_emplace({frozen, microbatches});
    if (isNew) {
      PipelineShape shape{row_.grids, std::vector<bool>(row_.stages, true), microbatches};
      std::fill_n(shape.hasBackward.begin(), frozen, false);
      const absl::StatusOr<PipelineSchedule> schedule = makeSchedule(row_.schedule, shape);
      if (schedule.ok()) {
        absl::StatusOr<ScheduleReplay> replay = ScheduleReplay::create(*schedule);
        if (replay.ok()) known->second.emplace(*std::move(replay));
      }
    }
    if (!known->second) return std::nullopt;
    work_ += known->second->runs();
    return known->second->makespan(stages);
  }

  const std::vector<StageTimes>& parts_;
  const StagesToCut& row_;
  int64_t trained_ = 0;  // the first part with a backward
  std::vector<double> costs_;
  int64_t replayed_ = 1;  // microbatches
  std::map<std::pair<int64_t, int64_t>, std::optional<ScheduleReplay>> replays_;
  int64_t work_ = 0;
};

}  // namespace

std::vector<int64_t> cutsForSchedule(const std::vector<StageTimes>& parts, const StagesToCut& row) {
  return CutSearch(parts, row).run();
}

}  // namespace oriel
