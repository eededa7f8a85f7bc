// Reductions over dimensions; see reduce.h for operands.
//
// Numbers: sums, means and products of floats are accumulated in double, of integers in int64, as
// on the host: the memory is slower than that arithmetic. The result is rounded once. Maxima and
// minima keep a NaN. Orders are fixed by the shape: of a row as in rows.cuh; of columns by
// ascending row within a piece of n, 8 of which a block joins in order, then pieces in order.
//   rows     inner is 1: a group for each row
//   columns  a block of 32 by 8 threads for 32 columns of a piece; with more than one piece,
//   partial
//            results go to scratch memory and are reduced by a second launch
//   any      other patterns: a thread for each result; not fast
// Bytes over the memory: the operand once.
#include "kernels/cuda/rows.cuh"
#include "kernels/reduce/reduce_args.h"

namespace oriel::kernels::cuda {
namespace {

// What elements of T are accumulated in, and its lowest and highest value.
template <typename T>
struct Limits {
  using Accumulator = int64_t;
  __device__ static int64_t Low() { return -High() - 1; }
  __device__ static int64_t High() {
    return static_cast<int64_t>(~uint64_t{0} >> 1 >> (64 - kBits));
  }
  static constexpr int kBits = 8 * sizeof(T);
};
template <>
struct Limits<float> {
  using Accumulator = double;
  __device__ static double Low() { return -static_cast<double>(INFINITY); }
  __device__ static double High() { return static_cast<double>(INFINITY); }
};
template <>
struct Limits<double> : Limits<float> {};
template <>
struct Limits<uint8_t> {  // a boolean
  using Accumulator = int64_t;
  __device__ static int64_t Low() { return 0; }
  __device__ static int64_t High() { return 1; }
};

// One for all operations, told apart when it runs, so that loops are compiled once for each type.
template <typename T>
struct Reduction {
  using A = typename Limits<T>::Accumulator;
  ReduceOp op;

  __device__ A Start() const {
    switch (op) {
      case ReduceOp::kProd:
        return 1;
      case ReduceOp::kMax:
        return Limits<T>::Low();
      case ReduceOp::kMin:
        return Limits<T>::High();
      default:
        return 0;
    }
  }
  __device__ A operator()(A a, A b) const {
    if (op == ReduceOp::kMax) return a >= b || a != a ? a : b;  // NaN enters and stays
    if (op == ReduceOp::kMin) return a <= b || a != a ? a : b;
    if constexpr (std::is_integral_v<A>) {  // wraps
      const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
      return static_cast<A>(op == ReduceOp::kProd ? x * y : x + y);
    } else {
      return op == ReduceOp::kProd ? a * b : a + b;
    }
  }
  template <typename R>
  __device__ R Finish(A a, int64_t count) const {
    if (op == ReduceOp::kMean) {
      if constexpr (std::is_integral_v<A>) {
        a = count == 0 ? 0 : a / count;
      } else {
        a /= static_cast<A>(count);
      }
    }
    return Narrow<R>(static_cast<Compute<R>>(a));
  }
};

template <int kWidth, typename S, typename R>
__device__ void ReduceRows(const ReduceArgs& args, const S* x, R* y) {
  using T = Compute<S>;
  const Reduction<T> op{args.op};
  using A = typename Reduction<T>::A;
  for (int64_t row = FirstRow(); row < args.outer; row += RowStep()) {
    const S* from = x + row * args.n;
    A total = op.Start();
    for (int64_t pack = threadIdx.x; pack < args.n / kWidth; pack += blockDim.x) {
      T v[kWidth];
      LoadPack(from + pack * kWidth, v);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) total = op(total, static_cast<A>(v[i]));
    }
    total = GroupTotal(total, op);
    if (threadIdx.x == 0) y[row] = op.template Finish<R>(total, args.divisor);
  }
}

// From elements of S, with P the results or, partial, accumulators.
template <bool kPartial, typename S, typename P>
__device__ void ReduceColumns(const ReduceArgs& args, const S* x, P* y) {
  using T = Compute<S>;
  const Reduction<T> op{args.op};
  using A = typename Reduction<T>::A;
  __shared__ A parts[8][kWarpThreads];
  const int64_t strips = (args.inner + kWarpThreads - 1) / kWarpThreads;
  const int64_t blocks = args.outer * args.pieces * strips;
  for (int64_t block = blockIdx.x; block < blocks; block += gridDim.x) {
    const int64_t column = block % strips * kWarpThreads + threadIdx.x;
    const int64_t piece = block / strips % args.pieces, outer = block / strips / args.pieces;
    const int64_t begin = piece * args.piece;
    const int64_t end = begin + args.piece < args.n ? begin + args.piece : args.n;
    A total = op.Start();
    if (column < args.inner) {
      const S* from = x + outer * args.n * args.inner + column;
      for (int64_t i = begin + threadIdx.y; i < end; i += 8) {
        total = op(total, static_cast<A>(Widen(from[i * args.inner])));
      }
    }
    __syncthreads();  // the last block's parts have been read
    parts[threadIdx.y][threadIdx.x] = total;
    __syncthreads();
    if (threadIdx.y != 0 || column >= args.inner) continue;
    for (int i = 1; i < 8; ++i) total = op(total, parts[i][threadIdx.x]);
    P* to = y + (outer * args.pieces + piece) * args.inner + column;
    if constexpr (kPartial) {
      *to = total;
    } else {
      *to = op.template Finish<P>(total, args.divisor);
    }
  }
}

// Joins pieces of columns: a thread for each result.
template <typename S, typename A, typename R>
__device__ void JoinPieces(const ReduceArgs& args, const A* partial, R* y) {
  const Reduction<Compute<S>> op{args.op};
  for (int64_t i = GlobalThread(); i < args.outer * args.inner; i += GlobalThreads()) {
    const A* from = partial + i / args.inner * args.pieces * args.inner + i % args.inner;
    A total = from[0];
    for (int64_t piece = 1; piece < args.pieces; ++piece) {
      total = op(total, from[piece * args.inner]);
    }
    y[i] = op.template Finish<R>(total, args.divisor);
  }
}

template <typename S, typename R>
__device__ void ReduceAny(const ReduceAnyArgs& args, const S* x, R* y) {
  using T = Compute<S>;
  const Reduction<T> op{args.op};
  using A = typename Reduction<T>::A;
  for (int64_t result = GlobalThread(); result < args.results; result += GlobalThreads()) {
    const S* from = x;
    int64_t rest = result;
    for (int d = args.kept - 1; d >= 0; --d) {
      from += rest % args.kept_sizes[d] * args.kept_strides[d];
      rest /= args.kept_sizes[d];
    }
    A total = op.Start();
    for (int64_t i = 0; i < args.elements; ++i) {
      int64_t at = 0, place = i;
      for (int d = args.reduced - 1; d >= 0; --d) {
        at += place % args.reduced_sizes[d] * args.reduced_strides[d];
        place /= args.reduced_sizes[d];
      }
      total = op(total, static_cast<A>(Widen(from[at])));
    }
    y[result] = op.template Finish<R>(total, args.divisor);
  }
}

}  // namespace

#define ORIEL_REDUCE_TO(S, type, R, result)                                                        \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_reduce_rows_##type##_##result, const ReduceArgs args,         \
                    const S* x, R* y) {                                                            \
    if (args.n % kPackOf<S> == 0) {                                                                \
      ReduceRows<kPackOf<S>>(args, x, y);                                                          \
    } else {                                                                                       \
      ReduceRows<1>(args, x, y);                                                                   \
    }                                                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(256, oriel_reduce_columns_##type##_##result, const ReduceArgs args,            \
                    const S* x, R* y) {                                                            \
    ReduceColumns<false>(args, x, y);                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(256, oriel_reduce_any_##type##_##result, const ReduceAnyArgs args, const S* x, \
                    R* y) {                                                                        \
    ReduceAny(args, x, y);                                                                         \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(256, oriel_reduce_join_##type##_##result, const ReduceArgs args,               \
                    const Reduction<Compute<S>>::A* partial, R* y) {                               \
    JoinPieces<S>(args, partial, y);                                                               \
  }
#define ORIEL_REDUCE(S, type)                                                           \
  ORIEL_REDUCE_TO(S, type, S, type)                                                     \
  ORIEL_CUDA_KERNEL(256, oriel_reduce_pieces_##type, const ReduceArgs args, const S* x, \
                    Reduction<Compute<S>>::A* y) {                                      \
    ReduceColumns<true>(args, x, y);                                                    \
  }

ORIEL_REDUCE(float, f32)
ORIEL_REDUCE(double, f64)
ORIEL_REDUCE(__nv_bfloat16, bf16)
ORIEL_REDUCE_TO(__nv_bfloat16, bf16, float, f32)
ORIEL_REDUCE(int64_t, i64)
ORIEL_REDUCE(int32_t, i32)
ORIEL_REDUCE(uint8_t, bool)

}  // namespace oriel::kernels::cuda
