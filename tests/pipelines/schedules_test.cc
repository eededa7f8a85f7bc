// Every schedule, in a plan whose stages pass a tensor on and its gradient back, with as few copies
// as hold the microbatches in flight: it is verified, so no rank waits for ever. With a copy less
// it is not.
#include <map>
#include <ostream>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "passes/strategy/pipeline_schedule.h"
#include "runtime/base/status_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/verify.h"

namespace oriel {
namespace {

using runtime::PlanBuilder;

struct Pipeline {
  ScheduleKind kind;
  PipelineShape shape;
};

void PrintTo(const Pipeline& pipeline, std::ostream* out) {
  *out << scheduleName(pipeline.kind) << " of " << pipeline.shape.stages() << " stages on "
       << pipeline.shape.grids << " grids, " << pipeline.shape.microbatches << " microbatches";
}

std::vector<Pipeline> Pipelines() {
  std::vector<Pipeline> result;
  for (const int64_t grids : {2, 3, 4, 8}) {
    for (const int64_t rounds : {1, 2, 5}) {
      for (const ScheduleKind kind : {ScheduleKind::kGPipe, ScheduleKind::kOneFOneB,
                                      ScheduleKind::kInterleaved, ScheduleKind::kZbH1}) {
        for (const int64_t frozen : {0, 1}) {
          const int64_t chunks = kind == ScheduleKind::kInterleaved ? rounds % 3 + 1 : 1;
          PipelineShape shape;
          shape.grids = grids;
          shape.hasBackward.assign(grids * chunks, true);
          for (int64_t i = 0; i < frozen; ++i) shape.hasBackward[i] = false;
          // The others take any number.
          shape.microbatches = rounds * grids + (chunks > 1 || rounds == 1 ? 0 : 1);
          if (kind == ScheduleKind::kInterleaved) shape.microbatches = rounds * grids;
          result.push_back({kind, shape});
        }
      }
    }
  }
  return result;
}

// The most microbatches that a stage holds from its first run among `from` to its last among `to`.
int64_t InFlight(const std::vector<StageRun>& runs, int64_t stage, const std::vector<Phase>& from,
                 const std::vector<Phase>& to) {
  const auto is = [](const std::vector<Phase>& phases, Phase phase) {
    return std::find(phases.begin(), phases.end(), phase) != phases.end();
  };
  std::map<int64_t, size_t> first, last;
  for (size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].stage != stage) continue;
    if (is(from, runs[i].phase)) first.emplace(runs[i].microbatch, i);
    if (is(to, runs[i].phase)) last[runs[i].microbatch] = i;
  }
  int64_t most = 1;
  for (const auto& [unused, begin] : first) {
    int64_t held = 0;
    for (const auto& [microbatch, other] : first) {
      const auto end = last.find(microbatch);
      held += other <= begin && end != last.end() && end->second >= begin ? 1 : 0;
    }
    most = std::max(most, held);
  }
  return most;
}

// A stage's rings.
struct Ends {
  int in = -1, out = -1, gradientIn = -1, gradientOut = -1, scratch = -1;
  int input = -1, output = -1, gradientInput = -1, gradientOutput = -1;  // channels
};

plan::Plan PlanOf(const Pipeline& pipeline, const PipelineSchedule& schedule) {
  const PipelineShape& shape = pipeline.shape;
  const runtime::TensorSpec batch{runtime::DType::kF32, {1, 4}};
  PlanBuilder builder(2);
  for (int64_t grid = 1; grid < shape.grids; ++grid) builder.AddGrid(2);
  builder.Batch(1, shape.microbatches, 2);
  const bool parts = pipeline.kind == ScheduleKind::kZbH1;
  const std::vector<Phase> forward = {Phase::kForward};
  const std::vector<Phase> input = {Phase::kBackward, Phase::kBackwardInput};
  const std::vector<Phase> weight = {Phase::kBackward, Phase::kBackwardWeight};
  std::vector<Ends> ends(shape.stages());
  for (int64_t stage = 0; stage < shape.stages(); ++stage) {
    const int grid = static_cast<int>(shape.gridOf(stage));
    builder.UseGrid(grid);
    const auto ring = [&](const char* name, int64_t slots) {
      const int index = builder.Ring(plan::TRANSFER, absl::StrCat(name, stage), batch, slots);
      builder.CutByRanks(index);
      return index;
    };
    Ends& own = ends[stage];
    own.in =
        ring("in", shape.hasBackward[stage] ? InFlight(schedule[grid], stage, forward, weight) : 1);
    own.out = ring("out", 1);
    own.gradientIn = ring("gradient_in", InFlight(schedule[grid], stage, input, weight));
    own.gradientOut = ring("gradient_out", 1);
    own.scratch = builder.Buffer(plan::TEMPORARY, absl::StrCat("scratch", stage), batch);
    builder.CutByRanks(own.scratch);
    if (stage == 0) continue;
    Ends& before = ends[stage - 1];
    const int from = static_cast<int>(shape.gridOf(stage - 1));
    own.input = before.output =
        builder.Channel(absl::StrCat("x", stage), from, before.out, grid, own.in);
    if (!shape.hasBackward[stage - 1]) continue;
    own.gradientOutput = before.gradientInput =
        builder.Channel(absl::StrCat("dx", stage), grid, own.gradientOut, from, before.gradientIn);
  }
  for (int64_t grid = 0; grid < shape.grids; ++grid) {
    builder.UseGrid(static_cast<int>(grid));
    for (int64_t stage = grid; stage < shape.stages(); stage += shape.grids) {
      const Ends& own = ends[stage];
      builder.Segment(absl::StrCat("forward.", stage));
      if (own.input >= 0) builder.Receive(own.input, own.in);
      if (own.input < 0) builder.FillZero(own.in);
      builder.Copy(own.in, own.out);
      if (own.output >= 0) builder.Send(own.output, own.out);
      if (!shape.hasBackward[stage]) continue;
      builder.Segment(absl::StrCat(parts ? "backward_input." : "backward.", stage));
      if (own.gradientInput >= 0) builder.Receive(own.gradientInput, own.gradientIn);
      if (own.gradientInput < 0) builder.FillZero(own.gradientIn);
      builder.Copy(own.gradientIn, own.gradientOut);
      if (own.gradientOutput >= 0) builder.Send(own.gradientOutput, own.gradientOut);
      if (parts) builder.Segment(absl::StrCat("backward_weight.", stage));
      builder.Copy(own.in, own.scratch);
      builder.Copy(own.gradientIn, own.scratch);
    }
    builder.Segment("update");
    for (const StageRun& run : schedule[grid]) {
      builder.Entry(absl::StrCat(phaseName(run.phase), ".", run.stage), run.microbatch);
    }
    builder.Entry("update", 0);
  }
  return builder.plan();
}

class SchedulesTest : public ::testing::TestWithParam<Pipeline> {};

TEST_P(SchedulesTest, NobodyWaitsForEver) {
  const auto schedule = makeSchedule(GetParam().kind, GetParam().shape);
  ORIEL_ASSERT_OK(schedule.status());
  const plan::Plan good = PlanOf(GetParam(), *schedule);
  ORIEL_EXPECT_OK(runtime::VerifyPlan(good));
  for (int program = 0; program < good.programs_size(); ++program) {
    for (int i = 0; i < good.programs(program).buffers_size(); ++i) {
      const plan::Buffer& buffer = good.programs(program).buffers(i);
      if (runtime::CopiesOf(buffer) == 1) continue;
      plan::Plan bad = good;
      bad.mutable_programs(program)->mutable_buffers(i)->mutable_copy_offsets()->RemoveLast();
      EXPECT_THAT(runtime::VerifyPlan(bad),
                  runtime::StatusIs(absl::StatusCode::kInvalidArgument,
                                    ::testing::HasSubstr(absl::StrCat("'", buffer.name(), "'"))));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, SchedulesTest, ::testing::ValuesIn(Pipelines()));

}  // namespace
}  // namespace oriel
