#include "passes/lower/copy_clock.h"

#include "gtest/gtest.h"
#include "passes/strategy/pipeline_schedule.h"

namespace oriel {
namespace {

// Of the first grid: a segment for each phase and stage, of ten ticks each.
CopyClock clockOf(ScheduleKind kind, int64_t stages, int64_t grids, int64_t microbatches) {
  PipelineShape shape;
  shape.grids = grids;
  shape.hasBackward.assign(stages, true);
  shape.microbatches = microbatches;
  const PipelineSchedule schedule = *makeSchedule(kind, shape);
  std::vector<SegmentRun> runs;
  for (const StageRun& run : schedule.front()) {
    runs.emplace_back(3 * (run.stage / grids) + std::min(static_cast<int>(run.phase), 2),
                      run.microbatch);
  }
  const int64_t segments = 3 * stages / grids;
  std::vector<int64_t> begins;
  for (int64_t i = 0; i <= segments; ++i) begins.push_back(10 * i);
  return CopyClock(std::move(begins), std::move(runs));
}

TEST(CopyClockTest, OneForwardAndOneBackwardRepeatAfterAMicrobatch) {
  EXPECT_EQ(clockOf(ScheduleKind::kOneFOneB, 4, 4, 32).period(), 1);
}

TEST(CopyClockTest, InterleavedStagesRepeatAfterAsManyMicrobatchesAsGrids) {
  EXPECT_EQ(clockOf(ScheduleKind::kInterleaved, 8, 4, 32).period(), 4);
  EXPECT_EQ(clockOf(ScheduleKind::kInterleaved, 6, 2, 32).period(), 2);
}

TEST(CopyClockTest, WhatNeverRepeatsHasThePeriodOne) {
  EXPECT_EQ(clockOf(ScheduleKind::kGPipe, 4, 4, 8).period(), 1);
  EXPECT_EQ(clockOf(ScheduleKind::kOneFOneB, 4, 4, 1).period(), 1);
  EXPECT_EQ(CopyClock({0, 10}, {}).period(), 1);
}

}  // namespace
}  // namespace oriel
