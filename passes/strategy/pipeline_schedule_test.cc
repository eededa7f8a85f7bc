#include "passes/strategy/pipeline_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "absl/strings/str_cat.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

const std::vector<ScheduleKind> kKinds = {ScheduleKind::kGPipe, ScheduleKind::kOneFOneB,
                                          ScheduleKind::kInterleaved, ScheduleKind::kZbH1};

// `frozen` stages without backward in front.
PipelineShape shapeOf(int64_t grids, int64_t stages, int64_t microbatches, int64_t frozen = 0) {
  PipelineShape shape{grids, std::vector<bool>(stages, true), microbatches};
  std::fill_n(shape.hasBackward.begin(), frozen, false);
  return shape;
}

// All shapes with up to 8 grids, 4 stages on each and 32 microbatches that a schedule takes.
std::vector<PipelineShape> shapesFor(ScheduleKind kind) {
  std::vector<PipelineShape> shapes;
  for (int64_t grids = 1; grids <= 8; ++grids) {
    for (int64_t chunks = 1; chunks <= (kind == ScheduleKind::kInterleaved ? 4 : 1); ++chunks) {
      for (int64_t m = 1; m <= 32; ++m) {
        if (chunks > 1 && m % grids != 0) continue;
        shapes.push_back(shapeOf(grids, grids * chunks, m));
      }
    }
  }
  return shapes;
}

std::string text(const PipelineShape& shape) {
  return absl::StrCat(
      shape.grids, " grids, ", shape.stages(), " stages, ", shape.microbatches, " microbatches, ",
      std::count(shape.hasBackward.begin(), shape.hasBackward.end(), false), " without backward");
}

std::string text(const std::vector<StageRun>& runs) {
  std::string text;
  for (const StageRun& run : runs) {
    const char* const letters[] = {"F", "B", "I", "W"};
    absl::StrAppend(&text, text.empty() ? "" : " ", letters[static_cast<int>(run.phase)], run.stage,
                    ".", run.microbatch);
  }
  return text;
}

// Runs the grids side by side, each as far as its inputs allow. Whether all runs were possible.
bool replays(const PipelineShape& shape, const PipelineSchedule& schedule) {
  std::set<std::tuple<Phase, int64_t, int64_t>> done;
  auto ready = [&](const StageRun& run) {
    auto ran = [&](Phase phase, int64_t stage) {
      return done.count({phase, stage, run.microbatch}) != 0;
    };
    if (run.phase == Phase::kForward) return run.stage == 0 || ran(Phase::kForward, run.stage - 1);
    if (run.phase == Phase::kBackwardWeight) return ran(Phase::kBackwardInput, run.stage);
    for (int64_t later = run.stage + 1; later < shape.stages(); ++later) {
      if (shape.hasBackward[later] && !ran(run.phase, later)) return false;
    }
    return ran(Phase::kForward, run.stage);
  };
  std::vector<size_t> next(schedule.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t grid = 0; grid < schedule.size(); ++grid) {
      const std::vector<StageRun>& runs = schedule[grid];
      for (; next[grid] < runs.size() && ready(runs[next[grid]]); ++next[grid], moved = true) {
        const StageRun& run = runs[next[grid]];
        done.emplace(run.phase, run.stage, run.microbatch);
      }
    }
  }
  for (size_t grid = 0; grid < schedule.size(); ++grid) {
    if (next[grid] != schedule[grid].size()) return false;
  }
  return true;
}

// Each stage runs each microbatch once in each phase it has, on its grid, in ascending order.
void expectComplete(ScheduleKind kind, const PipelineShape& shape,
                    const PipelineSchedule& schedule) {
  ASSERT_EQ(schedule.size(), shape.grids);
  size_t expected = 0, found = 0;
  for (const std::vector<StageRun>& runs : schedule) found += runs.size();
  for (int64_t stage = 0; stage < shape.stages(); ++stage) {
    std::vector<Phase> phases = {Phase::kForward};
    if (shape.hasBackward[stage] && kind == ScheduleKind::kZbH1) {
      phases.insert(phases.end(), {Phase::kBackwardInput, Phase::kBackwardWeight});
    } else if (shape.hasBackward[stage]) {
      phases.push_back(Phase::kBackward);
    }
    for (Phase phase : phases) {
      int64_t microbatch = 0;
      for (const StageRun& run : schedule[shape.gridOf(stage)]) {
        if (run.phase != phase || run.stage != stage) continue;
        ASSERT_EQ(run.microbatch, microbatch++);
      }
      ASSERT_EQ(microbatch, shape.microbatches);
      expected += shape.microbatches;
    }
  }
  ASSERT_EQ(found, expected);
}

TEST(PipelineSchedule, EveryRunOnceInAnOrderThatEnds) {
  for (ScheduleKind kind : kKinds) {
    for (PipelineShape shape : shapesFor(kind)) {
      // Frozen prefixes: none, one more stage each time, up to all.
      for (int64_t frozen = 0; frozen <= shape.stages(); ++frozen) {
        SCOPED_TRACE(absl::StrCat(scheduleName(kind), ": ", text(shape)));
        if (frozen > 0) shape.hasBackward[frozen - 1] = false;
        absl::StatusOr<PipelineSchedule> schedule = makeSchedule(kind, shape);
        ASSERT_TRUE(schedule.ok()) << schedule.status();
        ASSERT_NO_FATAL_FAILURE(expectComplete(kind, shape, *schedule));
        ASSERT_TRUE(replays(shape, *schedule));
      }
    }
  }
}

// A stage that only passes on what trains in front of it, such as frozen word embeddings behind a
// vision tower.
TEST(PipelineSchedule, AStageWithoutBackwardAmongOthers) {
  for (ScheduleKind kind : kKinds) {
    const PipelineShape shape{3, {true, false, true}, 5};
    absl::StatusOr<PipelineSchedule> schedule = makeSchedule(kind, shape);
    ASSERT_TRUE(schedule.ok()) << schedule.status();
    expectComplete(kind, shape, *schedule);
    EXPECT_TRUE(replays(shape, *schedule));
    EXPECT_EQ(text((*schedule)[1]), "F1.0 F1.1 F1.2 F1.3 F1.4");
  }
}

std::vector<std::string> ordersOf(ScheduleKind kind, const PipelineShape& shape) {
  const PipelineSchedule schedule = makeSchedule(kind, shape).value();
  std::vector<std::string> orders;
  for (const std::vector<StageRun>& runs : schedule) orders.push_back(text(runs));
  return orders;
}

TEST(PipelineSchedule, GPipe) {
  EXPECT_EQ(ordersOf(ScheduleKind::kGPipe, shapeOf(2, 2, 2)),
            (std::vector<std::string>{"F0.0 F0.1 B0.0 B0.1", "F1.0 F1.1 B1.0 B1.1"}));
}

TEST(PipelineSchedule, OneFOneB) {
  EXPECT_EQ(
      ordersOf(ScheduleKind::kOneFOneB, shapeOf(2, 2, 3)),
      (std::vector<std::string>{"F0.0 F0.1 B0.0 F0.2 B0.1 B0.2", "F1.0 B1.0 F1.1 B1.1 F1.2 B1.2"}));
}

TEST(PipelineSchedule, Interleaved) {
  EXPECT_EQ(ordersOf(ScheduleKind::kInterleaved, shapeOf(2, 4, 2)),
            (std::vector<std::string>{"F0.0 F0.1 F2.0 F2.1 B2.0 B2.1 B0.0 B0.1",
                                      "F1.0 F1.1 F3.0 B3.0 F3.1 B3.1 B1.0 B1.1"}));
}

TEST(PipelineSchedule, ZbH1) {
  EXPECT_EQ(ordersOf(ScheduleKind::kZbH1, shapeOf(2, 2, 3)),
            (std::vector<std::string>{"F0.0 F0.1 I0.0 W0.0 F0.2 I0.1 W0.1 I0.2 W0.2",
                                      "F1.0 I1.0 F1.1 I1.1 W1.0 F1.2 I1.2 W1.1 W1.2"}));
}

// Behind a frozen stage, the others run as if it was not there.
TEST(PipelineSchedule, AFrozenPrefixChangesNothingBehindIt) {
  for (ScheduleKind kind : {ScheduleKind::kGPipe, ScheduleKind::kOneFOneB, ScheduleKind::kZbH1}) {
    const PipelineSchedule with = makeSchedule(kind, shapeOf(4, 4, 6, /*frozen=*/2)).value();
    const PipelineSchedule without = makeSchedule(kind, shapeOf(2, 2, 6)).value();
    for (int64_t grid = 0; grid < 2; ++grid) {
      std::vector<StageRun> runs = with[grid + 2];
      for (StageRun& run : runs) run.stage -= 2;
      EXPECT_EQ(runs, without[grid]) << scheduleName(kind);
      EXPECT_EQ(text(with[grid]).find('B'), std::string::npos);
    }
  }
}

// What each paper says that a grid holds at a time.
TEST(PipelineSchedule, PeakInFlight) {
  for (ScheduleKind kind : kKinds) {
    for (const PipelineShape& shape : shapesFor(kind)) {
      SCOPED_TRACE(absl::StrCat(scheduleName(kind), ": ", text(shape)));
      const PipelineSchedule schedule = makeSchedule(kind, shape).value();
      const int64_t grids = shape.grids, m = shape.microbatches, chunks = shape.stages() / grids;
      for (int64_t grid = 0; grid < grids; ++grid) {
        int64_t expected = 0;
        if (kind == ScheduleKind::kGPipe) {
          expected = m;
        } else if (kind == ScheduleKind::kZbH1) {
          expected = std::min(m, grids);
        } else if (chunks == 1) {
          expected = std::min(m, grids - grid);
        } else {
          expected = std::min(m * chunks, 2 * (grids - 1 - grid) + (chunks - 1) * grids + 1);
        }
        ASSERT_EQ(peakInFlight(schedule[grid]), expected) << "grid " << grid;
      }
    }
  }
}

// Until its input half has run, a stage of ZB-H1 holds a microbatch no longer than in 1F1B.
TEST(PipelineSchedule, ZbH1HoldsInputsAsLongAsOneFOneB) {
  for (const PipelineShape& shape : shapesFor(ScheduleKind::kZbH1)) {
    PipelineSchedule schedule = makeSchedule(ScheduleKind::kZbH1, shape).value();
    for (int64_t grid = 0; grid < shape.grids; ++grid) {
      std::vector<StageRun>& runs = schedule[grid];
      runs.erase(
          std::remove_if(runs.begin(), runs.end(),
                         [](const StageRun& run) { return run.phase == Phase::kBackwardWeight; }),
          runs.end());
      ASSERT_EQ(peakInFlight(runs), std::min(shape.microbatches, shape.grids - grid));
    }
  }
}

TEST(PipelineSchedule, PeakInFlightOfAStage) {
  const PipelineSchedule schedule =
      makeSchedule(ScheduleKind::kInterleaved, shapeOf(2, 4, 8, /*frozen=*/1)).value();
  EXPECT_EQ(peakInFlight(schedule[0], 0), 1);  // nothing is kept for a backward
  EXPECT_EQ(peakInFlight(schedule[0], 2), 2);
  EXPECT_EQ(peakInFlight(schedule[0], 3), 0);  // of another grid
}

std::string errorOf(ScheduleKind kind, const PipelineShape& shape) {
  return std::string(makeSchedule(kind, shape).status().message());
}

TEST(PipelineSchedule, SaysWhatItNeeds) {
  for (ScheduleKind kind : kKinds) {
    EXPECT_THAT(errorOf(kind, shapeOf(2, 2, 0)), HasSubstr("needs a grid and a microbatch"));
    EXPECT_THAT(errorOf(kind, shapeOf(3, 2, 3)), HasSubstr("2 stages"));
    EXPECT_EQ(errorOf(kind, shapeOf(1, 1, 1)), "");
  }
  EXPECT_EQ(errorOf(ScheduleKind::kOneFOneB, shapeOf(2, 4, 4)),
            "the schedule '1f1b' runs one stage on each grid, not 4 stages on 2 grids; "
            "'interleaved' runs several on each");
  EXPECT_EQ(errorOf(ScheduleKind::kInterleaved, shapeOf(2, 5, 4)),
            "the schedule 'interleaved' runs as many stages on each grid: 5 stages can't be shared "
            "by 2 grids; use 6 stages");
  EXPECT_EQ(errorOf(ScheduleKind::kInterleaved, shapeOf(4, 8, 6)),
            "the schedule 'interleaved' needs a multiple of 4 microbatches, the number of grids, "
            "not 6; use 4 or 8");
  EXPECT_THAT(errorOf(ScheduleKind::kInterleaved, shapeOf(4, 8, 2)), HasSubstr("not 2; use 4"));
}

TEST(PipelineSchedule, Names) {
  for (ScheduleKind kind : kKinds) EXPECT_EQ(*parseSchedule(scheduleName(kind)), kind);
  EXPECT_EQ(parseSchedule("1f1").status().message(),
            "there is no schedule '1f1'; did you mean '1f1b'?");
  EXPECT_EQ(parseSchedule("chimera").status().message(),
            "there is no schedule 'chimera'; known: 'gpipe', '1f1b', 'zb-h1', 'interleaved'");
}

}  // namespace
}  // namespace oriel
