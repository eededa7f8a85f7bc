// The executor on plans of several grids.
#include <chrono>
#include <cstring>
#include <future>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/base/box.h"
#include "runtime/base/status_testing.h"
#include "runtime/exec/executor.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/exec/receive_schedule.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/plan/two_stage_plan_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int kSteps = 3;
constexpr float kRate = 0.125f;

struct Trained {
  std::vector<float> losses, weights, predictions;
};

// TwoStagePlan by plain loops; the predictions are those of the first microbatch.
Trained TrainPlainly(int64_t samples, int64_t microbatches) {
  std::vector<float> w = {1.0f, 1.5f, 2.0f, 2.5f}, v = {0.5f, -0.5f, 0.25f, 1.0f};
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> dw(4), dv(4);
    float loss = 0;
    for (int64_t i = 0; i < samples * microbatches * 4; ++i) {
      const int64_t k = i % 4;
      const float x = Sample(i / 4, k), h = x * w[k], y = h * v[k];
      loss += 0.5f * y * y;
      dv[k] += y * h;
      dw[k] += y * v[k] * x;
    }
    for (int k = 0; k < 4; ++k) {
      w[k] -= kRate * dw[k];
      v[k] -= kRate * dv[k];
    }
    trained.losses.push_back(loss);
  }
  for (int64_t i = 0; i < samples * 4; ++i) {
    trained.predictions.push_back(Sample(i / 4, i % 4) * w[i % 4] * v[i % 4]);
  }
  trained.weights = w;
  trained.weights.insert(trained.weights.end(), v.begin(), v.end());
  return trained;
}

void FillInput(const TwoStageOptions& options, Executor& executor, int64_t rank,
               int64_t microbatch) {
  const int64_t rows = options.samples / options.ranks[0];
  const int64_t first = microbatch * options.samples + rank * rows;
  float* x = Floats(executor, plan::INPUT, "x");
  for (int64_t i = 0; i < rows * 4; ++i) x[i] = Sample(first + i / 4, i % 4);
}

// One rank's part: its losses, its weights and its predictions (none on the first grid).
Trained TrainRank(const TwoStageOptions& options, Executor& executor, int64_t rank) {
  const bool first = rank < options.ranks[0];
  float* weights = Floats(executor, plan::PARAMETER, first ? "w" : "v");
  const float start[2][4] = {{1.0f, 1.5f, 2.0f, 2.5f}, {0.5f, -0.5f, 0.25f, 1.0f}};
  std::memcpy(weights, start[first ? 0 : 1], sizeof start[0]);
  *Floats(executor, plan::SCALAR, "learning_rate") = kRate;
  Trained trained;
  for (int step = 0; step < kSteps; ++step) {
    for (const auto& entry : executor.program().schedule()) {
      if (first) FillInput(options, executor, rank, entry.microbatch());
      ORIEL_EXPECT_OK(executor.Run(entry.segment(), entry.microbatch()));
    }
    trained.losses.push_back(*Floats(executor, plan::OUTPUT, "loss"));
    // An evaluation between the steps disturbs none.
    if (first) FillInput(options, executor, rank, 0);
    ORIEL_EXPECT_OK(executor.Run(first ? "eval.0" : "eval.1"));
  }
  trained.weights.assign(weights, weights + 4);
  if (first) return trained;
  const float* y = Floats(executor, plan::OUTPUT, "y");
  trained.predictions.assign(y, y + options.samples / options.ranks[1] * 4);
  return trained;
}

class PipelineTraining : public ::testing::TestWithParam<TwoStageOptions> {};

// The same samples a step, however stages, ranks, copies and the order of runs are.
TEST_P(PipelineTraining, GivesTheNumbersOfPlainLoops) {
  const TwoStageOptions& options = GetParam();
  const plan::Plan plan = TwoStagePlan(options);
  ORIEL_ASSERT_OK(VerifyPlan(plan));
  const Trained expected = TrainPlainly(options.samples, options.microbatches);
  RunRanks(plan.world_size(), [&](int64_t rank, Communicator* world) {
    ExecutorOptions executor_options = TestOptions();
    executor_options.poison_dead_memory = true;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor,
                               Executor::Create(plan, rank, world, executor_options));
    const Trained trained = TrainRank(options, *executor, rank);
    ExpectNear(trained.losses, expected.losses);
    const int64_t second = rank - options.ranks[0];  // its index in the second grid
    const auto weights = expected.weights.begin() + (second < 0 ? 0 : 4);
    ExpectNear(trained.weights, {weights, weights + 4});
    if (second >= 0) {
      const int64_t share = options.samples / options.ranks[1] * 4;
      const auto predictions = expected.predictions.begin() + second * share;
      ExpectNear(trained.predictions, {predictions, predictions + share});
    }
    // What a rank has sent last must have arrived before it leaves.
    ORIEL_EXPECT_OK(world->Barrier());
  });
}

INSTANTIATE_TEST_SUITE_P(Plans, PipelineTraining,
                         ::testing::Values(TwoStageOptions{{1, 1}, 4, 4, 1, false},
                                           TwoStageOptions{{1, 1}, 4, 4, 2, false},
                                           TwoStageOptions{{1, 1}, 4, 5, 3, false},
                                           TwoStageOptions{{1, 1}, 4, 4, 4, true},
                                           TwoStageOptions{{2, 2}, 4, 4, 2, false},
                                           TwoStageOptions{{2, 1}, 4, 4, 1, false},
                                           TwoStageOptions{{1, 2}, 4, 3, 2, false},
                                           TwoStageOptions{{2, 4}, 8, 3, 3, true},
                                           TwoStageOptions{{2, 3}, 6, 2, 2, false}),
                         [](const auto& info) {
                           const TwoStageOptions& options = info.param;
                           return absl::StrCat("Ranks", options.ranks[0], "And", options.ranks[1],
                                               "Microbatches", options.microbatches, "Slots",
                                               options.slots, options.gpipe ? "GPipe" : "");
                         });

// Receives of grid 1 in 1F1B with two copies: two at the start, the third when backward.1 of the
// first microbatch has freed its copy.
TEST(ReceiveScheduleTest, PostsWhenTheCopyIsFree) {
  TwoStageOptions options;
  options.microbatches = 3;
  const plan::Plan plan = TwoStagePlan(options);
  // forward.1, 0; backward.1, 0; forward.1, 1; ..; update
  const auto second = ReceiveSchedule(plan.programs(1));
  ASSERT_EQ(second.size(), 8u);
  EXPECT_THAT(second[0], ElementsAre(ScheduledReceive{0, 0, 0}, ScheduledReceive{0, 0, 1}));
  EXPECT_THAT(second[1], IsEmpty());
  EXPECT_THAT(second[2], ElementsAre(ScheduledReceive{0, 0, 2}));
  for (int i = 3; i < 8; ++i) EXPECT_THAT(second[i], IsEmpty()) << i;
  // forward.0, 0; forward.0, 1; backward.0, 0; forward.0, 2; backward.0, 1; backward.0, 2; update
  const auto first = ReceiveSchedule(plan.programs(0));
  ASSERT_EQ(first.size(), 8u);
  const int loss = 3;  // instruction of update
  EXPECT_THAT(first[0], ElementsAre(ScheduledReceive{1, 0, 0}, ScheduledReceive{1, 0, 1},
                                    ScheduledReceive{2, loss, 0}));
  EXPECT_THAT(first[3], ElementsAre(ScheduledReceive{1, 0, 2}));
}

TEST(ReceiveScheduleTest, IsEmptyWhereNothingIsReceived) {
  EXPECT_THAT(ReceiveSchedule(SmallTrainingPlan(1, 2).programs(0)), IsEmpty());
}

// One side of a channel of a tensor [4, 6]: a grid of one axis, and the dimension that it cuts.
struct CutCase {
  int64_t source_ranks;
  int source_dim;  // -1: whole on every rank
  int64_t target_ranks;
  int target_dim;
};

class PipelineCuts : public ::testing::TestWithParam<CutCase> {};

// Parts that are not contiguous in a piece, in two copies.
TEST_P(PipelineCuts, EveryRankGetsItsPiece) {
  const CutCase& cut = GetParam();
  constexpr int64_t kMicrobatches = 5;
  const Shape whole = {4, 6};
  const auto buffer = [&](PlanBuilder& builder, plan::BufferKind kind, const char* name, int dim) {
    Shape shape = whole;
    plan::Sharding sharding;
    if (dim >= 0) {
      shape[dim] /= builder.grid().axes(0).size();
      while (sharding.dims_size() <= dim) sharding.add_dims();
      sharding.mutable_dims(dim)->add_axes("a0");
    }
    const int index =
        builder.Ring(kind, name, {DType::kF32, shape}, kind == plan::TRANSFER ? 2 : 1);
    *builder.program().mutable_buffers(index)->mutable_sharding() = sharding;
    auto* global = builder.program().mutable_buffers(index)->mutable_global_shape();
    global->Clear();
    global->Add(whole.begin(), whole.end());
    return index;
  };
  PlanBuilder builder(cut.source_ranks);
  const int in = buffer(builder, plan::ACCUMULATOR, "in", cut.source_dim);
  const int sent = buffer(builder, plan::TRANSFER, "sent", cut.source_dim);
  builder.AddGrid(cut.target_ranks);
  const int received = buffer(builder, plan::TRANSFER, "received", cut.target_dim);
  const int out = buffer(builder, plan::OUTPUT, "out", cut.target_dim);
  const int channel = builder.Channel("t", 0, sent, 1, received);
  for (const int grid : {0, 1}) {
    builder.UseGrid(grid);
    builder.Segment("forward." + std::to_string(grid));
    if (grid == 0) {
      builder.Copy(in, sent);
      builder.Send(channel, sent);
    } else {
      builder.Receive(channel, received);
      builder.Copy(received, out);
    }
    for (int64_t m = 0; m < kMicrobatches; ++m) {
      builder.Entry("forward." + std::to_string(grid), m);
    }
  }
  const plan::Plan plan = builder.plan();
  const auto value = [](int64_t microbatch, int64_t row, int64_t column) {
    return static_cast<float>(microbatch * 100 + row * 10 + column);
  };
  RunRanks(plan.world_size(), [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    const bool sends = rank < cut.source_ranks;
    const plan::Channel& channel = plan.channels(0);
    ORIEL_ASSERT_OK_AND_ASSIGN(
        TensorLayout layout,
        TensorLayout::Create(plan.grids(sends ? 0 : 1), sends ? channel.source() : channel.target(),
                             whole));
    const Box box = layout.BoxOf(rank);
    for (int64_t m = 0; m < kMicrobatches; ++m) {
      float* data = sends ? Floats(*executor, plan::ACCUMULATOR, "in")
                          : Floats(*executor, plan::OUTPUT, "out");
      const auto each = [&](auto visit) {
        for (int64_t i = 0; i < box.num_elements(); ++i) {
          visit(data[i], value(m, box.start[0] + i / box.size[1], box.start[1] + i % box.size[1]));
        }
      };
      if (sends) each([](float& at, float expected) { at = expected; });
      ORIEL_ASSERT_OK(executor->Run(sends ? "forward.0" : "forward.1", m));
      if (sends) continue;
      Floats(*executor, plan::OUTPUT, "out");  // waits
      each([](float at, float expected) { EXPECT_EQ(at, expected); });
    }
    ORIEL_EXPECT_OK(world->Barrier());
  });
}

const CutCase kCutCases[] = {{1, -1, 1, -1}, {2, 0, 1, -1}, {2, 1, 1, -1}, {1, -1, 2, 1},
                             {2, 1, 2, 0},   {2, 0, 2, 1},  {2, -1, 3, 1}, {3, 1, 2, 1},
                             {4, 0, 2, 0},   {2, 1, 2, 1}};
INSTANTIATE_TEST_SUITE_P(Grids, PipelineCuts, ::testing::ValuesIn(kCutCases), [](const auto& info) {
  const auto side = [](int64_t ranks, int dim) {
    return std::to_string(ranks) + (dim < 0 ? "Whole" : dim == 0 ? "Rows" : "Columns");
  };
  return side(info.param.source_ranks, info.param.source_dim) + "To" +
         side(info.param.target_ranks, info.param.target_dim);
});

// A sender runs ahead as far as it has copies, before its receiver does anything.
TEST(PipelineExecutor, SendDoesNotWait) {
  TwoStageOptions options;
  const plan::Plan plan = TwoStagePlan(options);
  std::promise<void> ahead;
  RunRanks(2, [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    if (rank == 0) {
      ORIEL_EXPECT_OK(executor->Run("forward.0", 0));
      ORIEL_EXPECT_OK(executor->Run("forward.0", 1));
      ahead.set_value();
    } else {
      ahead.get_future().wait();
      ORIEL_EXPECT_OK(executor->Run("forward.1", 0));
      ORIEL_EXPECT_OK(executor->Run("backward.1", 0));
      ORIEL_EXPECT_OK(executor->Run("forward.1", 1));
    }
    ORIEL_EXPECT_OK(world->Barrier());
  });
}

TEST(PipelineExecutor, RunsFollowTheSchedule) {
  const plan::Plan plan = TwoStagePlan({});
  RunRanks(2, [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    if (rank == 0) {
      EXPECT_THAT(executor->Run("forward.0", 1),
                  StatusIs(absl::StatusCode::kFailedPrecondition,
                           "rank 0, segment forward.0: microbatch 1 is not next in the schedule, "
                           "but forward.0 of microbatch 0"));
      EXPECT_THAT(executor->Run("forward.0", -1),
                  StatusIs(absl::StatusCode::kInvalidArgument,
                           "rank 0, segment forward.0: there is no microbatch -1"));
    }
    ORIEL_EXPECT_OK(world->Barrier());
  });
}

TEST(PipelineExecutor, ErrorNamesRankSegmentInstructionAndChannel) {
  const plan::Plan plan = TwoStagePlan({});
  RunRanks(2, [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    if (rank == 0) return world->Abort(absl::InternalError("out of paper"));
    const absl::Status status = executor->Run("forward.1", 0);
    if (TestBackend() != nullptr) {  // on a device, a run first looks whether the job goes on
      EXPECT_THAT(status, StatusIs(absl::StatusCode::kAborted,
                                   AllOf(HasSubstr("rank 1"), HasSubstr("out of paper"))));
      return;
    }
    // Whether it has failed when rank 1 gets ready to receive, or only when it waits.
    EXPECT_THAT(status,
                StatusIs(absl::StatusCode::kAborted,
                         AllOf(HasSubstr("rank 1, segment forward.1"), HasSubstr("channel 'h'"),
                               HasSubstr("instruction 0"), HasSubstr("out of paper"))));
  });
}

TEST(PipelineExecutor, RanksOfAPipelineNeedACommunicator) {
  plan::Plan plan = TwoStagePlan({});
  plan.set_world_size(1);
  EXPECT_THAT(Executor::Create(plan, 0, nullptr, TestOptions()).status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no communicator")));
}

using Clock = std::chrono::steady_clock;

double Milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// The name of a segment counts before its kind, and messages go on: forward.1 waits for forward.0.
TEST(PipelineExecutor, ReplacedComputeSleepsAndCommunicates) {
  const plan::Plan plan = TwoStagePlan({});
  RunRanks(2, [&](int64_t rank, Communicator* world) {
    ExecutorOptions options = TestOptions();
    options.replace_compute = {{"forward", 80}, {"forward.1", 0}};
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, options));
    float* weights = Floats(*executor, plan::PARAMETER, rank == 0 ? "w" : "v");
    for (int i = 0; i < 4; ++i) weights[i] = 1;
    if (rank == 0) FillInput({}, *executor, 0, 0);
    ORIEL_ASSERT_OK(world->Barrier());
    const Clock::time_point begin = Clock::now();
    ORIEL_EXPECT_OK(executor->Run(rank == 0 ? "forward.0" : "forward.1", 0));
    EXPECT_GE(Milliseconds(begin), rank == 0 ? 80 : 75);  // rank 1 may have begun a little later
    if (rank == 1) {
      ORIEL_EXPECT_OK(executor->Run("backward.1", 0));
      // Nothing was computed.
      const float* dv = Floats(*executor, plan::GRADIENT, "v");
      EXPECT_THAT(std::vector<float>(dv, dv + 4), ElementsAre(0, 0, 0, 0));
    }
    ORIEL_EXPECT_OK(world->Barrier());
  });
}

TEST(PipelineExecutor, ReplacedComputeNamesSegments) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  ExecutorOptions options = TestOptions();
  options.replace_compute = {{"forwards", 1}};
  EXPECT_THAT(Executor::Create(plan, 0, nullptr, options).status(),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "the plan has no segment 'forwards' whose computing could be replaced"));
  for (const double bad : {-1.0, std::numeric_limits<double>::quiet_NaN(), 1e300}) {
    options.replace_compute = {{"forward", bad}};
    EXPECT_THAT(Executor::Create(plan, 0, nullptr, options).status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("can't be replaced by")));
  }
}

// Runs, the waits within them, and nothing of a step that is not asked for.
TEST(PipelineExecutor, TraceHasRunsAndWaits) {
  TwoStageOptions options;
  options.ranks[1] = 2;
  const plan::Plan plan = TwoStagePlan(options);
  RunRanks(3, [&](int64_t rank, Communicator* world) {
    TraceRecorder recorder(2, 2);
    ExecutorOptions executor_options = TestOptions();
    executor_options.trace = &recorder;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor,
                               Executor::Create(plan, rank, world, executor_options));
    const plan::Program& program = executor->program();
    for (const int64_t step : {1, 2, 3}) {
      recorder.BeginStep(step);
      for (const auto& entry : program.schedule()) {
        ORIEL_EXPECT_OK(executor->Run(entry.segment(), entry.microbatch()));
      }
    }
    int runs = 0, receives = 0, collectives = 0;
    for (const TraceSlice& slice : recorder.slices()) {
      EXPECT_EQ(slice.step, 2);
      EXPECT_LE(slice.begin, slice.end);
      if (slice.kind == TraceSlice::Kind::kSegment) {
        const plan::ScheduleEntry& entry = program.schedule(runs++);
        EXPECT_EQ(program.segments(slice.segment).name(), entry.segment());
        EXPECT_EQ(slice.microbatch, entry.microbatch());
      }
      if (slice.kind == TraceSlice::Kind::kReceive) {
        ++receives;
        EXPECT_EQ(plan.channels(slice.channel).name(),
                  rank > 0                                             ? "h"
                  : program.segments(slice.segment).name() == "update" ? "loss"
                                                                       : "dh");
      }
      collectives += slice.kind == TraceSlice::Kind::kCollective ? 1 : 0;
    }
    EXPECT_EQ(runs, program.schedule_size());
    EXPECT_EQ(receives, rank == 0 ? options.microbatches + 1 : options.microbatches);
    EXPECT_EQ(collectives, rank == 0 ? 0 : 1);  // alone in its grid it waits for nobody
    ORIEL_EXPECT_OK(world->Barrier());
  });
}

}  // namespace
}  // namespace oriel::runtime
