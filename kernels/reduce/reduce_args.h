// What launches of reduce.cu and lines.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_REDUCE_REDUCE_ARGS_H_
#define ORIEL_KERNELS_REDUCE_REDUCE_ARGS_H_

#include <cstdint>

#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

enum class ReduceOp : int32_t { kSum, kMean, kProd, kMax, kMin };

// [outer, n, inner], of which n is reduced. In a launch that gives partial results, n is cut into
// `pieces` of `piece` each, and the result is [outer, pieces, inner].
struct ReduceArgs {
  int64_t outer, n, inner;
  int64_t piece, pieces;
  int64_t divisor;  // of a mean
  ReduceOp op;
};

// Any pattern: a result's place in the operand by its kept dimensions, and the reduced ones.
struct ReduceAnyArgs {
  static constexpr int kDims = 8;
  int64_t results, elements, divisor;
  ReduceOp op;
  int32_t kept, reduced;  // how many dimensions of each
  int64_t kept_sizes[kDims], kept_strides[kDims];
  int64_t reduced_sizes[kDims], reduced_strides[kDims];
};

// Lines of n elements in a tensor [outer, n, inner].
struct LineArgs {
  int64_t lines, n, inner;
  int64_t k;                   // topk: how many
  int32_t largest;             // topk
  int32_t exclusive, reverse;  // cumsum
};

// Rows in each of which a value is looked for.
struct RemainingArgs {
  int64_t rows;
  PieceArgs elements;
  Fault* fault;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_REDUCE_REDUCE_ARGS_H_
