#include "kernels/shape/shape.h"

#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::Attributes;
using testing::ExpectClose;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;
using Ints = std::vector<int64_t>;

// Every element size.
const DType kSizes[] = {DType::kF64, DType::kF32, DType::kBF16, DType::kU8};

// Index of row-major element `i` of `shape`.
Ints Unravel(int64_t i, const Shape& shape) {
  Ints index(shape.size());
  for (size_t d = shape.size(); d-- > 0;) {
    index[d] = i % shape[d];
    i /= shape[d];
  }
  return index;
}
int64_t Ravel(const Ints& index, const Shape& shape) {
  int64_t i = 0;
  for (size_t d = 0; d < shape.size(); ++d) i = i * shape[d] + index[d];
  return i;
}

TEST(ShapeTest, TransposePermutes) {
  const struct {
    Shape shape;
    Ints permutation;
  } cases[] = {
      {{3}, {0}},
      {{5, 7}, {1, 0}},
      {{200, 333}, {1, 0}},           // tiles with tails, several threads
      {{2, 5, 4, 16}, {0, 2, 1, 3}},  // heads: whole rows
      {{8, 33, 9, 64}, {0, 2, 1, 3}},
      {{2, 5, 4, 16}, {0, 2, 3, 1}},
      {{2, 19, 4, 17}, {0, 1, 3, 2}},
      {{3, 4, 5}, {2, 1, 0}},
      {{3, 4, 5}, {2, 0, 1}},
      {{3, 1, 5, 2}, {3, 1, 0, 2}},
      {{2, 3, 4, 5, 6}, {4, 2, 0, 3, 1}},
      {{4, 3}, {0, 1}},  // nothing moves
      {{0, 3}, {1, 0}},
      {{}, {}},
  };
  for (const auto& c : cases) {
    for (DType dtype : kSizes) {
      SCOPED_TRACE(runtime::ShapeToString(c.shape) + runtime::ShapeToString(c.permutation));
      const Tensor x = Tensor::Random(dtype, c.shape, 1, 0, 100);
      Shape result;
      for (int64_t d : c.permutation) result.push_back(c.shape[d]);
      const std::vector<double> values = x.values();
      std::vector<double> expected(values.size());
      for (int64_t i = 0; i < x.size(); ++i) {
        const Ints from = Unravel(i, c.shape);
        Ints to;
        for (int64_t d : c.permutation) to.push_back(from[d]);
        expected[Ravel(to, result)] = values[i];
      }
      const Tensor y =
          RunKernel("transpose", {x}, {{dtype, result}}, {{"permutation", c.permutation}})[0];
      EXPECT_EQ(y.values(), expected);
    }
  }
}

TEST(ShapeTest, TransposeRefusesWhatIsNoPermutation) {
  const Tensor x = Tensor::Random(DType::kF32, {2, 2}, 1);
  EXPECT_EQ(TryKernel("transpose", {x}, {x.spec()}, {{"permutation", Ints{0, 0}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ShapeTest, BroadcastRepeats) {
  const struct {
    Shape from, to;
  } cases[] = {
      {{}, {4, 5}},
      {{5}, {4, 5}},
      {{4, 1}, {4, 5}},
      {{1, 5}, {4, 5}},
      {{4, 5}, {4, 5}},
      {{3, 1, 5}, {2, 3, 4, 5}},
      {{3, 1, 1}, {3, 300, 200}},
      {{1, 7, 1, 2}, {3, 7, 5, 2}},
      {{1}, {0}},
  };
  for (const auto& c : cases) {
    for (DType dtype : kSizes) {
      SCOPED_TRACE(runtime::ShapeToString(c.from) + runtime::ShapeToString(c.to));
      const Tensor x = Tensor::Random(dtype, c.from, 2, 0, 100);
      const std::vector<double> values = x.values();
      std::vector<double> expected;
      for (int64_t i = 0; i < runtime::NumElements(c.to); ++i) {
        const Ints index = Unravel(i, c.to);
        Ints own(index.end() - c.from.size(), index.end());
        for (size_t d = 0; d < own.size(); ++d) own[d] = c.from[d] == 1 ? 0 : own[d];
        expected.push_back(values[Ravel(own, c.from)]);
      }
      EXPECT_EQ(RunKernel("broadcast", {x}, {{dtype, c.to}})[0].values(), expected);
    }
  }
}

TEST(ShapeTest, SliceTakesABox) {
  const struct {
    Shape shape;
    Ints starts, limits, strides;
  } cases[] = {
      {{10}, {2}, {9}, {1}},
      {{10}, {1}, {10}, {3}},
      {{4, 6}, {0, 2}, {4, 5}, {1, 1}},
      {{4, 6}, {1, 0}, {3, 6}, {1, 1}},
      {{40, 2000}, {1, 3}, {40, 1999}, {1, 1}},
      {{5, 6, 7}, {1, 0, 2}, {5, 6, 7}, {2, 3, 2}},
      {{5, 6}, {2, 0}, {2, 6}, {1, 1}},  // nothing
  };
  for (const auto& c : cases) {
    for (DType dtype : kSizes) {
      SCOPED_TRACE(runtime::ShapeToString(c.shape) + runtime::ShapeToString(c.starts));
      const Tensor x = Tensor::Random(dtype, c.shape, 3, 0, 100);
      Shape result;
      for (size_t d = 0; d < c.shape.size(); ++d) {
        result.push_back((c.limits[d] - c.starts[d] + c.strides[d] - 1) / c.strides[d]);
      }
      const std::vector<double> values = x.values();
      std::vector<double> expected;
      for (int64_t i = 0; i < runtime::NumElements(result); ++i) {
        Ints index = Unravel(i, result);
        for (size_t d = 0; d < index.size(); ++d) index[d] = c.starts[d] + index[d] * c.strides[d];
        expected.push_back(values[Ravel(index, c.shape)]);
      }
      const Attributes attributes = {
          {"starts", c.starts}, {"limits", c.limits}, {"strides", c.strides}};
      EXPECT_EQ(RunKernel("slice", {x}, {{dtype, result}}, attributes)[0].values(), expected);
    }
  }
}

TEST(ShapeTest, SliceOutsideIsInvalid) {
  const Tensor x = Tensor::Random(DType::kF32, {4}, 1);
  const Attributes attributes = {{"starts", Ints{2}}, {"limits", Ints{5}}, {"strides", Ints{1}}};
  EXPECT_EQ(TryKernel("slice", {x}, {{DType::kF32, {3}}}, attributes).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ShapeTest, PadSurrounds) {
  const struct {
    Shape shape;
    Ints low, high, interior;
    double value;
  } cases[] = {
      {{7}, {1}, {0}, {0}, 0},
      {{3}, {1}, {2}, {2}, 5},
      {{3, 4}, {0, 2}, {1, 0}, {1, 0}, 7},
      {{2, 3, 4}, {1, 1, 1}, {1, 1, 1}, {2, 1, 3}, 9},
      {{60, 1000}, {1, 2}, {3, 4}, {0, 0}, 1},
  };
  for (const auto& c : cases) {
    for (DType dtype : kSizes) {
      SCOPED_TRACE(runtime::ShapeToString(c.shape));
      const Tensor x = Tensor::Random(dtype, c.shape, 4, 0, 100);
      Shape result;
      for (size_t d = 0; d < c.shape.size(); ++d) {
        result.push_back(c.low[d] + c.high[d] + c.shape[d] + (c.shape[d] - 1) * c.interior[d]);
      }
      const std::vector<double> values = x.values();
      std::vector<double> expected(runtime::NumElements(result), c.value);
      for (int64_t i = 0; i < x.size(); ++i) {
        Ints index = Unravel(i, c.shape);
        for (size_t d = 0; d < index.size(); ++d)
          index[d] = c.low[d] + index[d] * (c.interior[d] + 1);
        expected[Ravel(index, result)] = values[i];
      }
      const Attributes attributes = {
          {"low", c.low}, {"high", c.high}, {"interior", c.interior}, {"value", c.value}};
      EXPECT_EQ(RunKernel("pad", {x}, {{dtype, result}}, attributes)[0].values(), expected);
    }
  }
}

TEST(ShapeTest, ConcatJoins) {
  for (DType dtype : kSizes) {
    for (int64_t dim : {0, 1, 2}) {
      std::vector<Tensor> parts;
      Shape result = {3, 4, 5};
      result[dim] = 0;
      for (int64_t size : {2, 1, 0, 4}) {
        Shape shape = {3, 4, 5};
        shape[dim] = size;
        result[dim] += size;
        parts.push_back(Tensor::Random(dtype, shape, 5 + size, 0, 100));
      }
      std::vector<double> expected(runtime::NumElements(result));
      int64_t place = 0;
      for (const Tensor& part : parts) {
        const std::vector<double> values = part.values();
        for (int64_t i = 0; i < part.size(); ++i) {
          Ints index = Unravel(i, part.shape());
          index[dim] += place;
          expected[Ravel(index, result)] = values[i];
        }
        place += part.shape()[dim];
      }
      EXPECT_EQ(RunKernel("concat", parts, {{dtype, result}}, {{"dim", dim}})[0].values(),
                expected);
    }
  }
}

TEST(ShapeTest, IotaCounts) {
  for (DType dtype : {DType::kI64, DType::kI32, DType::kF32, DType::kF64}) {
    for (int64_t dim : {0, 1, 2}) {
      const Shape shape = {2, 3, 4};
      std::vector<double> expected;
      for (int64_t i = 0; i < 24; ++i)
        expected.push_back(static_cast<double>(Unravel(i, shape)[dim]));
      ExpectClose(RunKernel("iota", {}, {{dtype, shape}}, {{"dim", dim}})[0], expected);
    }
  }
}

// 4 gaps of 2^62 elements are 0 in 64 bits, which would fit.
TEST(ShapeTest, PadRefusesSizesThatOverflow) {
  const Tensor x = Tensor::Random(DType::kF32, {5}, 1);
  const Attributes attributes = {
      {"low", Ints{0}}, {"high", Ints{0}}, {"interior", Ints{int64_t{1} << 62}}, {"value", 0.0}};
  EXPECT_EQ(TryKernel("pad", {x}, {x.spec()}, attributes).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(ShapeTest, FillConvertsItsValue) {
  for (DType dtype : {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI64, DType::kI32,
                      DType::kI8}) {
    const std::vector<double> expected(40 * 1037, -3);
    EXPECT_EQ(RunKernel("fill", {}, {{dtype, {40, 1037}}}, {{"value", -3.0}})[0].values(),
              expected);
  }
  EXPECT_EQ(RunKernel("fill", {}, {{DType::kBool, {2}}}, {{"value", 0.5}})[0].values(),
            (std::vector<double>{1, 1}));
}

TEST(ShapeTest, ReshapeCopies) {
  const Tensor x = Tensor::Random(DType::kF32, {4, 6}, 6);
  EXPECT_EQ(RunKernel("reshape", {x}, {{DType::kF32, {3, 8}}})[0].values(), x.values());
  EXPECT_EQ(TryKernel("reshape", {x}, {{DType::kF32, {3, 7}}}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
