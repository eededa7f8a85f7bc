#include "runtime/exec/executor.h"

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "runtime/base/status_testing.h"
#include "runtime/exec/executor_testing.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/verify.h"

namespace oriel::runtime {
namespace {

using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// Walks the schedule of `steps` steps. Returns the losses; `weights` are the final ones.
std::vector<float> Train(const plan::Plan& plan, Executor& executor, int64_t rank, int steps,
                         std::vector<float>* weights) {
  float* w = Floats(executor, plan::PARAMETER, "w");
  for (int i = 0; i < 4; ++i) w[i] = 1.0f + 0.5f * i;
  *Floats(executor, plan::SCALAR, "learning_rate") = 0.125f;
  const int64_t samples = plan.training().micro_batch();
  std::vector<float> losses;
  for (int step = 0; step < steps; ++step) {
    for (const auto& entry : executor.program().schedule()) {
      float* x = Floats(executor, plan::INPUT, "x");
      // Microbatches of a step are dealt to ranks in turn.
      const int64_t first = (entry.microbatch() * plan.world_size() + rank) * samples;
      for (int64_t i = 0; i < samples * 4; ++i) x[i] = Sample(first + i / 4, i % 4);
      const absl::Status status = executor.Run(entry.segment());
      EXPECT_TRUE(status.ok()) << status;
    }
    losses.push_back(*Floats(executor, plan::OUTPUT, "loss"));
  }
  weights->assign(w, w + 4);
  return losses;
}

// The same training by plain loops: `samples` per step.
std::vector<float> TrainPlainly(int64_t samples, int steps, std::vector<float>* weights) {
  std::vector<float> w = {1.0f, 1.5f, 2.0f, 2.5f};
  std::vector<float> losses;
  for (int step = 0; step < steps; ++step) {
    std::vector<float> dw(4);
    float loss = 0;
    for (int64_t i = 0; i < samples * 4; ++i) {
      const float x = Sample(i / 4, i % 4);
      loss += 0.5f * x * w[i % 4] * x * w[i % 4];
      dw[i % 4] += x * w[i % 4] * x;
    }
    for (int i = 0; i < 4; ++i) w[i] -= 0.125f * dw[i];
    losses.push_back(loss);
  }
  *weights = w;
  return losses;
}

class ExecutorTraining : public ::testing::TestWithParam<int64_t> {};

// The same 8 samples a step, however they are spread over ranks and microbatches.
TEST_P(ExecutorTraining, GivesTheLossesOfPlainLoops) {
  const int64_t ranks = GetParam();
  const plan::Plan plan = SmallTrainingPlan(ranks, 4 / ranks);
  ORIEL_ASSERT_OK(VerifyPlan(plan));
  std::vector<float> expected_weights;
  const std::vector<float> expected = TrainPlainly(8, 3, &expected_weights);
  RunRanks(ranks, [&](int64_t rank, Communicator* world) {
    ExecutorOptions options = TestOptions();
    options.poison_dead_memory = true;
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, options));
    std::vector<float> weights;
    ExpectNear(Train(plan, *executor, rank, 3, &weights), expected);
    ExpectNear(weights, expected_weights);
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExecutorTraining, ::testing::Values(1, 2, 4));

TEST(Executor, OneRankNeedsNoCommunicator) {
  const plan::Plan plan = SmallTrainingPlan(1, 4);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, TestOptions()));
  std::vector<float> weights;
  std::vector<float> expected;
  ExpectNear(Train(plan, *executor, 0, 3, &weights), TrainPlainly(8, 3, &expected));
}

TEST(Executor, ArenaIsZeroAndAligned) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, TestOptions()));
  ORIEL_ASSERT_OK_AND_ASSIGN(const BufferView view, executor->Find(plan::GRADIENT, "w"));
  EXPECT_EQ(view.spec, (TensorSpec{DType::kF32, {4}}));
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view.data) % 64, 0u);
  const float* values = Floats(*executor, plan::GRADIENT, "w");
  EXPECT_THAT(std::vector<float>(values, values + 4), Each(0.0f));
}

TEST(Executor, FindNamesWhatIsMissing) {
  const plan::Plan plan = SmallTrainingPlan(1, 1);
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, TestOptions()));
  EXPECT_THAT(
      executor->Find(plan::OPTIMIZER_STATE, "w", "exp_avg"),
      StatusIs(absl::StatusCode::kNotFound, "rank 0 has no optimizer_state 'w' of slot exp_avg"));
  EXPECT_THAT(executor->Run("warm_up"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no segment 'warm_up'")));
}

// A plan of one segment, whose second instruction fails.
plan::Plan FailingPlan(int64_t ranks) {
  PlanBuilder builder(ranks);
  const int out = builder.Buffer(plan::OUTPUT, "y", {DType::kF32, {}});
  builder.Segment("forward");
  builder.FillZero(out);
  builder.Launch("test_fail", {}, {}, "/model/embed_tokens/Gather")
      .mutable_attributes()
      ->
      operator[]("index")
      .set_i(9);
  return builder.plan();
}

// Until a device has done what it runs behind Run's back.
absl::Status Wait(const Executor& executor) {
  ORIEL_ASSIGN_OR_RETURN(const BufferView view, executor.Find(plan::OUTPUT, "y"));
  float value = 0;
  return executor.Read(view, 0, &value, sizeof value);
}

TEST(Executor, ErrorNamesRankInstructionAndNode) {
  RunRanks(3, [](int64_t rank, Communicator* world) {
    const plan::Plan plan = FailingPlan(3);
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    absl::Status status = executor->Run("forward");
    if (status.ok()) status = Wait(*executor);
    EXPECT_THAT(status, StatusIs(TestBackend() == nullptr ? absl::StatusCode::kOutOfRange
                                                          : absl::StatusCode::kInvalidArgument,
                                 "rank " + std::to_string(rank) +
                                     ", segment forward, instruction 1 (test_fail): index 9 is not "
                                     "in [0, 7) [from onnx node /model/embed_tokens/Gather]"));
  });
}

TEST(Executor, PrepareErrorNamesInstruction) {
  plan::Plan plan = FailingPlan(1);
  auto* launch =
      plan.mutable_programs(0)->mutable_segments(0)->mutable_instructions(1)->mutable_launch();
  launch->clear_attributes();
  EXPECT_THAT(
      Executor::Create(plan, 0, nullptr, TestOptions()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument,
               AllOf(HasSubstr("rank 0, segment forward, instruction 1"), HasSubstr("'index'"))));
  launch->set_kernel("no_such_kernel");
  EXPECT_THAT(Executor::Create(plan, 0, nullptr, TestOptions()).status(),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no_such_kernel")));
}

TEST(Executor, WorldMustFitThePlan) {
  const plan::Plan plan = SmallTrainingPlan(4, 1);
  EXPECT_THAT(
      Executor::Create(plan, 0, nullptr, TestOptions()).status(),
      StatusIs(absl::StatusCode::kInvalidArgument, "the plan is for 4 ranks, but there are 1"));
}

// Axes a0 (outer, 2) and a1 (inner, 3): groups of a collective over one of them.
TEST(Executor, CollectiveSpansItsAxes) {
  PlanBuilder builder(6);
  auto* grid = builder.plan().mutable_grids(0);
  grid->mutable_axes(0)->set_size(2);
  grid->add_axes()->set_name("a1");
  grid->mutable_axes(1)->set_size(3);
  const TensorSpec scalar{DType::kF32, {}};
  const int in = builder.Buffer(plan::ACCUMULATOR, "in", scalar);
  const int outer = builder.Buffer(plan::OUTPUT, "outer", scalar);
  const int inner = builder.Buffer(plan::OUTPUT, "inner", scalar);
  const int all = builder.Buffer(plan::OUTPUT, "all", scalar);
  const int none = builder.Buffer(plan::OUTPUT, "none", scalar);
  builder.Segment("forward");
  builder.AllReduce({in}, {outer});
  builder.AllReduce({in}, {inner}).set_axes(0, "a1");
  builder.AllReduce({in}, {all}).add_axes("a1");
  builder.AllReduce({in}, {none}).clear_axes();
  const plan::Plan plan = builder.plan();
  RunRanks(6, [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    *Floats(*executor, plan::ACCUMULATOR, "in") = std::pow(10.0f, rank);
    ORIEL_ASSERT_OK(executor->Run("forward"));
    const float columns[] = {1001, 10010, 100100};
    EXPECT_EQ(*Floats(*executor, plan::OUTPUT, "outer"), columns[rank % 3]);
    EXPECT_EQ(*Floats(*executor, plan::OUTPUT, "inner"), rank < 3 ? 111 : 111000);
    EXPECT_EQ(*Floats(*executor, plan::OUTPUT, "all"), 111111);
    EXPECT_EQ(*Floats(*executor, plan::OUTPUT, "none"), std::pow(10.0f, rank));
  });
}

// A group of a grid of axes of size 2, named a0, a1, .. from the outermost.
struct PiecesCase {
  int axes;                // of the grid
  std::vector<int> group;  // those that the group spans
};

class ExecutorPieces : public ::testing::TestWithParam<PiecesCase> {};

// Brings [2, 2, 3] and [2, 2 n, 3] on each of the group's n ranks; what moves pieces does so along
// the middle dimension.
TEST_P(ExecutorPieces, AreNumberedByCoordinates) {
  const auto& [axes, group_axes] = GetParam();
  const int64_t ranks = int64_t{1} << axes;
  const int64_t n = int64_t{1} << group_axes.size();
  PlanBuilder builder(ranks);
  plan::Grid* grid = builder.plan().mutable_grids(0);
  grid->clear_axes();
  grid->mutable_mesh(0)->clear_axes();
  for (int i = 0; i < axes; ++i) {
    auto* axis = grid->add_axes();
    axis->set_name("a" + std::to_string(i));
    axis->set_size(2);
    grid->mutable_mesh(0)->add_axes(axis->name());
  }
  std::vector<std::string> names;
  for (const int axis : group_axes) names.push_back("a" + std::to_string(axis));
  const auto buffer = [&](plan::BufferKind kind, const char* name, const Shape& shape) {
    return builder.Buffer(kind, name, {DType::kF32, shape});
  };
  const int piece = buffer(plan::ACCUMULATOR, "piece", {2, 2, 3});
  const int whole = buffer(plan::ACCUMULATOR, "whole", {2, 2 * n, 3});
  builder.Segment("forward");
  const auto collective = [&](plan::Collective::Kind kind, int operand, const char* name,
                              const Shape& shape) -> plan::Collective& {
    auto& result = builder.Collective(kind, operand, buffer(plan::OUTPUT, name, shape));
    result.mutable_axes()->Clear();
    result.mutable_axes()->Add(names.begin(), names.end());
    return result;
  };
  collective(plan::Collective::ALL_GATHER, piece, "gathered", {2, 2 * n, 3}).set_concat_dims(0, 1);
  auto& scatter = collective(plan::Collective::REDUCE_SCATTER, whole, "scattered", {2, 2, 3});
  scatter.set_split_dims(0, 1);
  scatter.set_reduction(plan::Collective::SUM);
  collective(plan::Collective::ALL_TO_ALL, whole, "to_front", {2 * n, 2, 3}).set_split_dims(0, 1);
  auto& to_back = collective(plan::Collective::ALL_TO_ALL, whole, "to_back", {2, 2, 3 * n});
  to_back.set_split_dims(0, 1);
  to_back.set_concat_dims(0, 2);
  builder.Slice(whole, buffer(plan::OUTPUT, "sliced", {2, 2, 3}), 1, names);
  builder.Segment("backward");
  builder.Segment("update");
  builder.Schedule(/*micro_batch=*/1, /*microbatches=*/1);
  // Every rank has data of its own in the same buffers, which no sharding describes: not verified.
  const plan::Plan plan = builder.plan();

  // Coordinates of a rank: its bits. Piece j of the group lies on the rank whose bits on the
  // group's axes are those of j.
  const auto member = [&, &group_axes = group_axes, axes = axes](int64_t rank, int64_t j) {
    for (size_t i = 0; i < group_axes.size(); ++i) {
      const int64_t bit = int64_t{1} << (axes - 1 - group_axes[i]);
      rank = (j >> (group_axes.size() - 1 - i)) & 1 ? rank | bit : rank & ~bit;
    }
    return rank;
  };
  const auto value = [](int64_t rank, int64_t i) { return static_cast<float>(1000 * rank + i); };
  RunRanks(ranks, [&](int64_t rank, Communicator* world) {
    ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, rank, world, TestOptions()));
    for (int i = 0; i < 12; ++i) Floats(*executor, plan::ACCUMULATOR, "piece")[i] = value(rank, i);
    for (int i = 0; i < 12 * n; ++i) {
      Floats(*executor, plan::ACCUMULATOR, "whole")[i] = value(rank, i);
    }
    ORIEL_ASSERT_OK(executor->Run("forward"));
    int64_t mine = 0;
    while (member(rank, mine) != rank) ++mine;
    const auto out = [&](const char* name) { return Floats(*executor, plan::OUTPUT, name); };
    for (int64_t o = 0; o < 2; ++o) {
      for (int64_t m = 0; m < 2; ++m) {
        for (int64_t x = 0; x < 3; ++x) {
          const int64_t in_piece = (o * 2 + m) * 3 + x;
          const int64_t in_whole = (o * 2 * n + mine * 2 + m) * 3 + x;
          float sum = 0;
          for (int64_t j = 0; j < n; ++j) {
            const int64_t peer = member(rank, j);
            sum += value(peer, in_whole);
            EXPECT_EQ(out("gathered")[(o * 2 * n + j * 2 + m) * 3 + x], value(peer, in_piece));
            EXPECT_EQ(out("to_front")[((j * 2 + o) * 2 + m) * 3 + x], value(peer, in_whole));
            EXPECT_EQ(out("to_back")[((o * 2 + m) * n + j) * 3 + x], value(peer, in_whole));
          }
          EXPECT_EQ(out("scattered")[in_piece], sum);
          EXPECT_EQ(out("sliced")[in_piece], value(rank, in_whole));
        }
      }
    }
  });
}

const PiecesCase kPiecesCases[] = {{1, {}},     {1, {0}},    {2, {0}},    {2, {1}},
                                   {2, {0, 1}}, {3, {0}},    {3, {1}},    {3, {2}},
                                   {3, {0, 1}}, {3, {0, 2}}, {3, {1, 2}}, {3, {0, 1, 2}}};
INSTANTIATE_TEST_SUITE_P(Groups, ExecutorPieces, ::testing::ValuesIn(kPiecesCases),
                         [](const auto& info) {
                           std::string name = "Of" + std::to_string(1 << info.param.axes) + "Over";
                           for (const int axis : info.param.group) name += std::to_string(axis);
                           return name;
                         });

TEST(Executor, PoisonShowsAValueThatSurvivesByChance) {
  PlanBuilder builder(1);
  const TensorSpec row{DType::kF32, {4}};
  const int temporary = builder.Buffer(plan::TEMPORARY, "t", row);
  const int kept = builder.Buffer(plan::ACCUMULATOR, "kept", row);
  const int out = builder.Buffer(plan::OUTPUT, "y", row);
  builder.Segment("write");
  builder.FillZero(temporary);
  builder.FillZero(kept);
  builder.Segment("read");
  builder.Launch("test_multiply", {temporary, temporary}, {out});
  const plan::Plan plan = builder.plan();
  ExecutorOptions options = TestOptions();
  options.poison_dead_memory = true;
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
  ORIEL_ASSERT_OK(executor->Run("write"));
  ORIEL_ASSERT_OK(executor->Run("read"));
  EXPECT_TRUE(std::isnan(*Floats(*executor, plan::OUTPUT, "y")));
  EXPECT_EQ(*Floats(*executor, plan::ACCUMULATOR, "kept"), 0);
}

TEST(Executor, ProfileCountsRunsAndTime) {
  const plan::Plan plan = SmallTrainingPlan(1, 2);
  ExecutorOptions options = TestOptions();
  options.profile = true;
  ORIEL_ASSERT_OK_AND_ASSIGN(auto executor, Executor::Create(plan, 0, nullptr, options));
  std::vector<float> weights;
  Train(plan, *executor, 0, 3, &weights);
  ORIEL_ASSERT_OK_AND_ASSIGN(const SegmentProfile profile, executor->Profile("forward"));
  EXPECT_EQ(profile.runs, 6);
  EXPECT_THAT(profile.nanoseconds, AllOf(SizeIs(4), Each(::testing::Gt(0))));
  ORIEL_ASSERT_OK_AND_ASSIGN(executor, Executor::Create(plan, 0, nullptr, TestOptions()));
  EXPECT_THAT(executor->Profile("forward").status(),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("profile")));
}

}  // namespace
}  // namespace oriel::runtime
