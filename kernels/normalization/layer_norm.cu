// rms_norm, layer_norm and their derivatives; see normalization.h for operands.
//
// Numbers: elements are widened to T (f32 for bf16) and results rounded once; f32 statistics,
// summed in T in the fixed order of rows.cuh; the variance from differences to the mean. 1 / sqrt
// is rounded as IEEE has it, not approximated.
//   rms_norm    y = x * inv_rms * (weight + offset),  inv_rms = 1 / sqrt(Σ x² / n + epsilon)
//   layer_norm  y = (x - mean) * inv_std * weight + bias
//   add_..      the same of x + addend, as it is rounded to S and stored as sum
//   .._grad     dx assigned, with the addend if there is one, which may be dx; dweight and dbias:
//   each group sums its rows in order, then a second
//               launch sums the groups' partial sums, in an order that depends on their number
//               alone
// Bytes over the memory: forward reads x and writes y, 2 rows n of S (4 with a sum); backward reads
// dy and x and writes dx, 3 rows n of S (4 with an addend), and 4 bytes n per group and vector for
// the partial sums.
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

// Values of a row in registers, as one load gives them; a thread holds 16 f32 of each (8 in a
// derivative, beside their sums, or where it adds), or, where rows are not aligned to packs, 2.
template <typename T, int kWidth>
struct Values {
  T x[kWidth];
};
template <typename T, int kWidth>
struct Both {
  T x[kWidth], dy[kWidth];
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

// The derivative of both: rms_norm has no means, and no dbias. `partial` has, for each group, n
// sums for the weight and, with kCentred, n for the bias; the columns that a thread holds are
// summed in its registers, the others in `partial` itself, where they are its own.
template <bool kCentred, typename S, int kWidth>
__device__ void NormGrad(const NormArgs<Compute<S>>& args, const S* dy, const S* x,
                         const Compute<S>* weight, const Compute<S>* means,
                         const Compute<S>* scales, const S* addend, S* dx, Compute<S>* partial) {
  using T = Compute<S>;
  constexpr int kHeld = kWidth == 1 ? 2 : 32 / (sizeof(T) * kWidth);
  constexpr int kVectors = kCentred ? 2 : 1;
  const int64_t packs = args.n / kWidth;
  T* weight_sums = partial + FirstRow() * kVectors * args.n;
  T* bias_sums = weight_sums + args.n;
  T sums[kHeld][kVectors][kWidth] = {};
  for (int64_t pack = threadIdx.x + static_cast<int64_t>(kHeld) * blockDim.x; pack < packs;
       pack += blockDim.x) {
    const T zeros[kWidth] = {};
    StorePack(weight_sums + pack * kWidth, zeros);
    if constexpr (kCentred) StorePack(bias_sums + pack * kWidth, zeros);
  }
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const T mean = kCentred ? means[row] : T(0);
    const T scale = scales[row];
    // x becomes the normed value.
    const auto load = [&](int64_t pack, Both<T, kWidth>& v) {
      LoadPack(x + row * args.n + pack * kWidth, v.x);
      LoadPack(dy + row * args.n + pack * kWidth, v.dy);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) v.x[i] = (v.x[i] - mean) * scale;
    };
    T sum_g = 0, sum_gx = 0;
    Both<T, kWidth> held[kHeld];
    FirstPass(packs, held, load, [&](int64_t pack, const Both<T, kWidth>& v) {
      T w[kWidth];
      LoadPack(weight + pack * kWidth, w);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        const T g = v.dy[i] * (w[i] + args.offset);
        sum_g += g;
        sum_gx += g * v.x[i];
      }
    });
    const T average_gx = GroupSum(sum_gx) / static_cast<T>(args.n);
    const T average_g = kCentred ? GroupSum(sum_g) / static_cast<T>(args.n) : T(0);
    const auto write = [&](int64_t pack, const Both<T, kWidth>& v) {
      T w[kWidth], result[kWidth];
      LoadPack(weight + pack * kWidth, w);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        result[i] = scale * (v.dy[i] * (w[i] + args.offset) - average_g - v.x[i] * average_gx);
      }
      if (addend != nullptr) {
        LoadPack(addend + row * args.n + pack * kWidth, w);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) result[i] += w[i];
      }
      StorePack(dx + row * args.n + pack * kWidth, result);
    };
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
      if (pack >= packs) continue;
      write(pack, held[j]);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        sums[j][0][i] += held[j].dy[i] * held[j].x[i];
        if constexpr (kCentred) sums[j][1][i] += held[j].dy[i];
      }
    }
    for (int64_t pack = threadIdx.x + static_cast<int64_t>(kHeld) * blockDim.x; pack < packs;
         pack += blockDim.x) {
      Both<T, kWidth> v;
      load(pack, v);
      write(pack, v);
      T former[kWidth];
      LoadPack(weight_sums + pack * kWidth, former);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) former[i] += v.dy[i] * v.x[i];
      StorePack(weight_sums + pack * kWidth, former);
      if constexpr (kCentred) {
        LoadPack(bias_sums + pack * kWidth, former);
#pragma unroll
        for (int i = 0; i < kWidth; ++i) former[i] += v.dy[i];
        StorePack(bias_sums + pack * kWidth, former);
      }
    }
  }
#pragma unroll
  for (int j = 0; j < kHeld; ++j) {
    const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
    if (pack >= packs) continue;
    StorePack(weight_sums + pack * kWidth, sums[j][0]);
    if constexpr (kCentred) StorePack(bias_sums + pack * kWidth, sums[j][1]);
  }
}

// Σ over `rows` of each of `columns` columns of `partial`, into first[0 .. n) and second[n ..). A
// block of 32 by 8 threads sums 32 columns: thread row r every 8th row from r, then these in order.
template <typename T>
__device__ void ColumnSums(const T* partial, int64_t rows, int64_t columns, int64_t n, T* first,
                           T* second) {
  __shared__ T parts[8][kWarpThreads];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpThreads + threadIdx.x;
  T sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += 8) sum += partial[row * columns + column];
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (int i = 1; i < 8; ++i) sum += parts[i][threadIdx.x];
  if (column < n) {
    first[column] = sum;
  } else {
    second[column - n] = sum;
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
  }                                                                                                \
  ORIEL_LARGE_KERNEL(oriel_rms_norm_grad_##type, const NormArgs<T> args, const S* dy, const S* x,  \
                     const T* weight, const T* inv_rms, const S* addend, S* dx, T* partial) {      \
    if (InPacks<S>(args.n)) {                                                                      \
      NormGrad<false, S, kPackOf<S>>(args, dy, x, weight, nullptr, inv_rms, addend, dx, partial);  \
    } else {                                                                                       \
      NormGrad<false, S, 1>(args, dy, x, weight, nullptr, inv_rms, addend, dx, partial);           \
    }                                                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_layer_norm_grad_##type, const NormArgs<T> args, const S* dy,  \
                    const S* x, const T* weight, const T* means, const T* inv_stds,                \
                    const S* addend, S* dx, T* partial) {                                          \
    if (InPacks<S>(args.n)) {                                                                      \
      NormGrad<true, S, kPackOf<S>>(args, dy, x, weight, means, inv_stds, addend, dx, partial);    \
    } else {                                                                                       \
      NormGrad<true, S, 1>(args, dy, x, weight, means, inv_stds, addend, dx, partial);             \
    }                                                                                              \
  }

ORIEL_CUDA_KERNEL(256, oriel_column_sums_f32, const float* partial, int64_t rows, int64_t columns,
                  int64_t n, float* first, float* second) {
  ColumnSums(partial, rows, columns, n, first, second);
}
ORIEL_CUDA_KERNEL(256, oriel_column_sums_f64, const double* partial, int64_t rows, int64_t columns,
                  int64_t n, double* first, double* second) {
  ColumnSums(partial, rows, columns, n, first, second);
}

ORIEL_NORM_KERNELS(float, float, f32)
ORIEL_NORM_KERNELS(double, double, f64)
ORIEL_NORM_KERNELS(__nv_bfloat16, float, bf16)

}  // namespace oriel::kernels::cuda
