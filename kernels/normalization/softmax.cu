// softmax and softmax_grad; see normalization.h for operands.
//
// Numbers: elements are widened to T (f32 for bf16), results rounded once. y = exp(x - max) / Σ,
// with Σ in T in the fixed order of rows.cuh, and one division per row; dx = y (dy - Σ dy y). A
// NaN, or a line of -infinity alone, makes its line NaN. A line along the last dimension is a
// group's (rows.cuh); any other is one thread's, so that neighbouring threads read neighbouring
// elements. Bytes over the memory: softmax 2 tensors of S, softmax_grad 3; a line that does not fit
// into the group's registers (16 f32 per thread) is read again for each pass, from the cache.
#include "kernels/cuda/rows.cuh"

namespace oriel::kernels::cuda {
namespace {

template <typename T>
__device__ T Lowest() {
  return -static_cast<T>(INFINITY);
}

template <typename T, int kWidth>
struct Values {
  T x[kWidth];
};
template <typename T, int kWidth>
struct Both {
  T dy[kWidth], y[kWidth];
};

template <typename S, int kWidth>
__device__ void SoftmaxRows(const S* x, S* y, int64_t rows, int64_t n) {
  using T = Compute<S>;
  constexpr int kHeld = kWidth == 1 || sizeof(T) == 8 ? 2 : 64 / (sizeof(T) * kWidth);
  const int64_t packs = n / kWidth;
  for (int64_t row = FirstRow(); row < rows; row += RowStep()) {
    const S* in = x + row * n;
    S* out = y + row * n;
    Values<T, kWidth> held[kHeld];
    const auto load = [&](int64_t pack, Values<T, kWidth>& v) {
      LoadPack(in + pack * kWidth, v.x);
    };
    T max = Lowest<T>();
    FirstPass(packs, held, load, [&](int64_t, const Values<T, kWidth>& v) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) max = Larger()(max, v.x[i]);
    });
    max = GroupTotal(max, Larger());
    T sum = 0;
    NextPass(packs, held, load, [&](int64_t, Values<T, kWidth>& v) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) {
        v.x[i] = exp(v.x[i] - max);
        sum += v.x[i];
      }
    });
    const T scale = T(1) / GroupSum(sum);
#pragma unroll
    for (int j = 0; j < kHeld; ++j) {
      const int64_t pack = threadIdx.x + static_cast<int64_t>(j) * blockDim.x;
      if (pack >= packs) continue;
#pragma unroll
      for (int i = 0; i < kWidth; ++i) held[j].x[i] *= scale;
      StorePack(out + pack * kWidth, held[j].x);
    }
    for (int64_t pack = threadIdx.x + static_cast<int64_t>(kHeld) * blockDim.x; pack < packs;
         pack += blockDim.x) {
      Values<T, kWidth> v;
      load(pack, v);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) v.x[i] = exp(v.x[i] - max) * scale;
      StorePack(out + pack * kWidth, v.x);
    }
  }
}

template <typename S, int kWidth>
__device__ void SoftmaxGradRows(const S* dy, const S* y, S* dx, int64_t rows, int64_t n) {
  using T = Compute<S>;
  constexpr int kHeld = kWidth == 1 || sizeof(T) == 8 ? 2 : 64 / (sizeof(T) * kWidth);
  const int64_t packs = n / kWidth;
  for (int64_t row = FirstRow(); row < rows; row += RowStep()) {
    Both<T, kWidth> held[kHeld];
    const auto load = [&](int64_t pack, Both<T, kWidth>& v) {
      LoadPack(dy + row * n + pack * kWidth, v.dy);
      LoadPack(y + row * n + pack * kWidth, v.y);
    };
    T dot = 0;
    FirstPass(packs, held, load, [&](int64_t, const Both<T, kWidth>& v) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) dot += v.dy[i] * v.y[i];
    });
    dot = GroupSum(dot);
    NextPass(packs, held, load, [&](int64_t pack, const Both<T, kWidth>& v) {
      T result[kWidth];
#pragma unroll
      for (int i = 0; i < kWidth; ++i) result[i] = v.y[i] * (v.dy[i] - dot);
      StorePack(dx + row * n + pack * kWidth, result);
    });
  }
}

// Lines of n elements `inner` apart, a thread each.
template <typename S>
__device__ void SoftmaxColumns(const S* x, S* y, int64_t lines, int64_t n, int64_t inner) {
  using T = Compute<S>;
  for (int64_t line = GlobalThread(); line < lines; line += GlobalThreads()) {
    const int64_t start = line / inner * n * inner + line % inner;
    T max = Lowest<T>();
    for (int64_t i = 0; i < n; ++i) max = Larger()(max, Widen(x[start + i * inner]));
    T sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += exp(Widen(x[start + i * inner]) - max);
    const T scale = T(1) / sum;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = start + i * inner;
      y[at] = Narrow<S>(exp(Widen(x[at]) - max) * scale);
    }
  }
}
template <typename S>
__device__ void SoftmaxGradColumns(const S* dy, const S* y, S* dx, int64_t lines, int64_t n,
                                   int64_t inner) {
  using T = Compute<S>;
  for (int64_t line = GlobalThread(); line < lines; line += GlobalThreads()) {
    const int64_t start = line / inner * n * inner + line % inner;
    T dot = 0;
    for (int64_t i = 0; i < n; ++i) {
      dot += Widen(dy[start + i * inner]) * Widen(y[start + i * inner]);
    }
    for (int64_t i = 0; i < n; ++i) {
      const int64_t at = start + i * inner;
      dx[at] = Narrow<S>(Widen(y[at]) * (Widen(dy[at]) - dot));
    }
  }
}

}  // namespace

#define ORIEL_SOFTMAX_KERNELS(S, type)                                                             \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_softmax_rows_##type, const S* x, S* y, int64_t rows,          \
                    int64_t n) {                                                                   \
    if (n % kPackOf<S> == 0) {                                                                     \
      SoftmaxRows<S, kPackOf<S>>(x, y, rows, n);                                                   \
    } else {                                                                                       \
      SoftmaxRows<S, 1>(x, y, rows, n);                                                            \
    }                                                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_softmax_grad_rows_##type, const S* dy, const S* y, S* dx,     \
                    int64_t rows, int64_t n) {                                                     \
    if (n % kPackOf<S> == 0) {                                                                     \
      SoftmaxGradRows<S, kPackOf<S>>(dy, y, dx, rows, n);                                          \
    } else {                                                                                       \
      SoftmaxGradRows<S, 1>(dy, y, dx, rows, n);                                                   \
    }                                                                                              \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(256, oriel_softmax_columns_##type, const S* x, S* y, int64_t lines, int64_t n, \
                    int64_t inner) {                                                               \
    SoftmaxColumns(x, y, lines, n, inner);                                                         \
  }                                                                                                \
  ORIEL_CUDA_KERNEL(256, oriel_softmax_grad_columns_##type, const S* dy, const S* y, S* dx,        \
                    int64_t lines, int64_t n, int64_t inner) {                                     \
    SoftmaxGradColumns(dy, y, dx, lines, n, inner);                                                \
  }

ORIEL_SOFTMAX_KERNELS(float, f32)
ORIEL_SOFTMAX_KERNELS(double, f64)
ORIEL_SOFTMAX_KERNELS(__nv_bfloat16, bf16)

}  // namespace oriel::kernels::cuda
