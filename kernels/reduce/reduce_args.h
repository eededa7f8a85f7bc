// What launches of reduce.cu and lines.cu are given by value; for host and device code.
#ifndef ORIEL_KERNELS_REDUCE_REDUCE_ARGS_H_
#define ORIEL_KERNELS_REDUCE_REDUCE_ARGS_H_

#include <cstdint>

#include "kernels/cuda/piece_args.h"

namespace oriel::kernels::cuda {

enum class ReduceOp : int32_t { kSum, kMean, kProd, kMax, kMin };

inline constexpr int kColumnThreads = 256;
// Of a row of columns, that a thread reads at a time.
inline constexpr int kColumnBytes = 8;

// [outer, n, inner], of which n is reduced. It is cut into pieces of `piece` each, and the result
// is [outer, pieces, inner]: of rows, pieces are multiples of 16.
struct ReduceArgs {
  int64_t outer, n, inner;
  int64_t divisor;  // of results
  int32_t piece;
  ReduceOp op;  // not kMean
};

// Lines of n elements in a tensor [outer, n, inner].
struct LineArgs {
  int64_t lines, n, inner;
  int64_t k;                   // topk: how many
  int32_t largest;             // topk
  int32_t exclusive, reverse;  // cumsum
  int32_t columns;             // cumsum of long lines: those of a block, a power of 2 up to 32
};
inline constexpr int kCumsumThreads = 256;

// Rows in each of which a value is looked for.
struct RemainingArgs {
  int64_t rows;
  PieceArgs elements;
  Fault* fault;
};

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_REDUCE_REDUCE_ARGS_H_
