// rope; see attention.h for operands.
//
// Numbers: elements are widened to T (f32 for bf16), a pair (x1, x2) becomes (x1 cos1 - x2 sin1,
// x2 cos2 + x1 sin2), rounded once; `inverse` is the transposed map: sines of a pair exchanged and
// negated. Columns from rotary_dim on are copied.
// A row of the block is a position: a row of the tables, and one of the input for each head. A
// thread loads its angles once, and turns its pairs of one head after the other; kWidth pairs whose
// halves lie apart, where rows and tables are aligned to as many.
// Bytes over the memory: the input twice; tables are small, and read from the cache.
#include "kernels/attention/rope_args.h"
#include "kernels/cuda/rows.cuh"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// kWidth elements from number i on of a table.
template <int kWidth, typename C, typename T>
__device__ void LoadAngles(const C* row, int64_t i, int64_t step, T (&to)[kWidth]) {
  if (kWidth > 1 && step == 1) {
    LoadPack(row + i, to);
  } else {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) to[j] = Widen(row[(i + j) * step]);
  }
}

// StorePack by one instruction, which the compiler splits where several of them follow one another.
template <int kWidth, typename S>
__device__ void StoreWhole(S* p, const Compute<S> (&from)[kWidth]) {
  __stwb(reinterpret_cast<WordOf<S, kWidth>*>(p), NarrowWord<S, kWidth>(from));
}

template <int kWidth, typename T>
struct Angles {
  T c1[kWidth], c2[kWidth], s1[kWidth], s2[kWidth];
};

// Turns pairs of kCount heads, which begin at x, at x + second, and `step` elements on.
template <int kCount, int kWidth, typename S>
__device__ void Turn(const Angles<kWidth, Compute<S>>& angles, const S* x, int64_t second,
                     int64_t step, S* y) {
  Compute<S> x1[kCount][kWidth], x2[kCount][kWidth];
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
    LoadPack(x + k * step, x1[k]);
    LoadPack(x + k * step + second, x2[k]);
  }
#pragma unroll
  for (int k = 0; k < kCount; ++k) {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const Compute<S> turned = x1[k][j] * angles.c1[j] - x2[k][j] * angles.s1[j];
      x2[k][j] = x2[k][j] * angles.c2[j] + x1[k][j] * angles.s2[j];
      x1[k][j] = turned;
    }
    StoreWhole(y + k * step, x1[k]);
    StoreWhole(y + k * step + second, x2[k]);
  }
}

template <int kWidth, typename S, typename C>
__device__ void Rope(const RopeArgs& args, const S* x, const C* cos, const C* sin, S* y) {
  using T = Compute<S>;
  constexpr int kAhead = sizeof(S) == 8 ? 1 : 2;  // heads that are loaded at a time
  int64_t rest = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y;
  if (rest >= args.positions) return;
  int64_t row = 0, cos_row = 0, sin_row = 0;
#pragma unroll 1
  for (int d = args.dims - 1; d >= 0; --d) {
    const int64_t index = d == 0 ? rest : rest % args.sizes[d];
    if (d > 0) rest /= args.sizes[d];
    row += index * args.strides[d];
    cos_row += index * args.cos.strides[d];
    sin_row += index * args.sin.strides[d];
  }
  const int64_t head_step = args.head_rows * args.n, first_head = blockIdx.y * args.heads_each;
  const int heads = static_cast<int>(min(args.heads_each, args.heads - first_head));
  x += row * args.n + first_head * head_step;
  y += row * args.n + first_head * head_step;
  cos += cos_row * args.cos.columns;
  sin += sin_row * args.sin.columns;
  const int64_t sin1 = args.inverse != 0 ? args.sin.second : 0, sin2 = args.sin.second - sin1;
  const int64_t first = static_cast<int64_t>(threadIdx.x) * kWidth, step = blockDim.x * kWidth;
  for (int64_t i = first; i < args.rotary_dim / 2; i += step) {
    Angles<kWidth, T> angles;
    LoadAngles(cos, i, args.cos.step, angles.c1);
    LoadAngles(cos + args.cos.second, i, args.cos.step, angles.c2);
    LoadAngles(sin + sin1, i, args.sin.step, angles.s1);
    LoadAngles(sin + sin2, i, args.sin.step, angles.s2);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      angles.s1[j] = args.inverse != 0 ? -angles.s1[j] : angles.s1[j];
      angles.s2[j] = args.inverse != 0 ? -angles.s2[j] : angles.s2[j];
    }
    int64_t at = kWidth == 1 ? i * args.step : i;
    int left = heads;
    for (; left >= kAhead; left -= kAhead, at += kAhead * head_step) {
      Turn<kAhead>(angles, x + at, args.second, head_step, y + at);
    }
    if (kAhead > 1 && left > 0) Turn<1>(angles, x + at, args.second, head_step, y + at);
  }
  for (int64_t i = args.rotary_dim + first; i < args.n; i += step) {
    for (int head = 0; head < heads; ++head) {
      T copied[kWidth];
      LoadPack(x + head * head_step + i, copied);
      StoreWhole(y + head * head_step + i, copied);
    }
  }
}

}  // namespace

#define ORIEL_ROPE_KERNELS(S, type, C, angles, kWidth)                                             \
  ORIEL_CUDA_KERNEL(kThreads, oriel_rope_##type##_##angles, const RopeArgs args, const S* x,       \
                    const C* cos, const C* sin, S* y) {                                            \
    Rope<1>(args, x, cos, sin, y);                                                                 \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kThreads, oriel_rope_packs_##type##_##angles, const RopeArgs args, const S* x, \
                    const C* cos, const C* sin, S* y) {                                            \
    Rope<kWidth>(args, x, cos, sin, y);                                                            \
  }

// Not more than 16 bytes of either.
ORIEL_ROPE_KERNELS(float, f32, float, f32, 4)
ORIEL_ROPE_KERNELS(double, f64, double, f64, 2)
ORIEL_ROPE_KERNELS(__nv_bfloat16, bf16, __nv_bfloat16, bf16, 8)
ORIEL_ROPE_KERNELS(__nv_bfloat16, bf16, float, f32, 4)

}  // namespace oriel::kernels::cuda
