// rope; see attention.h for operands.
//
// Numbers: elements are widened to T (f32 for bf16), a pair (x1, x2) becomes (x1 cos1 - x2 sin1,
// x2 cos2 + x1 sin2), rounded once; `inverse` is the transposed map: sines of a pair exchanged and
// negated. Columns from rotary_dim on are copied.
// A row of the block is a row of the input; of a pair's halves that lie apart, a thread takes
// kWidth pairs at a time where rows and tables are aligned to as many.
// Bytes over the memory: the input twice; tables are small, and read from the cache.
#include "kernels/attention/rope_args.h"
#include "kernels/cuda/rows.cuh"

namespace oriel::kernels::cuda {
namespace {

constexpr int kThreads = 256;

// kWidth elements of a table from pair i on.
template <int kWidth, typename C, typename T>
__device__ void LoadAngles(const C* row, int64_t i, int64_t step, T (&to)[kWidth]) {
  if (kWidth > 1 && step == 1) {
    LoadPack(row + i, to);
  } else {
#pragma unroll
    for (int j = 0; j < kWidth; ++j) to[j] = Widen(row[(i + j) * step]);
  }
}

template <int kWidth, typename S, typename C>
__device__ void RopeRow(const RopeArgs& args, const S* x, const C* cos, const C* sin, S* y) {
  using T = Compute<S>;
  const int64_t pairs = args.rotary_dim / 2;
  const C* sin1 = sin + (args.inverse != 0 ? args.sin.second : 0);
  const C* sin2 = sin + (args.inverse != 0 ? 0 : args.sin.second);
  const T sign = args.inverse != 0 ? T(-1) : T(1);
  for (int64_t i = static_cast<int64_t>(threadIdx.x) * kWidth; i < pairs;
       i += static_cast<int64_t>(blockDim.x) * kWidth) {
    T x1[kWidth], x2[kWidth], c1[kWidth], c2[kWidth], s1[kWidth], s2[kWidth];
    if constexpr (kWidth == 1) {
      x1[0] = Widen(x[i * args.step]);
      x2[0] = Widen(x[args.second + i * args.step]);
    } else {
      LoadPack(x + i, x1);
      LoadPack(x + args.second + i, x2);
    }
    LoadAngles(cos, i, args.cos.step, c1);
    LoadAngles(cos + args.cos.second, i, args.cos.step, c2);
    LoadAngles(sin1, i, args.sin.step, s1);
    LoadAngles(sin2, i, args.sin.step, s2);
#pragma unroll
    for (int j = 0; j < kWidth; ++j) {
      const T first = x1[j] * c1[j] - x2[j] * (sign * s1[j]);
      x2[j] = x2[j] * c2[j] + x1[j] * (sign * s2[j]);
      x1[j] = first;
    }
    if constexpr (kWidth == 1) {
      y[i * args.step] = Narrow<S>(x1[0]);
      y[args.second + i * args.step] = Narrow<S>(x2[0]);
    } else {
      StorePack(y + i, x1);
      StorePack(y + args.second + i, x2);
    }
  }
  for (int64_t i = args.rotary_dim + threadIdx.x; i < args.n; i += blockDim.x) y[i] = x[i];
}

template <int kWidth, typename S, typename C>
__device__ void Rope(const RopeArgs& args, const S* x, const C* cos, const C* sin, S* y) {
  for (int64_t row = static_cast<int64_t>(blockIdx.x) * blockDim.y + threadIdx.y; row < args.rows;
       row += static_cast<int64_t>(gridDim.x) * blockDim.y) {
    int64_t cos_row = 0, sin_row = 0, rest = row;
    for (int d = args.dims - 1; d >= 0; --d) {
      const int64_t index = rest % args.sizes[d];
      rest /= args.sizes[d];
      cos_row += index * args.cos.strides[d];
      sin_row += index * args.sin.strides[d];
    }
    RopeRow<kWidth>(args, x + row * args.n, cos + cos_row * args.cos.columns,
                    sin + sin_row * args.sin.columns, y + row * args.n);
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
