#include "runtime/comm/reduce.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace oriel::runtime {
namespace {

TEST(SliceOf, CoversEveryElementOnce) {
  for (const int64_t count : {0, 1, 15, 16, 17, 1000, 12345}) {
    for (const int64_t size : {1, 2, 3, 64}) {
      for (const int64_t index : {0, 1, 5}) {
        std::vector<int> covered(count);
        for (int64_t rank = 0; rank < size; ++rank) {
          const Slice slice = SliceOf(count, DType::kF32, size, rank, index);
          ASSERT_GE(slice.count, 0);
          for (int64_t i = 0; i < slice.count; ++i) ++covered[slice.begin + i];
        }
        EXPECT_EQ(covered, std::vector<int>(count, 1)) << count << " over " << size;
      }
    }
  }
}

TEST(SliceOf, IsEvenAndAligned) {
  for (int64_t rank = 0; rank < 3; ++rank) {
    const Slice slice = SliceOf(48'000, DType::kBF16, 3, rank, 0);
    EXPECT_EQ(slice.begin % 32, 0);
    EXPECT_EQ(slice.count, 16'000);
  }
}

TEST(SliceOf, SmallBuffersGoToDifferentRanks) {
  for (int64_t index = 0; index < 4; ++index) {
    int64_t owners = 0;
    for (int64_t rank = 0; rank < 4; ++rank) {
      const bool owns = SliceOf(1, DType::kF32, 4, rank, index).count == 1;
      owners += owns;
      EXPECT_EQ(owns, (rank + index) % 4 == 0);
    }
    EXPECT_EQ(owners, 1);
  }
}

template <typename T>
T ReduceTwo(Reduction reduction, DType dtype, T a, T b) {
  T result{};
  const void* sources[] = {&a, &b};
  void* target = &result;
  ReduceInOrder(reduction, dtype, sources, absl::MakeConstSpan(&target, 1), 1);
  return result;
}

TEST(ReduceInOrder, KeepsNegativeZero) {
  EXPECT_TRUE(std::signbit(ReduceTwo(Reduction::kSum, DType::kF32, -0.0f, -0.0f)));
}

TEST(ReduceInOrder, MaximumTakesNanFromEitherSide) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ReduceTwo(Reduction::kMax, DType::kF32, nan, 1.0f)));
  EXPECT_TRUE(std::isnan(ReduceTwo(Reduction::kMax, DType::kF32, 1.0f, nan)));
  EXPECT_EQ(ReduceTwo(Reduction::kMax, DType::kF32, -2.0f, -1.0f), -1.0f);
}

TEST(ReduceInOrder, IntegerSumsWrap) {
  const int64_t max = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ReduceTwo<int64_t>(Reduction::kSum, DType::kI64, max, 1),
            std::numeric_limits<int64_t>::min());
  EXPECT_EQ(ReduceTwo<int64_t>(Reduction::kMax, DType::kI64, -5, 3), 3);
}

// 256 + 1 + 1 is 258 in f32; rounding after each sum would leave 256.
TEST(ReduceInOrder, RoundsBfloat16Once) {
  const uint16_t one = 0x3f80, two_hundred_fifty_six = 0x4380;
  const void* sources[] = {&two_hundred_fifty_six, &one, &one};
  uint16_t result = 0;
  void* target = &result;
  ReduceInOrder(Reduction::kSum, DType::kBF16, sources, absl::MakeConstSpan(&target, 1), 1);
  EXPECT_EQ(result, 0x4381);
}

// 2048 + 1 + 1 in f16, whose numbers are 2 apart there.
TEST(ReduceInOrder, RoundsHalfOnce) {
  const uint16_t one = 0x3c00, two_thousand_forty_eight = 0x6800;
  const void* sources[] = {&two_thousand_forty_eight, &one, &one};
  uint16_t result = 0;
  void* target = &result;
  ReduceInOrder(Reduction::kSum, DType::kF16, sources, absl::MakeConstSpan(&target, 1), 1);
  EXPECT_EQ(result, 0x6801);
}

}  // namespace
}  // namespace oriel::runtime
