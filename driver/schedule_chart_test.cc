#include "driver/schedule_chart.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {
namespace {

using ::testing::HasSubstr;

// Programs with the segments and schedules of stages, and no instructions. Forwards take `forward`
// ms, backwards twice as long, or each half as long.
plan::Plan planOf(ScheduleKind kind, const PipelineShape& shape, double forward) {
  plan::Plan plan;
  plan.mutable_training()->set_microbatches(shape.microbatches);
  const PipelineSchedule schedule = makeSchedule(kind, shape).value();
  for (int64_t grid = 0; grid < shape.grids; ++grid) {
    plan::Program* program = plan.add_programs();
    program->set_first_rank(2 * grid);
    program->set_rank_count(2);
    auto nameOf = [&](const StageRun& run) {
      // A single stage has no number.
      return shape.stages() == 1 ? phaseName(run.phase)
                                 : absl::StrCat(phaseName(run.phase), ".", run.stage);
    };
    for (int64_t stage = grid; stage < shape.stages(); stage += shape.grids) {
      program->add_stages(absl::StrCat("blocks ", stage));
    }
    for (const StageRun& run : schedule[grid]) {
      plan::ScheduleEntry* entry = program->add_schedule();
      entry->set_segment(nameOf(run));
      entry->set_microbatch(run.microbatch);
      if (run.microbatch > 0) continue;
      plan::Segment* segment = program->add_segments();
      segment->set_name(nameOf(run));
      segment->set_predicted_ms(run.phase == Phase::kBackward ? 2 * forward : forward);
    }
    program->add_schedule()->set_segment("update");
    plan::Segment* update = program->add_segments();
    update->set_name("update");
    update->set_predicted_ms(forward / 2);
    program->add_segments()->set_name("eval");
  }
  return plan;
}

std::string chartOf(const plan::Plan& plan, int64_t columns, bool color = false) {
  return scheduleText(plan, timelineOf(plan).value(), columns, color);
}

TEST(ScheduleChart, OneFOneB) {
  const plan::Plan plan = planOf(ScheduleKind::kOneFOneB, {2, {true, true}, 3}, 0.5);
  EXPECT_EQ(chartOf(plan, 60),
            "schedule    3 microbatches, time to the right\n"
            "  ranks 0-1  F0-F1-......B0====F2-B1====...B2====\n"
            "  ranks 2-3  ...F0-B0====F1-B1====F2-B2====......\n"
            "             F forward, B backward, of the microbatch of that number; . waits\n"
            "stages\n"
            "  ranks 0-1  blocks 0: works 75.0 % of the time, holds 2 microbatches at most\n"
            "  ranks 2-3  blocks 1: works 75.0 % of the time, holds 1 microbatch at most\n"
            "step        6.250 ms predicted, without transfers: 6.000 ms for the "
            "microbatches, 0.250 ms for the update\n"
            "bubble      25.0 % of the microbatches' time, in which even the busiest ranks wait\n");
}

// What reduces the gradients takes longer, once.
TEST(ScheduleChart, TheLastBackwardHasItsOwnTime) {
  plan::Plan plan = planOf(ScheduleKind::kOneFOneB, {1, {true}, 3}, 0.5);
  plan::Program* program = plan.mutable_programs(0);
  plan::Segment* last = program->add_segments();
  last->set_name("backward_last");
  last->set_predicted_ms(4);
  for (plan::ScheduleEntry& entry : *program->mutable_schedule()) {
    if (entry.segment() == "backward" && entry.microbatch() == 2) entry.set_segment(last->name());
  }
  EXPECT_EQ(timelineOf(plan)->timeline.makespan, 3 * 0.5 + 2 * 1 + 4);
}

TEST(ScheduleChart, SplitBackward) {
  const plan::Plan plan = planOf(ScheduleKind::kZbH1, {2, {true, true}, 2}, 20);
  EXPECT_THAT(chartOf(plan, 50), HasSubstr("  ranks 0-1  F0---F1---.....B0===W0~~~B1===W1~~~\n"));
}

// Behind a stage without backward.
TEST(ScheduleChart, StagesOfAProgramHaveLetters) {
  const plan::Plan plan = planOf(ScheduleKind::kInterleaved, {2, {false, true, true, true}, 2}, 1);
  const std::string chart = chartOf(plan, 100);
  EXPECT_THAT(chart, HasSubstr("  ranks 0-1  F0a---F1a---F0b---F1b---............B0b=========......"
                               "B1b=========............\n"));
  EXPECT_THAT(chart, HasSubstr("a blocks 0, b blocks 2: works 61.5 % of the time, holds 2 micro"));
}

TEST(ScheduleChart, OneStage) {
  EXPECT_THAT(chartOf(planOf(ScheduleKind::kOneFOneB, {1, {true}, 2}, 1), 100),
              HasSubstr("  ranks 0-1  F0----B0==========F1----B1==========\n"));
}

// Numbers, then runs, are left out where there is no room.
TEST(ScheduleChart, FitsTheWidth) {
  const PipelineShape shape{4, {true, true, true, true}, 64};
  const plan::Plan plan = planOf(ScheduleKind::kOneFOneB, shape, 0.5);
  for (const size_t columns : {30, 77, 300, 500}) {
    const std::vector<std::string> lines = absl::StrSplit(chartOf(plan, columns), '\n');
    for (int row = 1; row <= 4; ++row) {
      EXPECT_LE(lines[row].size(), columns) << lines[row];
      EXPECT_GE(lines[row].size(), columns / 2) << lines[row];
    }
    EXPECT_EQ(absl::StrContains(lines[5], "narrower than a column"), columns < 201);
  }
}

TEST(ScheduleChart, Colors) {
  const plan::Plan plan = planOf(ScheduleKind::kOneFOneB, {1, {true}, 1}, 1);
  EXPECT_THAT(chartOf(plan, 60, /*color=*/true),
              HasSubstr("\x1b[38;5;16;48;5;117mF0    \x1b[0m\x1b[38;5;16;48;5;120mB0"));
  EXPECT_THAT(chartOf(plan, 60), ::testing::Not(HasSubstr("\x1b")));
}

TEST(ScheduleChart, WithoutPredictions) {
  plan::Plan plan = planOf(ScheduleKind::kOneFOneB, {2, {true, true}, 3}, 0);
  EXPECT_FALSE(timelineOf(plan)->predicted);
  EXPECT_THAT(chartOf(plan, 80), HasSubstr("no times are predicted"));
  EXPECT_EQ(timelineOf(plan)->timeline.makespan, 12);
}

TEST(ScheduleChart, Json) {
  const plan::Plan plan = planOf(ScheduleKind::kOneFOneB, {2, {true, true}, 3}, 0.5);
  const auto json = nlohmann::json::parse(scheduleJson(plan, timelineOf(plan).value()));
  EXPECT_EQ(json["microbatches_ms"], 6);
  EXPECT_EQ(json["step_ms"], 6.25);
  EXPECT_EQ(json["bubble"], 0.25);
  EXPECT_EQ(json["programs"][0]["peak_in_flight"], 2);
  EXPECT_EQ(json["programs"][0]["busy_ms"], 4.5);
  EXPECT_EQ(json["programs"][1]["runs"][0], nlohmann::json({{"phase", "forward"},
                                                            {"stage", 1},
                                                            {"microbatch", 0},
                                                            {"start_ms", 0.5},
                                                            {"end_ms", 1.0}}));
}

TEST(ScheduleChart, SaysWhereAPlanHangs) {
  plan::Plan plan = planOf(ScheduleKind::kOneFOneB, {2, {true, true}, 1}, 1);
  plan.mutable_programs(1)->mutable_schedule()->SwapElements(0, 1);
  EXPECT_EQ(timelineOf(plan).status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace oriel::driver
