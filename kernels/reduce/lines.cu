// argmax, topk and cumsum along a dimension, places of values in rows; see reduce.h for operands.
//
// Numbers: argmax and topk compare elements as they are: the larger (smaller) first, NaN as the
// largest, equal ones by ascending index; so the order is total, and argmax is topk of one. cumsum
// adds in double or uint64, in order.
// Selection: a group per line finds one place after the other, each the first in order behind the
// last one: k passes over the line, for small k. cumsum: a thread per line; not fast, for masks.
// remaining_from: a group per row reads all of it.
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

template <typename T>
__device__ void Cumsum(const LineArgs& args, const T* x, T* y) {
  using A = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
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
#define ORIEL_CUMSUM_KERNEL(T, type)                                                   \
  ORIEL_CUDA_KERNEL(256, oriel_cumsum_##type, const LineArgs args, const T* x, T* y) { \
    Cumsum(args, x, y);                                                                \
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
