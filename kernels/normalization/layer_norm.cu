// rms_norm and layer_norm; see normalization.h for operands.
//
// Numbers: elements are widened to T (f32 for bf16) and results rounded once; f32 statistics,
// summed in T in the fixed order of rows.cuh; the variance from differences to the mean. 1 / sqrt
// is rounded as IEEE has it, not approximated.
//   rms_norm    y = x * inv_rms * (weight + offset),  inv_rms = 1 / sqrt(Σ x² / n + epsilon)
//   layer_norm  y = (x - mean) * inv_std * weight + bias
//   add_..      the same of x + addend, as it is rounded to S and stored as sum
// Bytes over the memory: reads x and writes y, 2 rows n of S; 4 with a sum.
#include "kernels/cuda/rows.cuh"
#include "kernels/normalization/norm_args.h"

namespace oriel::kernels::cuda {
namespace {

template <typename T>
__device__ T InverseRoot(T x) {
  return T(1) / sqrt(x);
}
template <>
__device__ inline float InverseRoot(float x) {
  return 1.0f / sqrtf(x);
}

// Values of a row in registers, as one load gives them; a thread holds 16 f32 (8 where it
// adds), or, where rows are not aligned to packs, 2.
template <typename T, int kWidth>
struct Values {
  T x[kWidth];
};
// What a norm reads: x, or with kAdds x + addend. The pass that reads it first stores the sum,
// which may lie where either does, and others read that.
template <bool kAdds, typename S>
struct NormInput {
  const S *x, *addend;
  S* sum;
};

// The elements from `at` on, for the first pass.
template <bool kAdds, typename S, typename T, int kWidth>
__device__ void LoadFirst(const NormInput<kAdds, S>& input, int64_t at, Values<T, kWidth>& v) {
  LoadPack(input.x + at, v.x);
  if constexpr (kAdds) {
    T added[kWidth];
    LoadPack(input.addend + at, added);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) v.x[i] = Widen(Narrow<S>(v.x[i] + added[i]));
  }
}

template <bool kAdds, typename S, int kWidth>
__device__ void RmsNorm(const NormArgs<Compute<S>>& args, const NormInput<kAdds, S>& input,
                        const Compute<S>* weight, S* y, Compute<S>* inv_rms) {
  using T = Compute<S>;
  constexpr int kHeld = kWidth == 1 ? 2 : (kAdds ? 32 : 64) / (sizeof(T) * kWidth);
  const int64_t packs = args.n / kWidth;
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const int64_t begin = row * args.n;
    S* out = y + begin;
    Values<T, kWidth> held[kHeld];
    const auto first = [&](int64_t pack, Values<T, kWidth>& v) {
      LoadFirst(input, begin + pack * kWidth, v);
    };
    const auto load = [&](int64_t pack, Values<T, kWidth>& v) {
      LoadPack((kAdds ? input.sum : input.x) + begin + pack * kWidth, v.x);
    };
    T squares = 0;
    FirstPass(packs, held, first, [&](int64_t pack, const Values<T, kWidth>& v) {
      if constexpr (kAdds) StorePack(input.sum + begin + pack * kWidth, v.x);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares += v.x[i] * v.x[i];
    });
    const T scale = InverseRoot(GroupSum(squares) / static_cast<T>(args.n) + args.epsilon);
    if (threadIdx.x == 0) inv_rms[row] = scale;
    NextPass(packs, held, load, [&](int64_t pack, const Values<T, kWidth>& v) {
      T w[kWidth], result[kWidth];
      LoadPack(weight + pack * kWidth, w);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) result[i] = v.x[i] * scale * (w[i] + args.offset);
      StorePack(out + pack * kWidth, result);
    });
  }
}

template <bool kAdds, typename S, int kWidth>
__device__ void LayerNorm(const NormArgs<Compute<S>>& args, const NormInput<kAdds, S>& input,
                          const Compute<S>* weight, const Compute<S>* bias, S* y, Compute<S>* means,
                          Compute<S>* inv_stds) {
  using T = Compute<S>;
  constexpr int kHeld = kWidth == 1 ? 2 : (kAdds ? 32 : 64) / (sizeof(T) * kWidth);
  const int64_t packs = args.n / kWidth;
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const int64_t begin = row * args.n;
    S* out = y + begin;
    Values<T, kWidth> held[kHeld];
    const auto first = [&](int64_t pack, Values<T, kWidth>& v) {
      LoadFirst(input, begin + pack * kWidth, v);
    };
    const auto load = [&](int64_t pack, Values<T, kWidth>& v) {
      LoadPack((kAdds ? input.sum : input.x) + begin + pack * kWidth, v.x);
    };
    T sum = 0;
    FirstPass(packs, held, first, [&](int64_t pack, const Values<T, kWidth>& v) {
      if constexpr (kAdds) StorePack(input.sum + begin + pack * kWidth, v.x);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum += v.x[i];
    });
    const T mean = GroupSum(sum) / static_cast<T>(args.n);
    T squares = 0;
    NextPass(packs, held, load, [&](int64_t, const Values<T, kWidth>& v) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) squares += (v.x[i] - mean) * (v.x[i] - mean);
    });
    const T scale = InverseRoot(GroupSum(squares) / static_cast<T>(args.n) + args.epsilon);
    if (threadIdx.x == 0) {
      means[row] = mean;
      inv_stds[row] = scale;
    }
    NextPass(packs, held, load, [&](int64_t pack, const Values<T, kWidth>& v) {
      T w[kWidth], result[kWidth];
      LoadPack(weight + pack * kWidth, w);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) result[i] = (v.x[i] - mean) * scale * w[i];
      if (bias != nullptr) {
        LoadPack(bias + pack * kWidth, w);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) result[i] += w[i];
      }
      StorePack(out + pack * kWidth, result);
    });
  }
}

// Whether rows can be read 16 bytes at a time: buffers are aligned to more.
template <typename S>
__device__ bool InPacks(int64_t n) {
  return n % kPackOf<S> == 0;
}

}  // namespace

// Kernels that take the registers that they need: left alone, the assembler spills a few to have
// more blocks at a time.
#ifdef __CUDACC__
#define ORIEL_LARGE_KERNEL(name, ...) \
  extern "C" __global__ void __launch_bounds__(kMaxGroup, 1) name(__VA_ARGS__)
#else
#define ORIEL_LARGE_KERNEL(name, ...) ORIEL_CUDA_KERNEL(kMaxGroup, name, __VA_ARGS__)
#endif

#define ORIEL_NORM_KERNELS(S, T, type)                                                             \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_rms_norm_##type, const NormArgs<T> args, const S* x,          \
                    const T* weight, S* y, T* inv_rms) {                                           \
    const NormInput<false, S> input{x, nullptr, nullptr};                                          \
    if (InPacks<S>(args.n)) {                                                                      \
      RmsNorm<false, S, kPackOf<S>>(args, input, weight, y, inv_rms);                              \
    } else {                                                                                       \
      RmsNorm<false, S, 1>(args, input, weight, y, inv_rms);                                       \
    }                                                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_layer_norm_##type, const NormArgs<T> args, const S* x,        \
                    const T* weight, const T* bias, S* y, T* means, T* inv_stds) {                 \
    const NormInput<false, S> input{x, nullptr, nullptr};                                          \
    if (InPacks<S>(args.n)) {                                                                      \
      LayerNorm<false, S, kPackOf<S>>(args, input, weight, bias, y, means, inv_stds);              \
    } else {                                                                                       \
      LayerNorm<false, S, 1>(args, input, weight, bias, y, means, inv_stds);                       \
    }                                                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_add_rms_norm_##type, const NormArgs<T> args, const S* x,      \
                    const S* addend, const T* weight, S* y, T* inv_rms, S* sum) {                  \
    const NormInput<true, S> input{x, addend, sum};                                                \
    if (InPacks<S>(args.n)) {                                                                      \
      RmsNorm<true, S, kPackOf<S>>(args, input, weight, y, inv_rms);                               \
    } else {                                                                                       \
      RmsNorm<true, S, 1>(args, input, weight, y, inv_rms);                                        \
    }                                                                                              \
  }                                                                                                \
  ORIEL_LARGE_KERNEL(oriel_add_layer_norm_##type, const NormArgs<T> args, const S* x,              \
                     const S* addend, const T* weight, const T* bias, S* y, T* means, T* inv_stds, \
                     S* sum) {                                                                     \
    const NormInput<true, S> input{x, addend, sum};                                                \
    if (InPacks<S>(args.n)) {                                                                      \
      LayerNorm<true, S, kPackOf<S>>(args, input, weight, bias, y, means, inv_stds);               \
    } else {                                                                                       \
      LayerNorm<true, S, 1>(args, input, weight, bias, y, means, inv_stds);                        \
    }                                                                                              \
  }

ORIEL_NORM_KERNELS(float, float, f32)
ORIEL_NORM_KERNELS(double, double, f64)
ORIEL_NORM_KERNELS(__nv_bfloat16, float, bf16)

}  // namespace oriel::kernels::cuda
