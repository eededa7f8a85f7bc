#include <utility>

#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

// Row-major offset of `index` in a tensor whose dimensions of size 1 repeat.
int64_t Offset(const std::vector<int64_t>& index, const Shape& shape) {
  int64_t at = 0;
  for (size_t d = 0; d < shape.size(); ++d) at = at * shape[d] + (shape[d] == 1 ? 0 : index[d]);
  return at;
}

TEST(RopeTest, RotatesPairs) {
  const Shape x_shape = {2, 3, 40, 16};
  const Shape large = {4, 4, 64, 64};
  const struct {
    Shape x, table;
    bool interleaved = false;
    int64_t rotary_dim = 0;
  } cases[] = {
      {x_shape, {1, 1, 40, 16}},
      {x_shape, x_shape},
      {x_shape, {2, 1, 40, 16}},
      {x_shape, {1, 1, 1, 16}},
      {x_shape, {1, 3, 1, 1}},
      {large, {1, 1, 64, 64}},
      {{6}, {6}},
      {x_shape, {1, 1, 40, 8}},
      {x_shape, {1, 1, 40, 16}, true},
      {x_shape, {2, 1, 40, 8}, true},
      {x_shape, {1, 3, 1, 1}, true},
      {x_shape, {1, 1, 40, 6}, false, 6},
      {x_shape, {1, 1, 40, 3}, false, 6},
      {x_shape, {1, 1, 40, 6}, true, 6},
      {x_shape, {1, 1, 40, 3}, true, 6},
      {x_shape, {1, 1, 40, 2}, true, 2},
      {x_shape, {1, 1, 40, 8}, false, 8},  // packs, and some that are copied
      {{2, 40, 7, 16}, {2, 40, 1, 16}},    // heads behind positions, and an odd number of them
      {{2, 5, 7, 16}, {2, 1, 7, 8}},
      {{9, 4, 16}, {1, 4, 16}},
  };
  const std::pair<DType, DType> types[] = {{DType::kF32, DType::kF32},
                                           {DType::kF64, DType::kF64},
                                           {DType::kBF16, DType::kBF16},
                                           {DType::kBF16, DType::kF32}};
  for (const auto& [dtype, angles] : types) {
    for (const auto& c : cases) {
      for (bool inverse : {false, true}) {
        SCOPED_TRACE(runtime::ShapeToString(c.table));
        const Tensor x = Tensor::Random(dtype, c.x, 1);
        const Tensor cos = Tensor::Random(angles, c.table, 2),
                     sin = Tensor::Random(angles, c.table, 3);
        const auto xv = x.values(), cv = cos.values(), sv = sin.values();
        const int64_t n = c.rotary_dim == 0 ? c.x.back() : c.rotary_dim;
        std::vector<double> expected;
        for (int64_t i = 0; i < x.size(); ++i) {
          std::vector<int64_t> index(c.x.size());
          int64_t rest = i;
          for (size_t d = c.x.size(); d-- > 0;) {
            index[d] = rest % c.x[d];
            rest /= c.x[d];
          }
          const int64_t at = index.back();
          if (at >= n) {
            expected.push_back(xv[i]);
            continue;
          }
          const bool first = c.interleaved ? at % 2 == 0 : at < n / 2;
          std::vector<int64_t> other = index;
          other.back() += (first ? 1 : -1) * (c.interleaved ? 1 : n / 2);
          const double partner = xv[Offset(other, c.x)];
          // A table with a column for each pair has no column for each element.
          const auto angle = [&](std::vector<int64_t> element) {
            if (c.table.back() == n / 2) {
              element.back() = c.interleaved ? element.back() / 2 : element.back() % (n / 2);
            }
            return Offset(element, c.table);
          };
          // The map, and with `inverse` its transpose.
          const double s = sv[angle(inverse ? other : index)];
          const double sign = (first ? -1 : 1) * (inverse ? -1 : 1);
          expected.push_back(xv[i] * cv[angle(index)] + sign * partner * s);
        }
        ExpectClose(RunKernel("rope", {x, cos, sin}, {x.spec()},
                              {{"inverse", int64_t{inverse}},
                               {"interleaved", int64_t{c.interleaved}},
                               {"rotary_dim", c.rotary_dim}})[0],
                    expected);
      }
    }
  }
}

TEST(RopeTest, OddLastDimensionIsInvalid) {
  const Tensor x = Tensor::Random(DType::kF32, {2, 3}, 1);
  EXPECT_EQ(TryKernel("rope", {x, x, x}, {x.spec()}).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace oriel::kernels
