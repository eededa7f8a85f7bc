// argmax, topk and cumsum along a dimension, places of values in rows; see reduce.h for operands.
//
// Numbers: argmax and topk compare elements as they are: the larger (smaller) first, NaN as the
// largest, equal ones by ascending index; so the order is total, and argmax is topk of one. cumsum
// adds in double or uint64: short lines in order, of long ones kEach elements, then over warps.
// Selection: a group per line finds one place after the other, each the first in order behind the
// last one: k passes over the line, for small k. cumsum: a thread per line, or of long lines a
// block per few of them. remaining_from: a group per row reads all of it.
#include "kernels/cuda/piece.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/reduce/reduce_args.h"

namespace oriel::kernels::cuda {
namespace {

// An element and its place; place < 0: none.
template <typename T>
struct Placed {
  T value;
  int64_t place;
};

template <typename T>
__device__ Placed<T> FromLane(const Placed<T>& x, int lanes) {
  return {static_cast<T>(__shfl_xor_sync(kWholeWarp, x.value, lanes)),
          __shfl_xor_sync(kWholeWarp, x.place, lanes)};
}

// Whether a comes before b.
template <typename T>
__device__ bool Before(const Placed<T>& a, const Placed<T>& b, bool largest) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  if (a_nan != b_nan) return largest ? a_nan : b_nan;
  if (a_nan || a.value == b.value) return a.place < b.place;
  return largest ? a.value > b.value : a.value < b.value;
}

template <typename T>
struct Foremost {
  bool largest;
  __device__ Placed<T> operator()(const Placed<T>& a, const Placed<T>& b) const {
    if (a.place < 0) return b;
    if (b.place < 0) return a;
    return Before(b, a, largest) ? b : a;
  }
};

// Whether a, at a later place, comes before b.
template <typename T>
__device__ bool Exceeds(T a, T b, bool largest) {
  return largest ? b == b && !(a <= b) : a == a && !(a >= b);
}

// Calls take(element, place) for those of a line that are the thread's, by ascending place: packs
// of 16 bytes, where lines are contiguous and begin at multiples of them.
template <typename S, typename Take>
__device__ void ForElements(const S* line, int64_t n, int64_t stride, const Take& take) {
  constexpr int kWidth = kPackOf<S>;
  if (stride == 1 && n % kWidth == 0) {
    for (int64_t place = threadIdx.x * kWidth; place < n; place += blockDim.x * kWidth) {
      Compute<S> values[kWidth];
      LoadPack(line + place, values);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) take(values[i], place + i);
    }
  } else {
    for (int64_t place = threadIdx.x; place < n; place += blockDim.x) {
      take(Widen(line[place * stride]), place);
    }
  }
}

template <typename S, typename I>
__device__ void Select(const LineArgs& args, const S* x, I* y) {
  using T = Compute<S>;
  const Foremost<T> foremost{args.largest != 0};
  for (int64_t line = FirstRow(); line < args.lines; line += RowStep()) {
    const int64_t outer = line / args.inner, column = line % args.inner;
    const S* from = x + outer * args.n * args.inner + column;
    Placed<T> last{T(0), -1};
    for (int64_t i = 0; i < args.k; ++i) {
      Placed<T> best{T(0), -1};
      ForElements(from, args.n, args.inner, [&](T value, int64_t place) {
        const Placed<T> here{value, place};
        if (last.place >= 0 && !Before(last, here, foremost.largest)) return;
        if (best.place < 0 || Exceeds(value, best.value, foremost.largest)) best = here;
      });
      last = GroupTotal(best, foremost);
      if (threadIdx.x == 0) {
        y[(outer * args.k + i) * args.inner + column] = static_cast<I>(last.place);
      }
    }
  }
}

// What sums of T are taken in.
template <typename T>
using Sum = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;

template <typename T>
__device__ void Cumsum(const LineArgs& args, const T* x, T* y) {
  using A = Sum<T>;
  for (int64_t line = GlobalThread(); line < args.lines; line += GlobalThreads()) {
    const int64_t start = line / args.inner * args.n * args.inner + line % args.inner;
    A sum = 0;
    for (int64_t i = 0; i < args.n; ++i) {
      const int64_t at = start + (args.reverse != 0 ? args.n - 1 - i : i) * args.inner;
      const A next = sum + static_cast<A>(x[at]);
      y[at] = static_cast<T>(args.exclusive != 0 ? sum : next);
      sum = next;
    }
  }
}

// A block takes `columns` lines side by side, and of each as many elements at a time as its threads
// hold, kEach that follow each other. In a warp, lanes that are `columns` apart are of one line.
template <typename T>
__device__ void CumsumOfLongLines(const LineArgs& args, const T* x, T* y) {
  using A = Sum<T>;
  constexpr int kEach = 4;
  __shared__ A sums[kCumsumThreads / kWarpThreads][kWarpThreads];  // of each warp's lines
  const int columns = args.columns;
  const int lane = static_cast<int>(threadIdx.x) % kWarpThreads;
  const int warp = static_cast<int>(threadIdx.x) / kWarpThreads;
  const int64_t across = (args.inner + columns - 1) / columns;
  const int64_t at_a_time = kCumsumThreads / columns * kEach;
  const int64_t own = static_cast<int64_t>(threadIdx.x) / columns * kEach;
  for (int64_t block = blockIdx.x; block < args.lines / args.inner * across; block += gridDim.x) {
    const int64_t column = block % across * columns + lane % columns;
    const int64_t start = block / across * args.n * args.inner + column;
    const auto offset = [&](int64_t i) {
      return start + (args.reverse != 0 ? args.n - 1 - i : i) * args.inner;
    };
    A before = 0;
    for (int64_t first = own; first < args.n + own; first += at_a_time) {
      A values[kEach], sum = 0;
      for (int i = 0; i < kEach; ++i) {
        const bool is_there = column < args.inner && first + i < args.n;
        values[i] = is_there ? static_cast<A>(x[offset(first + i)]) : A(0);
        sum += values[i];
      }
      for (int lanes = columns; lanes < kWarpThreads; lanes *= 2) {
        const A other = __shfl_up_sync(kWholeWarp, sum, lanes);
        if (lane >= lanes) sum += other;
      }
      A running = __shfl_up_sync(kWholeWarp, sum, columns);
      if (lane < columns) running = 0;
      __syncthreads();  // what stands there has been read
      if (lane >= kWarpThreads - columns) sums[warp][lane % columns] = sum;
      __syncthreads();
      for (int i = 0; i < kCumsumThreads / kWarpThreads; ++i) {
        if (i == warp) running += before;
        before += sums[i][lane % columns];
      }
      for (int i = 0; i < kEach; ++i) {
        const A next = running + values[i];
        if (column < args.inner && first + i < args.n) {
          y[offset(first + i)] = static_cast<T>(args.exclusive != 0 ? running : next);
        }
        running = next;
      }
    }
  }
}

template <typename S>
__device__ void RemainingFrom(const RemainingArgs& args, const S* x, const S* values, int64_t* y) {
  const int64_t n = args.elements.size;
  const int64_t all = args.elements.whole - PieceFirst(args.elements, args.fault);
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const auto value = Widen(values[row]);
    int64_t remaining = 0;
    ForElements(x + row * n, n, 1, [&](Compute<S> element, int64_t i) {
      const bool is_value = element == value || (element != element && value != value);
      if (is_value && remaining == 0) remaining = all - i;
    });
    remaining = GroupTotal(remaining, Larger());
    if (threadIdx.x == 0) y[row] = remaining;
  }
}

}  // namespace

#define ORIEL_SELECT_KERNEL(S, type, I, index)                                                 \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_select_##type##_##index, const LineArgs args, const S* x, \
                    I* y) {                                                                    \
    Select(args, x, y);                                                                        \
  }
#define ORIEL_SELECT_KERNELS(S, type)        \
  ORIEL_SELECT_KERNEL(S, type, int64_t, i64) \
  ORIEL_SELECT_KERNEL(S, type, int32_t, i32)
#define ORIEL_CUMSUM_KERNEL(T, type)                                                              \
  ORIEL_CUDA_KERNEL(kCumsumThreads, oriel_cumsum_##type, const LineArgs args, const T* x, T* y) { \
    Cumsum(args, x, y);                                                                           \
  }                                                                                               \
  ORIEL_CUDA_KERNEL(kCumsumThreads, oriel_cumsum_long_##type, const LineArgs args, const T* x,    \
                    T* y) {                                                                       \
    CumsumOfLongLines(args, x, y);                                                                \
  }
#define ORIEL_REMAINING_KERNEL(S, type)                                                           \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_remaining_from_##type, const RemainingArgs args, const S* x, \
                    const S* values, int64_t* y) {                                                \
    RemainingFrom(args, x, values, y);                                                            \
  }

ORIEL_SELECT_KERNELS(float, f32)
ORIEL_SELECT_KERNELS(double, f64)
ORIEL_SELECT_KERNELS(__nv_bfloat16, bf16)
ORIEL_SELECT_KERNELS(int64_t, i64)
ORIEL_SELECT_KERNELS(int32_t, i32)
ORIEL_SELECT_KERNELS(uint8_t, bool)
ORIEL_CUMSUM_KERNEL(float, f32)
ORIEL_CUMSUM_KERNEL(double, f64)
ORIEL_CUMSUM_KERNEL(int64_t, i64)
ORIEL_CUMSUM_KERNEL(int32_t, i32)
ORIEL_REMAINING_KERNEL(float, f32)
ORIEL_REMAINING_KERNEL(double, f64)
ORIEL_REMAINING_KERNEL(__nv_bfloat16, bf16)

}  // namespace oriel::kernels::cuda
