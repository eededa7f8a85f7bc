// Reductions over one dimension, of which a launch of a reduction has one or more; see reduce.h for
// operands.
//
// Numbers: sums, means and products of floats are accumulated in double, of integers in int64, as
// on the host: the memory is slower than that arithmetic. The last launch rounds once. Maxima and
// minima keep a NaN. n is cut into pieces by the shape alone, and so are orders: of a row as in
// rows.cuh, each thread's packs in order; of a column each of blockDim.y threads takes every
// blockDim.y-th element of the piece, and joins them in pairs.
//   rows     inner is 1: a group for each piece of a row
//   columns  threads along x have kWidth columns each, those along y share a piece of them
// Bytes over the memory: the operand once. Each thread has kTurn loads under way.
#include "kernels/cuda/rows.cuh"
#include "kernels/reduce/reduce_args.h"

namespace oriel::kernels::cuda {

template <>
struct Word<1> {
  using Type = uint8_t;
};

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
template <typename S>
using Accumulator = typename Limits<Compute<S>>::Accumulator;

template <ReduceOp kOp>
struct Reduction {
  template <typename S, int kCount>
  __device__ void Start(Accumulator<S> (&totals)[kCount]) const {
#pragma unroll
    for (Accumulator<S>& total : totals) {
      total = kOp == ReduceOp::kMax   ? Limits<Compute<S>>::Low()
              : kOp == ReduceOp::kMin ? Limits<Compute<S>>::High()
                                      : kOp == ReduceOp::kProd;
    }
  }
  template <typename A>
  __device__ A operator()(A a, A b) const {
    if constexpr (kOp == ReduceOp::kMax) return a >= b || a != a ? a : b;  // NaN enters and stays
    if constexpr (kOp == ReduceOp::kMin) return a <= b || a != a ? a : b;
    if constexpr (std::is_integral_v<A>) {  // wraps
      const uint64_t x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
      return static_cast<A>(kOp == ReduceOp::kProd ? x * y : x + y);
    } else {
      return kOp == ReduceOp::kProd ? a * b : a + b;
    }
  }
};

// Calls body with the reduction, so that loops are compiled for each.
template <typename Body>
__device__ void WithReduction(ReduceOp op, const Body& body) {
  switch (op) {
    case ReduceOp::kProd:
      return body(Reduction<ReduceOp::kProd>());
    case ReduceOp::kMax:
      return body(Reduction<ReduceOp::kMax>());
    case ReduceOp::kMin:
      return body(Reduction<ReduceOp::kMin>());
    default:
      return body(Reduction<ReduceOp::kSum>());
  }
}

template <typename R, typename A>
__device__ Compute<R> Finish(const ReduceArgs& args, A total) {
  if (args.divisor != 1) {
    if constexpr (std::is_integral_v<A>) {
      total = args.divisor == 0 ? 0 : total / args.divisor;
    } else {
      total /= static_cast<A>(args.divisor);
    }
  }
  return static_cast<Compute<R>>(total);
}

// Takes `count` packs that are `stride` elements apart into totals: an element's is that of its
// place in the pack, modulo kTotals. Loads of kTurn packs are under way at a time.
template <int kWidth, int kTotals, typename S, typename Op>
__device__ void AddPacks(Op op, const S* from, int64_t stride, int count,
                         Accumulator<S> (&totals)[kTotals]) {
  [[maybe_unused]] constexpr int kTurn = 4;  // emulated, nothing is unrolled
#pragma unroll kTurn
  for (int j = 0; j < count; ++j, from += stride) {
    Compute<S> values[kWidth];
    WidenWord<S, kWidth>(LoadWord<S, kWidth>(from), values);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      Accumulator<S>& total = totals[i % kTotals];
      total = op(total, static_cast<Accumulator<S>>(values[i]));
    }
  }
}

// How many of begin, begin + step, .. are below end.
__device__ inline int Turns(unsigned begin, unsigned end, unsigned step) {
  return begin < end ? static_cast<int>((end - begin - 1) / step + 1) : 0;
}

// Elements of the block's piece of n.
__device__ inline unsigned PieceSize(const ReduceArgs& args) {
  const int64_t left = args.n - static_cast<int64_t>(blockIdx.y) * args.piece;
  return static_cast<unsigned>(left < args.piece ? left : args.piece);
}

// blockIdx.y is the piece. Read by 16 bytes where all rows begin at multiples of them.
template <typename S, typename R>
__device__ void ReduceRows(const ReduceArgs& args, const S* x, R* y) {
  const int width = args.outer == 1 || args.n % kPackOf<S> == 0 ? kPackOf<S> : 1;
  const unsigned n = PieceSize(args), packs = n / width;
  const int turns = Turns(threadIdx.x, packs, blockDim.x);
  const unsigned first = threadIdx.x * width, stride = blockDim.x * width;
  const unsigned rest = packs * width + threadIdx.x;  // of less than a pack
  x += static_cast<int64_t>(blockIdx.y) * args.piece;
  for (int64_t row = FirstRow(); row < args.outer; row += RowStep()) {
    const S* from = x + row * args.n;
    Accumulator<S> total[1];
    WithReduction(args.op, [&](auto op) {
      op.template Start<S>(total);
      if (width > 1) {
        AddPacks<kPackOf<S>>(op, from + first, stride, turns, total);
      } else {
        AddPacks<1>(op, from + first, stride, turns, total);
      }
      if (rest < n) total[0] = op(total[0], static_cast<Accumulator<S>>(Widen(from[rest])));
      total[0] = GroupTotal(total[0], op);
    });
    if (threadIdx.x == 0) y[row * gridDim.y + blockIdx.y] = Narrow<R>(Finish<R>(args, total[0]));
  }
}

// blockIdx.x is the strip of columns, blockIdx.y the piece; of `outer` every gridDim.z-th. `parts`
// are for each thread kWidth.
template <int kWidth, typename S, typename R>
__device__ void ReduceColumns(const ReduceArgs& args, const S* x, R* y, Accumulator<S>* parts) {
  const int64_t column = (static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x) * kWidth;
  const bool inside = column < args.inner;
  const int turns = inside ? Turns(threadIdx.y, PieceSize(args), blockDim.y) : 0;
  x += (static_cast<int64_t>(blockIdx.y) * args.piece + threadIdx.y) * args.inner + column;
  // Where a thread along y leaves what another takes.
  const auto part = [&](unsigned from, int i) -> Accumulator<S>& {
    return parts[(from * kWidth + i) * blockDim.x + threadIdx.x];
  };
  for (int64_t outer = blockIdx.z; outer < args.outer; outer += gridDim.z) {
    __syncthreads();  // the last parts have been read
    Accumulator<S> totals[kWidth];
    WithReduction(args.op, [&](auto op) {
      op.template Start<S>(totals);
      AddPacks<kWidth>(op, x + outer * args.n * args.inner, blockDim.y * args.inner, turns, totals);
      for (unsigned half = blockDim.y / 2; half > 0; half /= 2) {
        if (threadIdx.y >= half && threadIdx.y < 2 * half) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) part(threadIdx.y, i) = totals[i];
        }
        __syncthreads();
        if (threadIdx.y < half) {
#pragma unroll
          for (int i = 0; i < kWidth; ++i) totals[i] = op(totals[i], part(threadIdx.y + half, i));
        }
      }
    });
    if (threadIdx.y != 0 || !inside) continue;
    Compute<R> results[kWidth];
#pragma unroll
    for (int i = 0; i < kWidth; ++i) results[i] = Finish<R>(args, totals[i]);
    StorePack(y + (outer * gridDim.y + blockIdx.y) * args.inner + column, results);
  }
}

}  // namespace

// Columns are read by kColumnBytes where rows of them begin at multiples of it.
#define ORIEL_REDUCE(S, from, R, to)                                                               \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_reduce_rows_##from##_##to, const ReduceArgs args, const S* x, \
                    R* y) {                                                                        \
    ReduceRows(args, x, y);                                                                        \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kColumnThreads, oriel_reduce_columns_##from##_##to, const ReduceArgs args,     \
                    const S* x, R* y) {                                                            \
    constexpr int kWidth = kColumnBytes / sizeof(S);                                               \
    __shared__ Accumulator<S> parts[kColumnThreads * kWidth];                                      \
    if (args.inner % kWidth == 0) {                                                                \
      ReduceColumns<kWidth>(args, x, y, parts);                                                    \
    } else {                                                                                       \
      ReduceColumns<1>(args, x, y, parts);                                                         \
    }                                                                                              \
  }

ORIEL_REDUCE(float, f32, float, f32)
ORIEL_REDUCE(double, f64, double, f64)
ORIEL_REDUCE(__nv_bfloat16, bf16, __nv_bfloat16, bf16)
ORIEL_REDUCE(__nv_bfloat16, bf16, float, f32)
ORIEL_REDUCE(int64_t, i64, int64_t, i64)
ORIEL_REDUCE(int32_t, i32, int32_t, i32)
ORIEL_REDUCE(uint8_t, bool, uint8_t, bool)
// To accumulators, and from them.
ORIEL_REDUCE(float, f32, double, f64)
ORIEL_REDUCE(__nv_bfloat16, bf16, double, f64)
ORIEL_REDUCE(int32_t, i32, int64_t, i64)
ORIEL_REDUCE(uint8_t, bool, int64_t, i64)
ORIEL_REDUCE(double, f64, float, f32)
ORIEL_REDUCE(double, f64, __nv_bfloat16, bf16)
ORIEL_REDUCE(int64_t, i64, int32_t, i32)
ORIEL_REDUCE(int64_t, i64, uint8_t, bool)

}  // namespace oriel::kernels::cuda
