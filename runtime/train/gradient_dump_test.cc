#include "runtime/train/gradient_dump.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <thread>

#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/exec/host_access.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/tensor_layout.h"
#include "runtime/train/checkpoint/safetensors.h"
#include "runtime/train/convert.h"
#include "runtime/train/data_testing.h"
#include "runtime/train/toy_executor_testing.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

constexpr float kScale = 2;

// A gradient [4, 6] that is cut over a0 and a pending sum over a1, scaled; tokens are a pending
// sum over a1, too.
plan::Plan TwoByTwo(DType dtype = DType::kF32, plan::BufferKind kind = plan::GRADIENT) {
  PlanBuilder builder(4);
  plan::Plan& plan = builder.plan();
  *plan.mutable_grids(0) = MakeGrid({2, 2});
  builder.Parameter("w", {DType::kF32, {4, 6}});
  const int gradient = builder.Buffer(kind, "w", {dtype, {2, 6}});
  const int tokens = builder.Buffer(plan::ACCUMULATOR, "token_count", {DType::kF32, {}});
  plan::Buffer* buffer = builder.program().mutable_buffers(gradient);
  buffer->set_name("gradient");  // the executor keeps buffers by their names
  buffer->set_scale(kScale);
  *buffer->mutable_sharding() = MakeSharding({{"a0"}}, {"a1"});
  *builder.program().mutable_buffers(tokens)->mutable_sharding() = MakeSharding({}, {"a1"});
  return plan;
}

// Of gradients in f32 or bf16, that are kept or of one step.
class DumpedTypeTest : public ::testing::TestWithParam<std::tuple<DType, plan::BufferKind>> {};
INSTANTIATE_TEST_SUITE_P(Types, DumpedTypeTest,
                         ::testing::Combine(::testing::Values(DType::kF32, DType::kBF16),
                                            ::testing::Values(plan::GRADIENT,
                                                              plan::STEP_GRADIENT)));

TEST_P(DumpedTypeTest, SumsAreTakenAndPiecesJoined) {
  const auto [dtype, kind] = GetParam();
  const plan::Plan plan = TwoByTwo(dtype, kind);
  const TempFolder folder;
  std::vector<float> expected(24);
  std::iota(expected.begin(), expected.end(), 1.0f);
  std::vector<std::unique_ptr<Communicator>> world = MakeInProcessWorld(4);
  const auto run = [&, dtype = dtype, kind = kind](int64_t rank) -> absl::Status {
    // The second copy of each piece is on a device.
    ToyExecutor executor(plan, rank, nullptr,
                         rank % 2 == 0 ? ToyExecutor::Memory::kHost : ToyExecutor::Memory::kDevice);
    ORIEL_ASSIGN_OR_RETURN(BufferView gradient, executor.Find(kind, "w", ""));
    ORIEL_ASSIGN_OR_RETURN(BufferView tokens, executor.Find(plan::ACCUMULATOR, "token_count", ""));
    // 3 and 5 tokens; a quarter of the sum comes from the first, the rest from the second.
    const float count = rank % 2 == 0 ? 3 : 5, share = rank % 2 == 0 ? 0.25f : 0.75f;
    ORIEL_RETURN_IF_ERROR(HostAccess(executor, tokens).Write(&count));
    float values[12];
    for (int i = 0; i < 12; ++i) values[i] = expected[rank / 2 * 12 + i] * 8 * kScale * share;
    char stored[sizeof values];
    ORIEL_RETURN_IF_ERROR(ConvertElements(DType::kF32, values, dtype, stored, 12));
    ORIEL_RETURN_IF_ERROR(HostAccess(executor, gradient).Write(stored));
    return DumpGradients(plan, executor, world[rank].get(), folder / "gradients.safetensors");
  };
  std::vector<absl::Status> statuses(4);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 4; ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = run(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) ORIEL_EXPECT_OK(status);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file,
                             SafetensorsFile::Open(folder / "gradients.safetensors"));
  std::vector<float> dumped(24);
  ORIEL_ASSERT_OK(file.Read("w", {DType::kF32, {4, 6}}, dumped.data()));
  EXPECT_EQ(dumped, expected);
}

// What ranks of one grid have: a gradient of "w", which is a pending sum over a0, and of `more`.
plan::Plan OneGrid(int64_t ranks, float scale, const std::vector<std::string>& more) {
  PlanBuilder builder(ranks);
  std::vector<std::string> names = more;
  names.push_back("w");
  for (const std::string& name : names) {
    builder.Parameter(name, {DType::kF32, {4, 6}});
    const int gradient = builder.Buffer(plan::GRADIENT, name, {DType::kF32, {4, 6}});
    builder.program().mutable_buffers(gradient)->set_name("gradient of " + name);
    builder.program().mutable_buffers(gradient)->set_scale(scale);
  }
  return builder.plan();
}

// A weight on two grids has the sum of both as its gradient. Rank 0's grid counts no tokens, and
// keeps no "v".
TEST(DumpGradientsTest, GridsAreSummed) {
  plan::Plan plan = OneGrid(2, 1, {"u"}), last = OneGrid(3, kScale, {"v"});
  plan::Buffer* tokens = last.mutable_programs(0)->add_buffers();
  tokens->set_kind(plan::ACCUMULATOR);
  tokens->set_name("tokens");
  tokens->set_ref("token_count");
  *tokens->mutable_local() = ToPlan(TensorSpec{DType::kF32, {}});
  *tokens->mutable_sharding() = MakeSharding({}, {"a0"});
  AppendGrid(last, &plan);
  const TempFolder folder;
  std::vector<std::unique_ptr<Communicator>> world = MakeInProcessWorld(5);
  const auto run = [&](int64_t rank) -> absl::Status {
    ToyExecutor executor(plan, rank, nullptr);
    const auto fill = [&](const std::string& name, float value) {
      absl::StatusOr<BufferView> view = executor.Find(plan::GRADIENT, name, "");
      const std::vector<float> values(24, value);
      return view.ok() ? HostAccess(executor, *view).Write(values.data()) : absl::OkStatus();
    };
    ORIEL_RETURN_IF_ERROR(fill("u", 4));
    ORIEL_RETURN_IF_ERROR(fill("v", 16));
    ORIEL_RETURN_IF_ERROR(fill("w", rank < 2 ? 12.0f : 8.0f));
    absl::StatusOr<BufferView> tokens = executor.Find(plan::ACCUMULATOR, "token_count", "");
    const auto count = static_cast<float>(rank - 1);
    if (tokens.ok()) ORIEL_RETURN_IF_ERROR(HostAccess(executor, *tokens).Write(&count));
    return DumpGradients(plan, executor, world[rank].get(), folder / "gradients.safetensors");
  };
  std::vector<absl::Status> statuses(5);
  std::vector<std::thread> threads;
  for (int64_t rank = 0; rank < 5; ++rank) {
    threads.emplace_back([&, rank] { statuses[rank] = run(rank); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const absl::Status& status : statuses) ORIEL_EXPECT_OK(status);
  ORIEL_ASSERT_OK_AND_ASSIGN(SafetensorsFile file,
                             SafetensorsFile::Open(folder / "gradients.safetensors"));
  EXPECT_EQ(file.tensors().size(), 3u);
  const auto expect = [&](const std::string& name, float value) {
    std::vector<float> dumped(24);
    ORIEL_ASSERT_OK(file.Read(name, {DType::kF32, {4, 6}}, dumped.data()));
    EXPECT_EQ(dumped, std::vector<float>(24, value)) << name;
  };
  // 1 + 2 + 3 tokens.
  expect("u", 2 * 4.0f / 6);
  expect("v", 3 * 16 / kScale / 6);
  expect("w", 2 * 12 / 6 + 3 * 8 / kScale / 6);
}

TEST(DumpGradientsTest, BufferThatIsNotItsPart) {
  plan::Plan plan = TwoByTwo();
  plan.set_world_size(1);
  *plan.mutable_grids(0) = MakeGrid({1, 1});
  ToyExecutor executor(plan, 0, nullptr);
  EXPECT_THAT(DumpGradients(plan, executor, nullptr, "none"),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("w: the rank's sum is f32[2, 6], its part is [4, 6]")));
}

}  // namespace
}  // namespace oriel::runtime
