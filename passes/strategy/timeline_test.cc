#include "passes/strategy/timeline.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace oriel {
namespace {

using ::testing::HasSubstr;

// `frozen` stages without backward in front.
PipelineSchedule scheduleOf(ScheduleKind kind, int64_t grids, int64_t stages, int64_t microbatches,
                            int64_t frozen = 0) {
  PipelineShape shape{grids, std::vector<bool>(stages, true), microbatches};
  std::fill_n(shape.hasBackward.begin(), frozen, false);
  return makeSchedule(kind, shape).value();
}

// The whole backward takes as long as its halves.
PipelineTimes equalStages(int64_t stages, double forward, double input, double weight,
                          double transfer = 0) {
  return {std::vector<StageTimes>(stages, {forward, input + weight, input, weight}), transfer};
}

double bubbleOf(const PipelineSchedule& schedule, const PipelineTimes& times) {
  return replaySchedule(schedule, times).value().bubble();
}

TEST(Timeline, SingleRunsMayTakeAnotherTime) {
  PipelineTimes times = equalStages(1, 1, 1, 1);
  times.ofRun[{Phase::kBackward, 0, 2}] = 10;
  EXPECT_EQ(replaySchedule(scheduleOf(ScheduleKind::kOneFOneB, 1, 1, 3), times).value().makespan,
            3 * 1 + 2 * 2 + 10);
}

TEST(Timeline, RunsWaitForTheGridAndForTheirInputs) {
  const PipelineSchedule schedule = scheduleOf(ScheduleKind::kOneFOneB, 2, 2, 2);
  const Timeline timeline =
      replaySchedule(schedule, equalStages(2, 2, 1, 2, /*transfer=*/0.5)).value();
  auto timesOf = [&](int64_t grid) {
    std::string text;
    for (const TimedRun& each : timeline.grids[grid]) {
      absl::StrAppend(&text, text.empty() ? "" : " ", each.start, "-", each.end);
    }
    return text;
  };
  EXPECT_EQ(timesOf(0), "0-2 2-4 8-11 13-16");                // F0 F1 B0 B1
  EXPECT_EQ(timesOf(1), "2.5-4.5 4.5-7.5 7.5-9.5 9.5-12.5");  // F0 B0 F1 B1
  EXPECT_EQ(timeline.makespan, 16);
  EXPECT_EQ(timeline.busy, (std::vector<double>{10, 10}));
  EXPECT_EQ(timeline.bubble(), 1 - 10.0 / 16);
}

TEST(Timeline, BubblesOfThePapers) {
  constexpr double kError = 1e-12;
  for (int64_t grids = 1; grids <= 8; ++grids) {
    for (int64_t m = 1; m <= 32; ++m) {
      SCOPED_TRACE(absl::StrCat(grids, " grids, ", m, " microbatches"));
      const double p1 = grids - 1;
      // Whatever the ratio of forward and backward.
      for (double forward : {1.0, 0.3, 2.5}) {
        const PipelineTimes times = equalStages(grids, forward, 1, 1);
        for (ScheduleKind kind : {ScheduleKind::kGPipe, ScheduleKind::kOneFOneB}) {
          ASSERT_NEAR(bubbleOf(scheduleOf(kind, grids, grids, m), times), p1 / (m + p1), kError);
        }
      }
      if (m >= grids) {
        ASSERT_NEAR(
            bubbleOf(scheduleOf(ScheduleKind::kZbH1, grids, grids, m), equalStages(grids, 1, 1, 1)),
            p1 / (3 * m + p1), kError);
      }
      if (m % grids != 0) continue;
      for (int64_t chunks = 2; chunks <= 4; ++chunks) {
        ASSERT_NEAR(bubbleOf(scheduleOf(ScheduleKind::kInterleaved, grids, grids * chunks, m),
                             equalStages(grids * chunks, 1, 1, 1)),
                    p1 / (chunks * m + p1), kError);
      }
    }
  }
}

// Fewer microbatches than grids: the weight halves fill less, and never cost anything.
TEST(Timeline, ZbH1IsNeverSlowerThanOneFOneB) {
  for (int64_t grids = 2; grids <= 8; ++grids) {
    for (int64_t m = 1; m <= 32; ++m) {
      const PipelineTimes times = equalStages(grids, 1, 1, 1);
      EXPECT_LT(bubbleOf(scheduleOf(ScheduleKind::kZbH1, grids, grids, m), times),
                bubbleOf(scheduleOf(ScheduleKind::kOneFOneB, grids, grids, m), times));
    }
  }
}

// Measured times (ms) of a GPT of 1.5 B and of 6.2 B parameters on 8 stages, and the bubbles of
// their replay: Qi et al. 2024, "Zero Bubble Pipeline Parallelism", tables of profiled times and
// of bubble rates.
TEST(Timeline, PublishedBubbleRates) {
  struct Row {
    int64_t microbatches;
    double forward, input, weight, transfer;
    double oneFOneB, zbH1;
  };
  const Row rows[] = {
      {24, 18.522, 18.086, 9.337, 0.601, 0.2431, 0.1585},
      {32, 18.513, 18.086, 9.331, 0.626, 0.1985, 0.1242},
      {64, 18.546, 18.097, 9.321, 0.762, 0.1240, 0.0674},
      {24, 29.718, 29.444, 19.927, 0.527, 0.2347, 0.1323},
      {32, 29.802, 29.428, 19.530, 0.577, 0.1898, 0.1045},
      {64, 29.935, 29.621, 19.388, 0.535, 0.1091, 0.0554},
  };
  for (const Row& row : rows) {
    const PipelineTimes times = equalStages(8, row.forward, row.input, row.weight, row.transfer);
    auto bubble = [&](ScheduleKind kind) {
      return bubbleOf(scheduleOf(kind, 8, 8, row.microbatches), times);
    };
    EXPECT_NEAR(bubble(ScheduleKind::kOneFOneB), row.oneFOneB, 0.5e-4);
    EXPECT_NEAR(bubble(ScheduleKind::kZbH1), row.zbH1, 0.5e-4);
  }
}

// A frozen stage in front costs its first forward, if it is not the slowest.
TEST(Timeline, AFrozenPrefixStallsNothing) {
  for (ScheduleKind kind : {ScheduleKind::kGPipe, ScheduleKind::kOneFOneB, ScheduleKind::kZbH1}) {
    const PipelineTimes times = equalStages(4, 1, 1, 1);
    const Timeline with = replaySchedule(scheduleOf(kind, 4, 4, 8, /*frozen=*/1), times).value();
    const Timeline without = replaySchedule(scheduleOf(kind, 3, 3, 8), times).value();
    EXPECT_EQ(with.makespan, without.makespan + 1);
    EXPECT_EQ(with.busy, (std::vector<double>{8, 24, 24, 24}));
  }
}

// A gradient passes by a stage that needs none.
TEST(Timeline, BackwardWaitsForTheNextStageThatHasOne) {
  const PipelineSchedule schedule =
      makeSchedule(ScheduleKind::kOneFOneB, {3, {true, false, true}, 1}).value();
  const Timeline timeline = replaySchedule(schedule, equalStages(3, 1, 1, 1)).value();
  EXPECT_EQ(timeline.grids[0].back().start, 5);
  EXPECT_EQ(timeline.makespan, 7);
}

TEST(Timeline, AMakespanIsThatOfTheTimeline) {
  for (ScheduleKind kind : {ScheduleKind::kGPipe, ScheduleKind::kOneFOneB, ScheduleKind::kZbH1,
                            ScheduleKind::kInterleaved}) {
    const int64_t stages = kind == ScheduleKind::kInterleaved ? 8 : 4;
    const PipelineSchedule schedule = scheduleOf(kind, 4, stages, 8);
    PipelineTimes times = equalStages(stages, 1, 1, 1);
    times.stages[2] = {3, 5, 2.5, 2.5};
    const ScheduleReplay replay = ScheduleReplay::create(schedule).value();
    EXPECT_EQ(replay.makespan(times.stages), replay.timeline(times).makespan);
    EXPECT_EQ(replay.runs(), stages * 8 * (kind == ScheduleKind::kZbH1 ? 3 : 2));
  }
}

TEST(Timeline, SaysWhereAScheduleHangs) {
  const PipelineSchedule schedule = {
      {{Phase::kForward, 0, 0}, {Phase::kBackward, 0, 0}},
      {{Phase::kBackward, 1, 0}, {Phase::kForward, 1, 0}},
  };
  EXPECT_EQ(replaySchedule(schedule, equalStages(2, 1, 1, 1)).status().message(),
            "the schedule never ends: grid 0 waits for the inputs of backward of stage 0, "
            "microbatch 0");
  EXPECT_THAT(replaySchedule(schedule, equalStages(1, 1, 1, 1)).status().message(),
              HasSubstr("stage 1 has no times"));
}

}  // namespace
}  // namespace oriel
