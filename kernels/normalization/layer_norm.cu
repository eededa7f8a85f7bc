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

// What a norm reads: x, or with kAdds x + addend. The pass that reads it first stores the sum,
// which may lie where either does, and others read that.
template <bool kAdds, typename S>
struct NormInput {
  const S *x, *addend;
  S* sum;
};

// One pack of a row, as it is stored: of x or of the sum, once that is known.
template <typename S, int kWidth>
struct NormPack {
  WordOf<S, kWidth> x, addend;

  __device__ void Widened(Compute<S> (&values)[kWidth]) const { WidenWord<S, kWidth>(x, values); }
  __device__ void Add() {
    Compute<S> values[kWidth], added[kWidth];
    Widened(values);
    WidenWord<S, kWidth>(addend, added);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) values[i] += added[i];
    x = NarrowWord<S, kWidth>(values);
  }
};

// use(pack, held) for the thread's packs of a row that it holds; it leaves when there are no more,
// so that short rows do not pay for what they lack.
template <typename Pack, typename Use>
__device__ void EachHeld(int64_t packs, Pack (&held)[kNormPacks], const Use& use) {
#pragma unroll
  for (int j = 0; j < kNormPacks; ++j) {
    const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
    if (pack >= packs) break;
    use(pack, held[j]);
  }
}
// The same for all of its packs: load(pack, other) gives those that it does not hold.
template <typename Pack, typename Load, typename Use>
__device__ void EachPack(int64_t packs, Pack (&held)[kNormPacks], const Load& load,
                         const Use& use) {
  EachHeld(packs, held, use);
  for (int64_t pack = threadIdx.x + static_cast<int64_t>(kNormPacks) * blockDim.x; pack < packs;
       pack += blockDim.x) {
    Pack other;
    load(pack, other);
    use(pack, other);
  }
}

// Each of blockDim.y rows at a time is that of blockDim.x threads. A thread holds kNormPacks packs
// of it, as they are stored: so many that few threads share a row, and sums are soon joined. What
// is behind them, in very long rows, each pass loads. rms_norm, which is not kCentred, has neither
// means nor bias, but an offset.
template <bool kCentred, bool kAdds, typename S, int kWidth>
__device__ void Norm(const NormArgs<Compute<S>>& args, const NormInput<kAdds, S>& input,
                     const Compute<S>* weight, const Compute<S>* bias, S* y, Compute<S>* means,
                     Compute<S>* scales) {
  using T = Compute<S>;
  using Pack = NormPack<S, kWidth>;
  const T inverse_n = T(1) / static_cast<T>(args.n);
  // All threads of a block go round as often.
  const int64_t end = (args.rows + blockDim.y - 1) / blockDim.y * blockDim.y;
  int turn = 0;
  for (int64_t row = FirstRow(); row < end; row += RowStep()) {
    const int64_t packs = row < args.rows ? args.n / kWidth : 0, begin = row * args.n;
    const auto load_first = [&](int64_t pack, Pack& v) {
      v.x = LoadWord<S, kWidth>(input.x + begin + pack * kWidth);
      if constexpr (kAdds) v.addend = LoadWord<S, kWidth>(input.addend + begin + pack * kWidth);
    };
    const auto load = [&](int64_t pack, Pack& v) {
      v.x = LoadWord<S, kWidth>((kAdds ? input.sum : input.x) + begin + pack * kWidth);
    };
    Pack held[kNormPacks];
    EachHeld(packs, held, load_first);
    T total[1] = {};
    EachPack(packs, held, load_first, [&](int64_t pack, Pack& v) {
      if constexpr (kAdds) {
        v.Add();
        StoreWord<S, kWidth>(input.sum + begin + pack * kWidth, v.x);
      }
      T values[kWidth];
      v.Widened(values);
#pragma unroll
      for (const T value : values) total[0] += kCentred ? value : value * value;
    });
    GroupSums(total, turn++);
    T mean = 0;
    if constexpr (kCentred) {
      mean = total[0] * inverse_n;
      total[0] = 0;
      EachPack(packs, held, load, [&](int64_t, const Pack& v) {
        T values[kWidth];
        v.Widened(values);
#pragma unroll
        for (const T value : values) total[0] += (value - mean) * (value - mean);
      });
      GroupSums(total, turn++);
    }
    const T scale = InverseRoot(total[0] * inverse_n + args.epsilon);
    if (threadIdx.x == 0 && row < args.rows) {
      if constexpr (kCentred) means[row] = mean;
      scales[row] = scale;
    }
    EachPack(packs, held, load, [&](int64_t pack, const Pack& v) {
      T values[kWidth], w[kWidth];
      v.Widened(values);
      LoadPack(weight + pack * kWidth, w);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        values[i] =
            kCentred ? (values[i] - mean) * scale * w[i] : values[i] * scale * (w[i] + args.offset);
      }
      if (kCentred && bias != nullptr) {
        LoadPack(bias + pack * kWidth, w);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) values[i] += w[i];
      }
      StorePack(y + begin + pack * kWidth, values);
    });
  }
}

template <bool kCentred, bool kAdds, typename S>
__device__ void NormOf(const NormArgs<Compute<S>>& args, const NormInput<kAdds, S>& input,
                       const Compute<S>* weight, const Compute<S>* bias, S* y, Compute<S>* means,
                       Compute<S>* scales) {
  // Buffers are aligned to more than a pack, so rows of whole packs are, too.
  if (args.n % kPackOf<S> == 0) {
    Norm<kCentred, kAdds, S, kPackOf<S>>(args, input, weight, bias, y, means, scales);
  } else {
    Norm<kCentred, kAdds, S, 1>(args, input, weight, bias, y, means, scales);
  }
}

}  // namespace

// Kernels that take the registers that they need: left alone, the assembler spills a few to have
// more blocks at a time.
#ifdef __CUDACC__
#define ORIEL_LARGE_KERNEL(name, ...) \
  extern "C" __global__ void __launch_bounds__(kMaxNormThreads, 1) name(__VA_ARGS__)
#else
#define ORIEL_LARGE_KERNEL(name, ...) ORIEL_CUDA_KERNEL(kMaxNormThreads, name, __VA_ARGS__)
#endif

#define ORIEL_NORM_KERNELS(S, T, type)                                                             \
  ORIEL_LARGE_KERNEL(oriel_rms_norm_##type, const NormArgs<T> args, const S* x, const T* weight,   \
                     S* y, T* inv_rms) {                                                           \
    const NormInput<false, S> input{x, nullptr, nullptr};                                          \
    NormOf<false>(args, input, weight, static_cast<const T*>(nullptr), y,                          \
                  static_cast<T*>(nullptr), inv_rms);                                              \
  }                                                                                                \
  ORIEL_LARGE_KERNEL(oriel_layer_norm_##type, const NormArgs<T> args, const S* x, const T* weight, \
                     const T* bias, S* y, T* means, T* inv_stds) {                                 \
    const NormInput<false, S> input{x, nullptr, nullptr};                                          \
    NormOf<true>(args, input, weight, bias, y, means, inv_stds);                                   \
  }                                                                                                \
  ORIEL_LARGE_KERNEL(oriel_add_rms_norm_##type, const NormArgs<T> args, const S* x,                \
                     const S* addend, const T* weight, S* y, T* inv_rms, S* sum) {                 \
    const NormInput<true, S> input{x, addend, sum};                                                \
    NormOf<false>(args, input, weight, static_cast<const T*>(nullptr), y,                          \
                  static_cast<T*>(nullptr), inv_rms);                                              \
  }                                                                                                \
  ORIEL_LARGE_KERNEL(oriel_add_layer_norm_##type, const NormArgs<T> args, const S* x,              \
                     const S* addend, const T* weight, const T* bias, S* y, T* means, T* inv_stds, \
                     S* sum) {                                                                     \
    const NormInput<true, S> input{x, addend, sum};                                                \
    NormOf<true>(args, input, weight, bias, y, means, inv_stds);                                   \
  }

ORIEL_NORM_KERNELS(float, float, f32)
ORIEL_NORM_KERNELS(double, double, f64)
ORIEL_NORM_KERNELS(__nv_bfloat16, float, bf16)

}  // namespace oriel::kernels::cuda
