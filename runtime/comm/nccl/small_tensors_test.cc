#include "runtime/comm/nccl/small_tensors.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Optional;

ReduceBuffer Buffer(DType dtype, int64_t count) { return {nullptr, nullptr, count, dtype}; }

TEST(SmallTensors, PacksThoseOfOneType) {
  const SmallTensors small =
      FindSmallTensors({Buffer(DType::kBF16, 9), Buffer(DType::kF32, 5), Buffer(DType::kBF16, 8),
                        Buffer(DType::kF32, 1), Buffer(DType::kBF16, 1 << 20),
                        Buffer(DType::kF32, 4), Buffer(DType::kBF16, 1)});
  EXPECT_THAT(small.places, ElementsAre(Optional(64), Optional(0), Optional(96), Optional(32),
                                        std::nullopt, Optional(48), Optional(112)));
  ASSERT_EQ(small.packs.size(), 2u);
  EXPECT_EQ(small.packs[0].dtype, DType::kF32);
  EXPECT_EQ(small.packs[0].begin, 0);
  EXPECT_EQ(small.packs[0].count, 16);
  EXPECT_EQ(small.packs[1].dtype, DType::kBF16);
  EXPECT_EQ(small.packs[1].begin, 64);
  EXPECT_EQ(small.packs[1].count, 32);
  EXPECT_EQ(small.bytes, 128);
}

TEST(SmallTensors, LeavesFewLargeAndEmptyOnesAlone) {
  const SmallTensors small =
      FindSmallTensors({Buffer(DType::kF32, 5), Buffer(DType::kF32, 6), Buffer(DType::kF32, 0),
                        Buffer(DType::kF32, 32 << 10), Buffer(DType::kBF16, 7)});
  EXPECT_THAT(small.packs, IsEmpty());
  EXPECT_THAT(small.places,
              ElementsAre(std::nullopt, std::nullopt, std::nullopt, std::nullopt, std::nullopt));
  EXPECT_EQ(small.bytes, 0);
}

}  // namespace
}  // namespace oriel::runtime
