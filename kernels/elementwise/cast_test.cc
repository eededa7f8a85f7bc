#include <cmath>
#include <limits>

#include "kernels/testing.h"
#include "runtime/base/float16.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using testing::RunKernel;
using testing::Tensor;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor Cast(const Tensor& x, DType to) { return RunKernel("cast", {x}, {{to, x.shape()}})[0]; }

const DType kAll[] = {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64,
                      DType::kI32, DType::kI8,  DType::kU8,  DType::kBool};

TEST(CastTest, SmallWholeNumbersSurviveEveryPair) {
  for (DType from : kAll) {
    for (DType to : kAll) {
      const Tensor x = Tensor::Random(from, {40, 1037}, 1, 0, 2);
      std::vector<double> expected;
      for (double v : x.values()) {
        const bool whole =
            to != DType::kF32 && to != DType::kF64 && to != DType::kF16 && to != DType::kBF16;
        if (to == DType::kBool) {
          expected.push_back(v != 0);
        } else if (whole) {
          expected.push_back(std::trunc(v));
        } else if (to == DType::kF16) {
          expected.push_back(runtime::HalfToFloat(runtime::FloatToHalf(static_cast<float>(v))));
        } else if (to == DType::kBF16) {
          expected.push_back(
              runtime::BFloat16ToFloat(runtime::FloatToBFloat16(static_cast<float>(v))));
        } else {
          expected.push_back(v);
        }
      }
      ExpectClose(Cast(x, to), expected);
    }
  }
}

TEST(CastTest, FloatsTruncateTowardsZero) {
  const Tensor x({DType::kF32, {4}}, {1.9, -1.9, 0.5, -0.5});
  ExpectClose(Cast(x, DType::kI64), {1, -1, 0, 0});
}

TEST(CastTest, FloatsOutOfRangeSaturate) {
  const Tensor x({DType::kF32, {4}}, {1e30, -1e30, kNaN, kInfinity});
  ExpectClose(Cast(x, DType::kI32), {2147483647, -2147483648.0, 0, 2147483647});
  ExpectClose(Cast(x, DType::kU8), {255, 0, 0, 255});
}

TEST(CastTest, AnythingNonZeroIsTrue) {
  ExpectClose(Cast(Tensor({DType::kF32, {4}}, {0, -0.0, 0.1, kNaN}), DType::kBool), {0, 0, 1, 1});
  ExpectClose(Cast(Tensor({DType::kF16, {3}}, {0, -0.0, 1}), DType::kBool), {0, 0, 1});
}

}  // namespace
}  // namespace oriel::kernels
