#include "runtime/train/piece_gatherer.h"

#include <algorithm>
#include <numeric>
#include <thread>

#include "runtime/base/status_testing.h"
#include "runtime/comm/in_process.h"
#include "runtime/plan/plan_builder_testing.h"
#include "runtime/plan/plan_types.h"

namespace oriel::runtime {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::vector<int64_t> grid;
  plan::Sharding sharding;
  int64_t before = 0;  // ranks of another grid, which have nothing
};

// Each rank has its box of 0, 1, 2, .. (of a pending sum: times its index along
// the partial axes, from 1 on).
TEST(PieceGathererTest, PiecesAreSummedAndJoined) {
  const Case cases[] = {
      {{1}, {}},
      {{4}, {}},
      {{4}, MakeSharding({{}, {"a0"}})},
      {{2, 3}, MakeSharding({{"a1"}, {"a0"}})},
      {{2, 3}, MakeSharding({{}, {"a1", "a0"}})},
      {{2, 3}, MakeSharding({{"a1"}}, {"a0"})},
      {{2, 2, 2}, MakeSharding({{"a2"}}, {"a1"})},
      {{2, 2}, MakeSharding({}, {"a0", "a1"})},
      {{1}, {}, 1},
      {{2, 2}, MakeSharding({{"a1"}}, {"a0"}), 1},
      {{2, 3}, MakeSharding({{"a1"}, {"a0"}}), 2},
  };
  const Shape shape = {6, 12};
  std::vector<float> numbers(NumElements(shape));
  std::iota(numbers.begin(), numbers.end(), 0.0f);
  for (const Case& c : cases) {
    plan::Plan plan;
    if (c.before > 0) *plan.add_grids() = MakeGrid({c.before});
    plan::Grid& grid = *plan.add_grids();
    grid = MakeGrid(c.grid);
    grid.set_first_rank(c.before);
    const int64_t ranks = c.before + GridLayout(grid).size();
    std::vector<std::unique_ptr<Communicator>> world = MakeInProcessWorld(ranks);
    std::vector<float> result(numbers.size());
    const auto run = [&](int64_t rank, Communicator* comm) -> absl::Status {
      ORIEL_ASSIGN_OR_RETURN(TensorLayout layout, TensorLayout::Create(grid, c.sharding, shape));
      ORIEL_ASSIGN_OR_RETURN(PieceGatherer gatherer, PieceGatherer::Create(plan, comm));
      const auto take = [&](float* piece) {
        return gatherer.Gather(layout, DType::kF32, piece, rank == 0 ? result.data() : nullptr);
      };
      if (rank < c.before) {
        ORIEL_RETURN_IF_ERROR(gatherer.Sum(layout, DType::kF32, 1, nullptr));
        return take(nullptr);
      }
      std::vector<float> piece(NumElements(layout.piece()));
      CopyBox(WholeBox(shape), numbers.data(), layout.BoxOf(rank), piece.data(), sizeof(float));
      const auto group = GridLayout(grid).Group(rank, layout.partial());
      const auto place = std::find(group.begin(), group.end(), rank) - group.begin();
      for (float& value : piece) value *= static_cast<float>(place + 1);
      ORIEL_RETURN_IF_ERROR(
          gatherer.Sum(layout, DType::kF32, static_cast<int64_t>(piece.size()), piece.data()));
      const auto count = static_cast<float>(group.size());
      for (float& value : piece) value /= count * (count + 1) / 2;
      return take(piece.data());
    };
    std::vector<absl::Status> statuses(ranks);
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < ranks; ++rank) {
      threads.emplace_back([&, rank] { statuses[rank] = run(rank, world[rank].get()); });
    }
    for (std::thread& thread : threads) thread.join();
    for (const absl::Status& status : statuses) ORIEL_EXPECT_OK(status);
    EXPECT_EQ(result, numbers) << plan.DebugString() << c.sharding.DebugString();
  }
}

TEST(PieceGathererTest, WhatCannotBeGathered) {
  plan::Plan plan;
  *plan.add_grids() = MakeGrid({2});
  ORIEL_ASSERT_OK_AND_ASSIGN(PieceGatherer alone, PieceGatherer::Create(plan, nullptr));
  ORIEL_ASSERT_OK_AND_ASSIGN(TensorLayout halves,
                             TensorLayout::Create(plan.grids(0), MakeSharding({{"a0"}}), {2}));
  float piece = 1, target[2];
  EXPECT_THAT(alone.Gather(halves, DType::kF32, &piece, target),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("but there is one")));
  plan.mutable_grids(0)->set_first_rank(1);
  EXPECT_THAT(PieceGatherer::Create(plan, nullptr),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no grid with rank 0")));
}

}  // namespace
}  // namespace oriel::runtime
