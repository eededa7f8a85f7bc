// The derivatives of rms_norm and layer_norm; see normalization.h for operands.
//
// Numbers: elements are widened to T (f32 for bf16); with g = dy * (weight + offset) and the normed
// value v = (x - mean) * scale, whose mean is 0 for rms_norm,
//   dx = scale * (g - Σ g / n - v * Σ g v / n) + addend,    the first sum for layer_norm alone
// is assigned, rounded once; it may lie where the addend does. Sums over a row are taken in T: each
// thread's elements in order, lanes in pairs, then warps in pairs. dweight = Σ dy v and dbias = Σ
// dy are summed in T: by each thread over its rows in order, by each block over its threads, and by
// a second launch over the blocks, in an order that depends on shapes and the number of
// multiprocessors alone.
//
// Bytes over the memory: reads dy, x and the addend and writes dx, 3 or 4 rows n of S, and for each
// block and vector n sums of T.
#include "kernels/cuda/rows.cuh"
#include "kernels/normalization/norm_args.h"

namespace oriel::kernels::cuda {
namespace {

// One pack of a row, as it is stored.
template <bool kCentred, typename S, int kWidth>
struct GradPack {
  using T = Compute<S>;
  static constexpr int kSums = kCentred ? 2 : 1;
  WordOf<S, kWidth> x, dy, addend;

  // dy, and the differences of x to the mean.
  __device__ void Widened(T mean, T (&dy_values)[kWidth], T (&differences)[kWidth]) const {
    WidenWord<S, kWidth>(dy, dy_values);
    WidenWord<S, kWidth>(x, differences);
    if constexpr (kCentred) {
#pragma unroll
      for (T& value : differences) value -= mean;
    }
  }
  // Adds to sums[0] Σ g (x - mean), and to sums[1], where there is one, Σ g.
  __device__ void AddTo(T mean, const T (&weight)[kWidth], T (&sums)[kSums]) const {
    T dy_values[kWidth], differences[kWidth];
    Widened(mean, dy_values, differences);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const T g = dy_values[i] * weight[i];
      sums[0] += g * differences[i];
      if constexpr (kCentred) sums[1] += g;
    }
  }
  // Stores dx, and adds to the columns' sums. `averages` are scale² Σ g v / n, by which the
  // differences are multiplied, and scale Σ g / n.
  __device__ void Finish(T mean, T scale, const T (&weight)[kWidth], const T (&averages)[kSums],
                         bool adds, S* dx, T (&columns)[kSums][kWidth]) const {
    T dy_values[kWidth], differences[kWidth], result[kWidth];
    Widened(mean, dy_values, differences);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) {
      const T scaled = dy_values[i] * scale;
      result[i] = scaled * weight[i] - differences[i] * averages[0];
      columns[0][i] += scaled * differences[i];
      if constexpr (kCentred) {
        result[i] -= averages[1];
        columns[1][i] += dy_values[i];
      }
    }
    if (adds) {
      T more[kWidth];
      WidenWord<S, kWidth>(addend, more);
#pragma unroll
      for (int i = 0; i < kWidth; ++i) result[i] += more[i];
    }
    StorePack(dx, result);
  }
};

// Each of blockDim.y rows at a time is that of blockDim.x threads, each of which holds kGradPacks
// packs of it. In rows that are kLong, each the only one of its block, there are more packs, which
// are loaded by each pass. What is held of the next row is loaded before this one's sums are known,
// so that the memory is busy meanwhile. `partial` has for each block n sums for the weight and,
// with kCentred, n for the bias: of packs that are held they are summed in registers, of others in
// `partial` itself.
template <bool kCentred, bool kLong, typename S, int kWidth>
__device__ void NormGrad(const NormArgs<Compute<S>>& args, const S* dy, const S* x,
                         const Compute<S>* weight, const Compute<S>* means,
                         const Compute<S>* scales, const S* addend, S* dx, Compute<S>* partial) {
  using T = Compute<S>;
  using Pack = GradPack<kCentred, S, kWidth>;
  constexpr int kSums = Pack::kSums;
  struct Row {
    Pack packs[kGradPacks];
    T mean, scale;
  };
  // The weights of what is held, plus the offset; at the end, the sums.
  alignas(16) __shared__ T shared[kMaxNormThreads * kGradPacks * kWidth];
  const int64_t packs = args.n / kWidth;
  const int held_packs = kGradPacks * blockDim.x;
  partial += blockIdx.x * kSums * args.n;

  const auto for_held = [&](const auto& use) {
#pragma unroll
    for (int j = 0; j < kGradPacks; ++j) {
      const int pack = static_cast<int>(threadIdx.x + j * blockDim.x);
      if (pack < packs) use(j, pack);
    }
  };
  const auto for_others = [&](const auto& use) {
    for (int64_t pack = threadIdx.x + held_packs; pack < packs; pack += blockDim.x) use(pack);
  };
  const auto read_pack = [&](int64_t row, int64_t pack, Pack& to) {
    const int64_t at = row * args.n + pack * kWidth;
    to.x = LoadWord<S, kWidth>(x + at);
    to.dy = LoadWord<S, kWidth>(dy + at);
    if (addend != nullptr) to.addend = LoadWord<S, kWidth>(addend + at);
  };
  const auto read = [&](int64_t row, Row& to) {
    if (row >= args.rows) return;
    if constexpr (kCentred) to.mean = means[row];
    to.scale = scales[row];
    for_held([&](int j, int pack) { read_pack(row, pack, to.packs[j]); });
  };
  const auto read_weight = [&](int64_t pack, T(&to)[kWidth]) {
    LoadPack(weight + pack * kWidth, to);
#pragma unroll
    for (T& value : to) value += args.offset;
  };

  T columns[kGradPacks][kSums][kWidth] = {};
  if (threadIdx.y == 0) {
    for_held([&](int, int pack) {
      T w[kWidth];
      read_weight(pack, w);
      StorePack(shared + pack * kWidth, w);
    });
  }
  if constexpr (kLong) {
    for_others([&](int64_t pack) {
      const T zeros[kWidth] = {};
      for (int v = 0; v < kSums; ++v) StorePack(partial + v * args.n + pack * kWidth, zeros);
    });
  }
  __syncthreads();
  const T inverse_n = T(1) / static_cast<T>(args.n);
  const int64_t step = RowStep();
  // All threads of a block go round as often.
  const int64_t end = (args.rows + blockDim.y - 1) / blockDim.y * blockDim.y;
  int64_t row = FirstRow();
  Row next = {};
  read(row, next);
  for (int turn = 0; row < end; ++turn, row += step) {
    Row now = next;
    read(row + step, next);
    T averages[kSums] = {};
    for_held([&](int j, int pack) {
      T w[kWidth];
      LoadPack(shared + pack * kWidth, w);
      now.packs[j].AddTo(now.mean, w, averages);
    });
    if constexpr (kLong) {
      for_others([&](int64_t pack) {
        T w[kWidth];
        Pack other;
        read_weight(pack, w);
        read_pack(row, pack, other);
        other.AddTo(now.mean, w, averages);
      });
    }
    GroupSums(averages, turn);
#pragma unroll
    for (T& sum : averages) sum *= now.scale * inverse_n;
    averages[0] = averages[0] * now.scale * now.scale;
    if (row >= args.rows) continue;
    for_held([&](int j, int pack) {
      T w[kWidth];
      LoadPack(shared + pack * kWidth, w);
      now.packs[j].Finish(now.mean, now.scale, w, averages, addend != nullptr,
                          dx + row * args.n + pack * kWidth, columns[j]);
    });
    if constexpr (kLong) {
      for_others([&](int64_t pack) {
        T w[kWidth], sums[kSums][kWidth];
        Pack other;
        read_weight(pack, w);
        read_pack(row, pack, other);
        for (int v = 0; v < kSums; ++v) LoadPack(partial + v * args.n + pack * kWidth, sums[v]);
        other.Finish(now.mean, now.scale, w, averages, addend != nullptr,
                     dx + row * args.n + pack * kWidth, sums);
        for (int v = 0; v < kSums; ++v) StorePack(partial + v * args.n + pack * kWidth, sums[v]);
      });
    }
  }

  // Over the rows that the block has at a time, in order.
  const int width = held_packs * kWidth;
#pragma unroll
  for (int v = 0; v < kSums; ++v) {
    __syncthreads();
    for_held([&](int j, int pack) {
      StorePack(shared + threadIdx.y * width + pack * kWidth, columns[j][v]);
    });
    __syncthreads();
    for (int column = threadIdx.y * blockDim.x + threadIdx.x; column < width && column < args.n;
         column += blockDim.x * blockDim.y) {
      T sum = shared[column];
      for (int y = 1; y < static_cast<int>(blockDim.y); ++y) sum += shared[y * width + column];
      partial[v * args.n + column] = sum;
    }
  }
}

// Σ over `rows` of each of `columns` columns of `partial`, into first[0 .. n) and second[n ..). A
// block of 32 by up to 32 threads sums 32 columns: thread row r every blockDim.y-th row from r,
// then these in order.
template <typename T>
__device__ void ColumnSums(const T* partial, int64_t rows, int64_t columns, int64_t n, T* first,
                           T* second) {
  __shared__ T parts[kWarpThreads][kWarpThreads];
  const int64_t column = static_cast<int64_t>(blockIdx.x) * kWarpThreads + threadIdx.x;
  T sum = 0;
  if (column < columns) {
    for (int64_t row = threadIdx.y; row < rows; row += blockDim.y) {
      sum += partial[row * columns + column];
    }
  }
  parts[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y != 0 || column >= columns) return;
  for (unsigned i = 1; i < blockDim.y; ++i) sum += parts[i][threadIdx.x];
  if (column < n) {
    first[column] = sum;
  } else {
    second[column - n] = sum;
  }
}

template <bool kCentred, bool kLong, typename S>
__device__ void NormGradOf(const NormArgs<Compute<S>>& args, const S* dy, const S* x,
                           const Compute<S>* weight, const Compute<S>* means,
                           const Compute<S>* scales, const S* addend, S* dx, Compute<S>* partial) {
  // Buffers are aligned to more than a pack, so rows of whole packs are, too.
  if (args.n % kPackOf<S> == 0) {
    NormGrad<kCentred, kLong, S, kPackOf<S>>(args, dy, x, weight, means, scales, addend, dx,
                                             partial);
  } else {
    NormGrad<kCentred, kLong, S, 1>(args, dy, x, weight, means, scales, addend, dx, partial);
  }
}

}  // namespace

#define ORIEL_NORM_GRAD_KERNELS(S, T, suffix, is_long)                                           \
  ORIEL_CUDA_KERNEL(kMaxNormThreads, oriel_rms_norm_grad_##suffix, const NormArgs<T> args,       \
                    const S* dy, const S* x, const T* weight, const T* inv_rms, const S* addend, \
                    S* dx, T* partial) {                                                         \
    NormGradOf<false, is_long>(args, dy, x, weight, static_cast<const T*>(nullptr), inv_rms,     \
                               addend, dx, partial);                                             \
  }                                                                                              \
  ORIEL_CUDA_KERNEL(kMaxNormThreads, oriel_layer_norm_grad_##suffix, const NormArgs<T> args,     \
                    const S* dy, const S* x, const T* weight, const T* means, const T* inv_stds, \
                    const S* addend, S* dx, T* partial) {                                        \
    NormGradOf<true, is_long>(args, dy, x, weight, means, inv_stds, addend, dx, partial);        \
  }

ORIEL_NORM_GRAD_KERNELS(float, float, f32, false)
ORIEL_NORM_GRAD_KERNELS(double, double, f64, false)
ORIEL_NORM_GRAD_KERNELS(__nv_bfloat16, float, bf16, false)
ORIEL_NORM_GRAD_KERNELS(float, float, long_f32, true)
ORIEL_NORM_GRAD_KERNELS(double, double, long_f64, true)
ORIEL_NORM_GRAD_KERNELS(__nv_bfloat16, float, long_bf16, true)

ORIEL_CUDA_KERNEL(1024, oriel_column_sums_f32, const float* partial, int64_t rows, int64_t columns,
                  int64_t n, float* first, float* second) {
  ColumnSums(partial, rows, columns, n, first, second);
}
ORIEL_CUDA_KERNEL(1024, oriel_column_sums_f64, const double* partial, int64_t rows, int64_t columns,
                  int64_t n, double* first, double* second) {
  ColumnSums(partial, rows, columns, n, first, second);
}

}  // namespace oriel::kernels::cuda
