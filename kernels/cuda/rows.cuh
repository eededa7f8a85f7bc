// Rows of a matrix in device code: each by one group of threads, which reads a row once and keeps
// what it can of it in registers.
//
// A group is a block of blockDim.x threads, or, where blockDim.x is 32, one warp of several along
// y; for GroupSums any of several along y. Sums are taken in a fixed order: each thread's elements
// in order, then lanes in pairs, then warps in order, or in pairs by GroupSums; so they depend on
// the row's length and the group's size alone.
#ifndef ORIEL_KERNELS_CUDA_ROWS_CUH_
#define ORIEL_KERNELS_CUDA_ROWS_CUH_

#include "kernels/cuda/elements.cuh"

namespace oriel::kernels::cuda {

constexpr int kWarpThreads = 32;
constexpr int kMaxGroup = 512;

// The rows of this group: for (row = FirstRow(); row < rows; row += RowStep()).
__device__ inline int64_t FirstRow() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
}
__device__ inline int64_t RowStep() { return static_cast<int64_t>(gridDim.x) * blockDim.y; }

struct Plus {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return a + b;
  }
};
// NaN leaves.
struct Larger {
  template <typename T>
  __device__ T operator()(T a, T b) const {
    return b > a ? b : a;
  }
};

// What the lane has whose number differs in `lanes`. Types of several members have an overload.
template <typename T>
__device__ inline T FromLane(T x, int lanes) {
  return __shfl_xor_sync(kWholeWarp, x, lanes);
}

// All lanes get the warp's total.
template <typename T, typename Op>
__device__ inline T WarpTotal(T x, Op op) {
#pragma unroll
  for (int lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) {
    x = op(x, FromLane(x, lanes));
  }
  return x;
}

// All threads get the group's total.
template <typename T, typename Op>
__device__ inline T GroupTotal(T x, Op op) {
  x = WarpTotal(x, op);
  if (blockDim.x == kWarpThreads) return x;
  __shared__ T parts[kMaxGroup / kWarpThreads];
  const int warps = static_cast<int>(blockDim.x) / kWarpThreads;
  __syncthreads();  // the last total has been read
  if (threadIdx.x % kWarpThreads == 0) parts[threadIdx.x / kWarpThreads] = x;
  __syncthreads();
  x = parts[0];
  for (int i = 1; i < warps; ++i) x = op(x, parts[i]);
  return x;
}
template <typename T>
__device__ inline T GroupSum(T x) {
  return GroupTotal(x, Plus());
}

// All threads get their group's total of each of x, with one barrier. All threads of the block call
// it together; blockDim.x is a power of two below 32, or whole warps. `turn` is any number at
// first, and one more at each further call.
template <int kCount, typename T>
__device__ inline void GroupSums(T (&x)[kCount], int turn) {
  __shared__ T parts[2][kCount][kWarpThreads];  // so the totals before these may still be read
#pragma unroll
  for (T& value : x) {
#pragma unroll
    for (unsigned lanes = kWarpThreads / 2; lanes > 0; lanes /= 2) {
      const T other = FromLane(value, lanes);
      if (lanes < blockDim.x) value += other;
    }
  }
  if (blockDim.x <= kWarpThreads) return;
  const unsigned warps = blockDim.x / kWarpThreads, first = threadIdx.y * warps;
  const unsigned lane = threadIdx.x % kWarpThreads;
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    if (lane == 0) parts[turn & 1][i][first + threadIdx.x / kWarpThreads] = x[i];
  }
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kCount; ++i) {
    x[i] = WarpTotal(lane < warps ? parts[turn & 1][i][first + lane] : T(0), Plus());
  }
}

// What is moved by one instruction: a structure of numbers may be by several.
template <int kBytes>
struct Word;
template <>
struct Word<2> {
  using Type = uint16_t;
};
template <>
struct Word<4> {
  using Type = uint32_t;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};

// kWidth elements as they lie in memory, in 2, 4, 8 or 16 bytes: in registers they take less than
// widened.
template <typename S, int kWidth>
using WordOf = typename Word<sizeof(S) * kWidth>::Type;
template <typename S, int kWidth>
__device__ inline WordOf<S, kWidth> LoadWord(const S* p) {
  return *reinterpret_cast<const WordOf<S, kWidth>*>(p);
}
template <typename S, int kWidth>
__device__ inline void StoreWord(S* p, const WordOf<S, kWidth>& word) {
  *reinterpret_cast<WordOf<S, kWidth>*>(p) = word;
}
template <typename S, int kWidth>
__device__ inline void WidenWord(const WordOf<S, kWidth>& word, Compute<S> (&to)[kWidth]) {
  Pack<S, kWidth> pack;
  memcpy(&pack, &word, sizeof(word));
#pragma unroll
  for (int i = 0; i < kWidth; ++i) to[i] = Widen(pack.at[i]);
}
template <typename S, int kWidth>
__device__ inline WordOf<S, kWidth> NarrowWord(const Compute<S> (&from)[kWidth]) {
  Pack<S, kWidth> pack;
#pragma unroll
  for (int i = 0; i < kWidth; ++i) pack.at[i] = Narrow<S>(from[i]);
  WordOf<S, kWidth> word;
  memcpy(&word, &pack, sizeof(word));
  return word;
}

// kWidth elements at p, which is aligned to as many; more than 16 bytes in several accesses.
template <int kWidth, typename S>
__device__ inline void LoadPack(const S* p, Compute<S> (&to)[kWidth]) {
  constexpr int kPart = kWidth * sizeof(S) > 16 ? static_cast<int>(16 / sizeof(S)) : kWidth;
#pragma unroll
  for (int begin = 0; begin < kWidth; begin += kPart) {
    if constexpr (sizeof(S) * kPart == 1) {
      to[begin] = Widen(p[begin]);
    } else {
      Compute<S> part[kPart];
      WidenWord<S, kPart>(LoadWord<S, kPart>(p + begin), part);
#pragma unroll
      for (int i = 0; i < kPart; ++i) to[begin + i] = part[i];
    }
  }
}
template <int kWidth, typename S>
__device__ inline void StorePack(S* p, const Compute<S> (&from)[kWidth]) {
  constexpr int kPart = kWidth * sizeof(S) > 16 ? static_cast<int>(16 / sizeof(S)) : kWidth;
#pragma unroll
  for (int begin = 0; begin < kWidth; begin += kPart) {
    Compute<S> part[kPart];
#pragma unroll
    for (int i = 0; i < kPart; ++i) part[i] = from[begin + i];
    StoreWord<S, kPart>(p + begin, NarrowWord<S, kPart>(part));
  }
}

// The elements of a row that a thread holds are `packs` of the row, every blockDim.x-th. The first
// kHeld of them stay in `held` between passes, the others are loaded anew by each. A pass calls
// use(pack, values), with values of type V; load(pack, values) fills them.
template <int kHeld, typename V, typename Load, typename Use>
__device__ inline void FirstPass(int64_t packs, V (&held)[kHeld], Load load, Use use) {
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
    if (pack < packs) load(pack, held[j]);
  }
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
    if (pack < packs) use(pack, held[j]);
  }
  for (int64_t pack = threadIdx.x + static_cast<int64_t>(kHeld) * blockDim.x; pack < packs;
       pack += blockDim.x) {
    V values;
    load(pack, values);
    use(pack, values);
  }
}
template <int kHeld, typename V, typename Load, typename Use>
__device__ inline void NextPass(int64_t packs, V (&held)[kHeld], Load load, Use use) {
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
    if (pack < packs) use(pack, held[j]);
  }
  for (int64_t pack = threadIdx.x + static_cast<int64_t>(kHeld) * blockDim.x; pack < packs;
       pack += blockDim.x) {
    V values;
    load(pack, values);
    use(pack, values);
  }
}

// Elements of S in 16 bytes.
template <typename S>
constexpr int kPackOf = 16 / sizeof(S);

}  // namespace oriel::kernels::cuda

#endif  // ORIEL_KERNELS_CUDA_ROWS_CUH_
