#include "kernels/cuda/divisor.h"

#include <gtest/gtest.h>

#include <vector>

namespace oriel::kernels::cuda {
namespace {

constexpr int64_t kMax = (int64_t{1} << 31) - 1;

TEST(DivisorTest, QuotientsAreExact) {
  std::vector<int64_t> sizes = {kMax - 1, kMax};
  for (int64_t size = 1; size < 200; ++size) sizes.push_back(size);
  for (int64_t power = 256; power < kMax; power *= 2) {
    sizes.insert(sizes.end(), {power - 1, power, power + 1});
  }
  for (int64_t size : sizes) {
    const Divisor divisor = Divisor::By(size);
    std::vector<int64_t> numbers = {0, 1, kMax - 1, kMax};
    for (int64_t times : {int64_t{1}, int64_t{2}, int64_t{1000}, kMax / size}) {
      for (int64_t n : {times * size - 1, times * size, times * size + 1}) numbers.push_back(n);
    }
    for (int64_t n : numbers) {
      if (n > kMax) continue;
      int32_t rest = static_cast<int32_t>(n);
      EXPECT_EQ(divisor.Split(&rest), n / size) << n << " / " << size;
      EXPECT_EQ(rest, n % size) << n << " / " << size;
    }
  }
}

TEST(DivisorTest, LargeNumbersAreDividedToo) {
  int64_t rest = 1000 * kMax + 7;
  EXPECT_EQ(Divisor::By(kMax).Split(&rest), 1000);
  EXPECT_EQ(rest, 7);
}

}  // namespace
}  // namespace oriel::kernels::cuda
