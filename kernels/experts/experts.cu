// expert_linear and expert_linear_weight_grad by plain arithmetic, and the table that these and
// experts_mma.cu read; see experts.h for operands.
//
// Choices are sorted by expert first (embedding/scatter_add.cu). A block computes a tile of 64 rows
// and columns, each summed over k in ascending order in the computing type (f32 for bf16) and
// rounded once: rows of one expert times its matrix, or an expert's rows of the input times those
// of the cotangent. The order does not depend on the grid. Bytes over the memory: the weights that
// are chosen once if the cache holds them for the rows of an expert, and rows once for each 64
// columns.
#include "kernels/cuda/elements.cuh"
#include "kernels/cuda/sums_before.cuh"
#include "kernels/experts/expert_rows.cuh"
#include "kernels/linear/tile_product.cuh"

namespace oriel::kernels::cuda {
namespace {

constexpr int kTile = kExpertTile, kDepth = 16, kThreads = kExpertThreads;

// The first of the sorted choices that is not below `expert`.
__device__ int32_t BeginOf(const ExpertArgs& args, const int64_t* sorted, int64_t expert) {
  int64_t low = 0, high = args.choices;
  while (low < high) {
    const int64_t middle = (low + high) / 2;
    if (sorted[middle] < expert) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return static_cast<int32_t>(low);
}

// One block. Each thread has an expert at a time, whose tiles come behind those of the threads
// before.
__device__ void MakeTable(const ExpertArgs& args, int32_t tile_rows, const ExpertTable& table) {
  int32_t before = 0;
  for (int32_t base = 0; base < args.experts; base += kExpertTableThreads) {
    const int32_t expert = base + static_cast<int32_t>(threadIdx.x);
    const bool has = expert < args.experts;
    const int32_t begin = has ? BeginOf(args, table.sorted, expert) : 0;
    const int32_t end = has ? BeginOf(args, table.sorted, expert + 1) : 0;
    const int32_t tiles = (end - begin + tile_rows - 1) / tile_rows;
    int32_t all;
    const int32_t tiles_before = SumBefore<kExpertTableThreads>(tiles, &all);
    if (has) {
      table.begin[expert] = begin;
      if (expert == args.experts - 1) table.begin[args.experts] = end;
      RowTile* const to = table.tiles + before + tiles_before;
      for (int32_t i = 0; i < tiles; ++i) to[i] = {expert, begin + i * tile_rows};
    }
    before += all;
    __syncthreads();
  }
  for (int32_t i = before + static_cast<int32_t>(threadIdx.x); i < args.tiles;
       i += kExpertTableThreads) {
    table.tiles[i] = {-1, 0};
  }
}

// Rows [first, first + kTile) of a factor, k from `begin` on, as tile[k][row]; zeros outside.
// Neighbouring threads read along lines.
template <typename S>
__device__ void LoadTile(const Lines<S>& lines, bool along_k, int32_t rows, int32_t depth,
                         int32_t first, int32_t begin, Compute<S> (*tile)[kTile + 1]) {
  for (int i = static_cast<int>(threadIdx.x); i < kTile * kDepth; i += kThreads) {
    const int row = along_k ? i / kDepth : i % kTile;
    const int k = along_k ? i % kDepth : i / kTile;
    const bool inside = first + row < rows && begin + k < depth;
    const int32_t line = along_k ? first + row : begin + k, at = along_k ? begin + k : first + row;
    tile[k][row] = inside ? Widen(lines.At(line)[at]) : Compute<S>(0);
  }
}

// The tile from (first_row, first_column) on; `line(row)` is where a row of the result begins.
template <typename S, typename R, typename Line>
__device__ void Multiply(const ExpertProduct<S>& product, bool a_along_k, bool b_along_k,
                         int32_t first_row, int32_t first_column, bool accumulates,
                         const Line& line) {
  using T = Compute<S>;
  __shared__ T left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int tx = TileColumn(), ty = TileRow();
  T sums[4][4] = {};
  for (int32_t begin = 0; begin < product.k; begin += kDepth) {
    LoadTile(product.a, a_along_k, product.m, product.k, first_row, begin, left);
    LoadTile(product.b, b_along_k, product.n, product.k, first_column, begin, right);
    __syncthreads();
    AddTileProduct(left, right, sums);
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const int32_t row = first_row + ty + 16 * i;
    if (row >= product.m) continue;
    R* const to = line(row);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const int32_t column = first_column + tx + 16 * j;
      if (column >= product.n) continue;
      to[column] = Narrow<R>(accumulates ? Widen(to[column]) + sums[i][j] : sums[i][j]);
    }
  }
}

template <typename S>
__device__ void LinearTile(const ExpertArgs& args, const ExpertTable& table, const S* input,
                           const S* weight, S* result) {
  const RowTile tile = table.tiles[blockIdx.x];
  if (tile.expert < 0) return;
  const ExpertProduct<S> product = RowsTimesWeight(args, table, tile, kTile, input, weight);
  const int32_t* const order = table.order + tile.first;
  Multiply<S, S>(product, /*a_along_k=*/true, args.transposed, 0,
                 static_cast<int32_t>(blockIdx.y) * kTile, /*accumulates=*/false,
                 [=](int32_t row) { return result + int64_t{order[row]} * args.columns; });
}

template <typename S, typename R>
__device__ void WeightGradTile(const ExpertArgs& args, const ExpertTable& table, const S* input,
                               const S* cotangent, R* result) {
  const int32_t expert = static_cast<int32_t>(blockIdx.z);
  const ExpertProduct<S> product = RowsTimesRows(args, table, expert, input, cotangent);
  if (args.accumulates && product.k == 0) return;
  R* const matrix = result + int64_t{expert} * args.depth * args.columns;
  Multiply<S, R>(product, false, false, static_cast<int32_t>(blockIdx.x) * kTile,
                 static_cast<int32_t>(blockIdx.y) * kTile, args.accumulates,
                 [=](int32_t row) { return matrix + int64_t{row} * product.n; });
}

}  // namespace

ORIEL_CUDA_KERNEL(kExpertTableThreads, oriel_expert_table, ExpertArgs args, int32_t tile_rows,
                  ExpertTable table) {
  MakeTable(args, tile_rows, table);
}

#define ORIEL_EXPERT_LINEAR(name, S)                                                          \
  ORIEL_CUDA_KERNEL(kThreads, oriel_expert_linear_##name, ExpertArgs args, ExpertTable table, \
                    const S* input, const S* weight, S* result) {                             \
    LinearTile(args, table, input, weight, result);                                           \
  }
#define ORIEL_EXPERT_WEIGHT_GRAD(name, S, R)                                                       \
  ORIEL_CUDA_KERNEL(kThreads, oriel_expert_weight_grad_##name, ExpertArgs args, ExpertTable table, \
                    const S* input, const S* cotangent, R* result) {                               \
    WeightGradTile(args, table, input, cotangent, result);                                         \
  }

ORIEL_EXPERT_LINEAR(f32, float)
ORIEL_EXPERT_LINEAR(f64, double)
ORIEL_EXPERT_LINEAR(bf16, __nv_bfloat16)
ORIEL_EXPERT_WEIGHT_GRAD(f32_f32, float, float)
ORIEL_EXPERT_WEIGHT_GRAD(f64_f64, double, double)
ORIEL_EXPERT_WEIGHT_GRAD(bf16_bf16, __nv_bfloat16, __nv_bfloat16)
ORIEL_EXPERT_WEIGHT_GRAD(bf16_f32, __nv_bfloat16, float)

}  // namespace oriel::kernels::cuda
