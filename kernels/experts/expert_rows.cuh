// Lines of a matrix that is one factor of an expert's product.
#ifndef ORIEL_KERNELS_EXPERTS_EXPERT_ROWS_CUH_
#define ORIEL_KERNELS_EXPERTS_EXPERT_ROWS_CUH_

#include "kernels/cuda/device_code.cuh"
#include "kernels/experts/expert_args.h"

namespace oriel::kernels::cuda {

// `count` lines of `width` elements each, one behind the other. Those with an order are picked out
// of a tensor that has one for each `per_row` choices.
template <typename S>
struct Lines {
  const S* base;
  int32_t width, count;
  const int32_t* order;
  int32_t per_row;

  __device__ const S* At(int32_t i) const {
    return base + int64_t{order == nullptr ? i : order[i] / per_row} * width;
  }
};

// A product c[m, n] = Σ_k a[m, k] b[k, n]. Lines of a factor are along k where its flag says so,
// else along m or n.
template <typename S>
struct ExpertProduct {
  Lines<S> a, b;
  int32_t m, n, k;
};

// Rows of the tile, times the matrix of its expert.
template <typename S>
__device__ inline ExpertProduct<S> RowsTimesWeight(const ExpertArgs& args, const ExpertTable& table,
                                                   const RowTile& tile, int tile_rows,
                                                   const S* input, const S* weight) {
  const int32_t rows = table.begin[tile.expert + 1] - tile.first;
  ExpertProduct<S> product;
  product.m = rows < tile_rows ? rows : tile_rows;
  product.n = args.columns;
  product.k = args.depth;
  product.a = {input, args.depth, product.m, table.order + tile.first, args.per_row};
  product.b = {weight + int64_t{tile.expert} * args.depth * args.columns,
               args.transposed ? args.depth : args.columns,
               args.transposed ? args.columns : args.depth, nullptr, 1};
  return product;
}

// All rows of the input of an expert, transposed, times those of the cotangent; the other way round
// where the weight is stored transposed.
template <typename S>
__device__ inline ExpertProduct<S> RowsTimesRows(const ExpertArgs& args, const ExpertTable& table,
                                                 int32_t expert, const S* input,
                                                 const S* cotangent) {
  const int32_t begin = table.begin[expert], rows = table.begin[expert + 1] - begin;
  const Lines<S> x = {input, args.depth, rows, table.order + begin, args.per_row};
  const Lines<S> dy = {cotangent, args.columns, rows, table.order + begin, 1};
  if (args.transposed) return {dy, x, args.columns, args.depth, rows};
  return {x, dy, args.depth, args.columns, rows};
}

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_EXPERTS_EXPERT_ROWS_CUH_
