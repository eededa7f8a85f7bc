#include "kernels/random/dropout.h"

#include <cmath>

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloatsAndBF16;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Ints = std::vector<int64_t>;

constexpr int64_t kSite = 0x123456789abcdef;

Attributes With(double ratio) { return {{"ratio", ratio}, {"site", kSite}}; }

Tensor Bits(const std::vector<double>& bits) {
  return Tensor({DType::kI64, {static_cast<int64_t>(bits.size())}}, bits);
}

// By the contract, element by element.
std::vector<double> Expected(const Tensor& x, const std::vector<double>& bits, double ratio) {
  std::vector<double> values = x.values();
  const int64_t each = x.size() / static_cast<int64_t>(bits.size());
  for (int64_t e = 0; e < x.size(); ++e) {
    if (bits[e / each] < 0) continue;
    const auto sample = static_cast<uint64_t>(bits[e / each]);
    const auto i = static_cast<uint64_t>(e % each);
    const runtime::PhiloxCounter words = runtime::Philox(
        {static_cast<uint32_t>(i / 4), static_cast<uint32_t>(i / 4 >> 32),
         static_cast<uint32_t>(sample), static_cast<uint32_t>(sample >> 32)},
        {static_cast<uint32_t>(kSite), static_cast<uint32_t>(uint64_t{kSite} >> 32)});
    const double u = (words[i % 4] >> 8) * 0x1p-24;
    values[e] = u < std::round(ratio * 0x1p24) * 0x1p-24 ? 0 : values[e] / (1 - ratio);
  }
  return values;
}

TEST(DropoutTest, DropsByTheContract) {
  const Shape shapes[] = {{3, 8}, {6, 5, 7}, {3}, {12}, {3, 4, 64}, {3, 2, 3, 2, 6}};
  const std::vector<double> bits = {5, -1, 1e18};
  for (const DType dtype : kFloatsAndBF16) {
    for (const Shape& shape : shapes) {
      const Tensor x = Tensor::Random(dtype, shape, 1);
      for (const double ratio : {0.0, 0.3, 0.99}) {
        const std::vector<double> expected = Expected(x, bits, ratio);
        ExpectClose(RunKernel("dropout", {x, Bits(bits)}, {x.spec()}, With(ratio))[0], expected);
        ExpectClose(RunKernel("dropout", {x, Bits(bits)}, {x.spec()}, With(ratio), 0)[0], expected);
      }
    }
  }
}

TEST(DropoutTest, SoManyAreZero) {
  const Tensor x({DType::kF32, {2, 50000}}, std::vector<double>(100000, 1));
  const std::vector<double> y =
      RunKernel("dropout", {x, Bits({1, 2})}, {x.spec()}, With(0.25))[0].values();
  int64_t zeros = 0, alike = 0;
  for (size_t i = 0; i < y.size(); ++i) zeros += y[i] == 0;
  for (size_t i = 0; i < y.size() / 2; ++i) alike += y[i] == y[i + y.size() / 2];
  EXPECT_NEAR(zeros / 1e5, 0.25, 0.01);                        // 7 deviations
  EXPECT_NEAR(alike / 5e4, 0.25 * 0.25 + 0.75 * 0.75, 0.015);  // the samples are independent
}

// Box [start, start + size) of a tensor.
Tensor BoxOf(const Tensor& x, const Ints& start, const Shape& size) {
  const std::vector<double> values = x.values();
  std::vector<double> box;
  Ints at(size.size(), 0);
  for (int64_t e = 0; e < runtime::NumElements(size); ++e) {
    int64_t index = 0;
    for (size_t d = 0; d < size.size(); ++d) index = index * x.shape()[d] + start[d] + at[d];
    box.push_back(values[index]);
    for (size_t d = size.size(); d-- > 0 && ++at[d] == size[d];) at[d] = 0;
  }
  return Tensor({x.spec().dtype, size}, box);
}

// What a rank has of a sharded tensor is that box of the whole one's result.
TEST(DropoutTest, PiecesAreThoseOfTheWhole) {
  struct Case {
    Shape whole, size;
    Ints start, cut;
  };
  const Case cases[] = {
      {{2, 8, 6}, {2, 4, 6}, {0, 4, 0}, {1}},
      {{2, 8, 6}, {2, 8, 2}, {0, 0, 4}, {2}},
      {{2, 8, 16}, {2, 8, 8}, {0, 0, 8}, {2}},
      {{4, 8, 6}, {4, 4, 3}, {0, 4, 3}, {1, 2}},
      {{4, 4, 6, 4, 2}, {4, 2, 6, 2, 2}, {0, 2, 0, 2, 0}, {1, 3}},
      {{4, 8, 6}, {2, 4, 3}, {2, 0, 3}, {1, 2}},
  };
  const std::vector<double> bits = {77, 5};
  for (const DType dtype : kFloatsAndBF16) {
    for (const Case& test : cases) {
      const Tensor x = Tensor::Random(dtype, test.whole, 2);
      const Tensor y = RunKernel("dropout", {x, Bits(bits)}, {x.spec()}, With(0.5))[0];
      const Tensor piece = BoxOf(x, test.start, test.size);
      const int64_t rows = test.whole[0] / 2;
      std::vector<double> own(bits.begin() + test.start[0] / rows,
                              bits.begin() + (test.start[0] + test.size[0]) / rows);
      std::vector<Tensor> operands = {piece, Bits(own)};
      for (const int64_t dim : test.cut) {
        operands.push_back(Tensor::Scalar(DType::kI64, static_cast<double>(test.start[dim])));
      }
      Attributes attributes = With(0.5);
      attributes["whole"] = Ints(test.whole);
      attributes["cut"] = test.cut;
      const Tensor result = RunKernel("dropout", operands, {piece.spec()}, attributes)[0];
      EXPECT_EQ(result.values(), BoxOf(y, test.start, test.size).values());
    }
  }
}

TEST(DropoutTest, LaunchesThatDoNotFit) {
  const Tensor x = Tensor::Random(DType::kF32, {4, 6}, 1);
  const auto message = [&](const std::vector<Tensor>& operands, const Attributes& attributes) {
    return std::string(
        TryKernel("dropout", operands, {operands[0].spec()}, attributes).status().message());
  };
  EXPECT_THAT(message({x, Bits({1, 2, 3})}, With(0.5)), HasSubstr("are not those of samples"));
  EXPECT_THAT(message({x, Bits({1, 2})}, With(1)), HasSubstr("ratio is not in [0, 1)"));
  Attributes cut = With(0.5);
  cut["cut"] = Ints{0};
  cut["whole"] = Ints{4, 12};
  const std::vector<Tensor> piece = {x, Bits({1, 2}), Tensor::Scalar(DType::kI64, 0)};
  EXPECT_THAT(message(piece, cut), HasSubstr("cut names no dimension behind the first"));
  cut["cut"] = Ints{1};
  cut["whole"] = Ints{4, 3};
  EXPECT_THAT(message(piece, cut), HasSubstr("larger than the whole"));
  cut["whole"] = Ints{12};
  EXPECT_THAT(message(piece, cut), HasSubstr("another rank"));
  EXPECT_THAT(message({x, Bits({1, 2})}, cut), HasSubstr("operands"));
}

}  // namespace
}  // namespace oriel::kernels
