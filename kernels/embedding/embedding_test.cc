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
    {{2, 40}, 0, {75}},        // rows that occur often
    {{1000, 3}, 0, {3000}},    // and many of many rows
    {{10}, 0, {4}},           {{10, 4}, 0, {}},  {{3, 6, 5}, 1, {2, 2}},
    {{3, 4, 6}, 2, {7}},      {{10, 4}, 0, {0}},
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

// Of each row by indices of its own: as from all rows, one behind the other.
TEST(EmbeddingTest, BatchDims) {
  for (DType index : {DType::kI64, DType::kI32}) {
    const Tensor x = Tensor::Random(DType::kF32, {3, 2, 7, 4}, 1);
    const Tensor u = Tensor::Random(DType::kF32, {3, 2, 5, 4}, 2);
    const Tensor i = Tensor::Random(index, {3, 2, 5}, 3, -7, 7);
    std::vector<double> flat = i.values();
    for (size_t k = 0; k < flat.size(); ++k) {
      flat[k] += (flat[k] < 0 ? 7 : 0) + 7 * static_cast<double>(k / 5);
    }
    const Tensor all({DType::kI64, {30}}, flat);
    const testing::Attributes batch = {{"dim", int64_t{2}}, {"batch_dims", int64_t{2}}};
    const testing::Attributes first = {{"dim", int64_t{0}}};
    const Tensor table({DType::kF32, {42, 4}}, x.values()),
        rows({DType::kF32, {30, 4}}, u.values());
    ExpectClose(RunKernel("gather", {x, i}, {u.spec()}, batch)[0],
                RunKernel("gather", {table, all}, {rows.spec()}, first)[0].values());
    ExpectClose(RunKernel("scatter_add", {i, u}, {x.spec()}, batch)[0],
                RunKernel("scatter_add", {all, rows}, {table.spec()}, first)[0].values());
  }
  const Tensor x = Tensor::Random(DType::kF32, {3, 7}, 1);
  const Tensor other = Tensor::Random(DType::kI64, {2, 5}, 3, 0, 7);
  EXPECT_EQ(TryKernel("gather", {x, other}, {{DType::kF32, {2, 5}}},
                      {{"dim", int64_t{1}}, {"batch_dims", int64_t{1}}})
                .status()
                .code(),
            absl::StatusCode::kInvalidArgument);
}

// A piece of each row: what another piece has is 0, and not of the row beside it.
TEST(EmbeddingTest, BatchDimsOfPieces) {
  constexpr int64_t kSize = 7;
  const int64_t cuts[] = {0, 3, kSize};
  for (DType index : {DType::kI64, DType::kI32}) {
    const Tensor x = Tensor::Random(DType::kF32, {4, kSize}, 1);
    const Tensor u = Tensor::Random(DType::kF32, {4, 5}, 2);
    const Tensor i = Tensor::Random(index, {4, 5}, 3, -kSize, kSize);
    testing::Attributes batch = {{"dim", int64_t{1}}, {"batch_dims", int64_t{1}}};
    const std::vector<double> whole = RunKernel("gather", {x, i}, {u.spec()}, batch)[0].values();
    const Tensor added = RunKernel("scatter_add", {i, u}, {x.spec()}, batch)[0];
    batch["rows"] = kSize;
    std::vector<double> sum(whole.size());
    for (int k = 0; k < 2; ++k) {
      const Tensor piece = testing::ColumnsOf(x, cuts[k], cuts[k + 1] - cuts[k]);
      const Tensor first = Tensor::Scalar(DType::kI64, static_cast<double>(cuts[k]));
      const std::vector<double> own =
          RunKernel("gather", {piece, i, first}, {u.spec()}, batch)[0].values();
      for (size_t at = 0; at < sum.size(); ++at) {
        EXPECT_TRUE(own[at] == 0 || sum[at] == 0);
        sum[at] += own[at];
      }
      EXPECT_EQ(RunKernel("scatter_add", {i, u, first}, {piece.spec()}, batch)[0].values(),
                testing::ColumnsOf(added, cuts[k], piece.shape()[1]).values());
    }
    EXPECT_EQ(sum, whole);
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

// Bit for bit: in the order of the indices, in f32, rounded once. Widths are of packs and of none,
// of one strip and of several; rows have no updates, one and many.
TEST(EmbeddingTest, ScatterAddKeepsTheOrder) {
  constexpr int64_t kRows = 600, kCount = 2500;
  std::vector<double> rows;
  for (int64_t k = 0; k < kCount; ++k) {
    const bool is_rare = k % 7 == 3;
    rows.push_back(static_cast<double>(is_rare ? k * 11 % kRows - kRows : k % 3 * 299));
  }
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (int64_t width : {1, 7, 8, 63, 65, 136}) {
      const Tensor updates = Tensor::Random(dtype, {kCount, width}, 1);
      const std::vector<double> values = updates.values();
      std::vector<float> sums(kRows * width);
      for (int64_t k = 0; k < kCount; ++k) {
        const int64_t row = static_cast<int64_t>(rows[k]) + (rows[k] < 0 ? kRows : 0);
        for (int64_t j = 0; j < width; ++j) {
          sums[row * width + j] += static_cast<float>(values[k * width + j]);
        }
      }
      const std::vector<double> expected(sums.begin(), sums.end());
      for (DType result : {DType::kF32, dtype}) {
        const TensorSpec table = {result, {kRows, width}};
        EXPECT_EQ(RunKernel("scatter_add", {Tensor({DType::kI64, {kCount}}, rows), updates},
                            {table}, {{"dim", int64_t{0}}})[0]
                      .values(),
                  Tensor(table, expected).values());
      }
    }
  }
}

TEST(EmbeddingTest, ScatterAddOfOneRowAlone) {
  for (DType dtype : testing::kFloatsAndBF16) {
    for (int64_t count : {1, 256, 257, 1025}) {
      const Tensor indices({DType::kI32, {count}}, std::vector<double>(count));
      const Tensor updates({dtype, {count, 24}}, std::vector<double>(count * 24, 1.0));
      const TensorSpec table = {dtype, {1, 24}};
      const std::vector<double> expected(24, static_cast<double>(count));
      EXPECT_EQ(
          RunKernel("scatter_add", {indices, updates}, {table}, {{"dim", int64_t{0}}})[0].values(),
          Tensor(table, expected).values());
    }
  }
}

// Rows [first, first + size) along dim of a table.
Tensor PieceOf(const Tensor& table, const Case& c, int64_t first, int64_t size) {
  Shape shape = c.table;
  shape[c.dim] = size;
  std::vector<double> values;
  const std::vector<double> all = table.values();
  const int64_t inner = runtime::NumElements(Shape(c.table.begin() + c.dim + 1, c.table.end()));
  for (int64_t i = 0; i < table.size(); ++i) {
    const int64_t row = i / inner % c.table[c.dim];
    if (row >= first && row < first + size) values.push_back(all[i]);
  }
  return Tensor({table.spec().dtype, shape}, values);
}

// Each row of the whole is in one piece, and zeros in the others.
TEST(EmbeddingTest, PiecesOfTheRowsGatherSummands) {
  for (const Case& c : kCases) {
    const int64_t rows = c.table[c.dim], half = rows / 2;
    const Tensor table = Tensor::Random(DType::kF32, c.table, 1, 1, 50);
    const Tensor indices = Tensor::Random(DType::kI64, c.indices, 2, static_cast<double>(-rows),
                                          static_cast<double>(rows));
    const TensorSpec result = {DType::kF32, RowsShape(c)};
    const std::vector<double> expected =
        RunKernel("gather", {table, indices}, {result}, {{"dim", c.dim}})[0].values();
    std::vector<double> sum(expected.size());
    for (int64_t first : {int64_t{0}, half}) {
      const Tensor piece = PieceOf(table, c, first, first == 0 ? half : rows - half);
      const Tensor at = Tensor::Scalar(DType::kI64, static_cast<double>(first));
      const std::vector<double> part =
          RunKernel("gather", {piece, indices, at}, {result}, {{"dim", c.dim}, {"rows", rows}})[0]
              .values();
      for (size_t i = 0; i < sum.size(); ++i) {
        EXPECT_TRUE(part[i] == 0 || sum[i] == 0);
        sum[i] += part[i];
      }
    }
    EXPECT_EQ(sum, expected);
  }
}

TEST(EmbeddingTest, APieceTakesItsOwnUpdates) {
  for (const Case& c : kCases) {
    const int64_t rows = c.table[c.dim], half = rows / 2;
    const Tensor updates = Tensor::Random(DType::kF32, RowsShape(c), 3);
    const Tensor indices = Tensor::Random(DType::kI64, c.indices, 4, static_cast<double>(-rows),
                                          static_cast<double>(rows));
    const Tensor whole =
        RunKernel("scatter_add", {indices, updates}, {{DType::kF32, c.table}}, {{"dim", c.dim}})[0];
    for (int64_t first : {int64_t{0}, half}) {
      const Tensor expected = PieceOf(whole, c, first, first == 0 ? half : rows - half);
      const Tensor at = Tensor::Scalar(DType::kI64, static_cast<double>(first));
      EXPECT_EQ(RunKernel("scatter_add", {indices, updates, at}, {expected.spec()},
                          {{"dim", c.dim}, {"rows", rows}})[0]
                    .values(),
                expected.values());
    }
  }
}

// Of the whole table, wherever the piece lies.
TEST(EmbeddingTest, IndexOutOfTheWholeIsNamedOnAPiece) {
  const Tensor piece = Tensor::Random(DType::kF32, {2, 2}, 1);
  const Tensor updates = Tensor::Random(DType::kF32, {2, 2}, 2);
  for (double first : {0.0, 4.0}) {
    const Tensor at = Tensor::Scalar(DType::kI64, first);
    for (double bad : {6.0, -7.0}) {
      const Tensor indices({DType::kI64, {2}}, {5, bad});
      for (const char* kernel : {"gather", "scatter_add"}) {
        const bool gather = kernel == std::string("gather");
        const absl::Status status =
            TryKernel(kernel, {gather ? piece : indices, gather ? indices : updates, at},
                      {{DType::kF32, {2, 2}}}, {{"dim", int64_t{0}}, {"rows", int64_t{6}}})
                .status();
        EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
        EXPECT_THAT(std::string(status.message()), HasSubstr("at position 1 is outside [-6, 6)"));
      }
    }
  }
}

TEST(EmbeddingTest, PieceOutsideOfTheWholeIsRefused) {
  const Tensor piece = Tensor::Random(DType::kF32, {2, 2}, 1);
  const Tensor indices({DType::kI64, {1}}, {0});
  const auto run = [&](double first, int64_t rows) {
    return TryKernel("gather", {piece, indices, Tensor::Scalar(DType::kI64, first)},
                     {{DType::kF32, {1, 2}}}, {{"dim", int64_t{0}}, {"rows", rows}})
        .status();
  };
  EXPECT_TRUE(run(4, 6).ok());
  EXPECT_THAT(std::string(run(5, 6).message()), HasSubstr("begins at 5 is not within 6"));
  EXPECT_THAT(std::string(run(-1, 6).message()), HasSubstr("begins at -1 is not within 6"));
  EXPECT_THAT(std::string(run(0, 1).message()), HasSubstr("rows is 1, less than the piece's 2"));
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
