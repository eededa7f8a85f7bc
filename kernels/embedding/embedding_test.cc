#include "kernels/embedding/embedding.h"

#include "gmock/gmock.h"
#include "kernels/testing.h"

namespace oriel::kernels {
namespace {

using testing::ExpectClose;
using ::testing::HasSubstr;
using testing::kFloats;
using testing::RunKernel;
using testing::Tensor;
using testing::TryKernel;

// Extents of [outer, size, inner] and of the indices.
struct Case {
  Shape table;
  int64_t dim;
  Shape indices;
};
const Case kCases[] = {
    {{10, 4}, 0, {3, 5}},      // embedding
    {{30, 700}, 0, {20, 20}},  // and one for threads
    {{10}, 0, {4}},           {{10, 4}, 0, {}}, {{3, 6, 5}, 1, {2, 2}}, {{3, 4, 6}, 2, {7}},
};

Shape RowsShape(const Case& c) {
  Shape rows(c.table.begin(), c.table.begin() + c.dim);
  rows.insert(rows.end(), c.indices.begin(), c.indices.end());
  rows.insert(rows.end(), c.table.begin() + c.dim + 1, c.table.end());
  return rows;
}

// Calls f(table element, rows element).
template <typename F>
void ForEachPair(const Case& c, const std::vector<double>& indices, const F& f) {
  int64_t outer = 1, inner = 1;
  for (int64_t d = 0; d < static_cast<int64_t>(c.table.size()); ++d) {
    if (d < c.dim) outer *= c.table[d];
    if (d > c.dim) inner *= c.table[d];
  }
  const int64_t size = c.table[c.dim];
  const int64_t count = static_cast<int64_t>(indices.size());
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < count; ++i) {
      const int64_t index = static_cast<int64_t>(indices[i]) + (indices[i] < 0 ? size : 0);
      for (int64_t j = 0; j < inner; ++j)
        f((o * size + index) * inner + j, (o * count + i) * inner + j);
    }
  }
}

TEST(EmbeddingTest, GatherPicksRows) {
  for (const Case& c : kCases) {
    for (DType index : {DType::kI64, DType::kI32}) {
      for (DType dtype : {DType::kF32, DType::kF64, DType::kI64, DType::kBF16, DType::kBool}) {
        const double size = static_cast<double>(c.table[c.dim]);
        const Tensor table = Tensor::Random(dtype, c.table, 1, 0, 50);
        const Tensor indices =
            Tensor::Random(index, c.indices, 2, -size, size);  // negative ones wrap
        const std::vector<double> values = table.values();
        std::vector<double> expected(runtime::NumElements(RowsShape(c)));
        ForEachPair(c, indices.values(), [&](int64_t t, int64_t r) { expected[r] = values[t]; });
        EXPECT_EQ(
            RunKernel("gather", {table, indices}, {{dtype, RowsShape(c)}}, {{"dim", c.dim}})[0]
                .values(),
            expected);
      }
    }
  }
}

TEST(EmbeddingTest, ScatterAddIsTheTranspose) {
  for (const Case& c : kCases) {
    for (DType index : {DType::kI64, DType::kI32}) {
      for (DType dtype : kFloats) {
        const double size = static_cast<double>(c.table[c.dim]);
        const Tensor updates = Tensor::Random(dtype, RowsShape(c), 3);
        const Tensor indices = Tensor::Random(index, c.indices, 4, -size, size);
        const std::vector<double> values = updates.values();
        std::vector<double> expected(runtime::NumElements(c.table));
        ForEachPair(c, indices.values(), [&](int64_t t, int64_t r) { expected[t] += values[r]; });
        ExpectClose(
            RunKernel("scatter_add", {indices, updates}, {{dtype, c.table}}, {{"dim", c.dim}})[0],
            expected, 3);
      }
    }
  }
}

TEST(EmbeddingTest, IndexOutOfRangeIsNamed) {
  const Tensor table = Tensor::Random(DType::kF32, {5, 2}, 1);
  for (double bad : {5.0, -6.0}) {
    const Tensor indices({DType::kI64, {2, 2}}, {0, 1, bad, 2});
    const absl::Status status =
        TryKernel("gather", {table, indices}, {{DType::kF32, {2, 2, 2}}}, {{"dim", int64_t{0}}})
            .status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr("at position 2 is outside [-5, 5)"));
    const Tensor updates = Tensor::Random(DType::kF32, {2, 2, 2}, 2);
    EXPECT_EQ(TryKernel("scatter_add", {indices, updates}, {table.spec()}, {{"dim", int64_t{0}}})
                  .status()
                  .code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace oriel::kernels
