#include <algorithm>
#include <array>
#include <cmath>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/row_sums.h"
#include "kernels/common/wide_row.h"
#include "kernels/normalization/normalization.h"

namespace oriel::kernels {
namespace {

struct Rows {
  int64_t rows;
  int64_t n;
  Shape outer;  // the input's shape less the last dimension
};

absl::StatusOr<Rows> RowsOf(const KernelSpec& spec, size_t operand) {
  const TensorSpec& x = spec.operands[operand];
  if (x.rank() < 1) return Malformed(spec, "the input has rank 0");
  const Shape outer(x.shape.begin(), x.shape.end() - 1);
  return Rows{runtime::NumElements(outer), x.shape.back(), outer};
}

// Calls write(plus), where plus(i, v) is v plus element i of the row `added`, or v where there is
// none. Results may be written in the row's place.
template <typename T, typename Write>
void WriteSums(const T* added, const Write& write) {
  if (added != nullptr) {
    write([added](int64_t i, T value) { return value + added[i]; });
  } else {
    write([](int64_t, T value) { return value; });
  }
}

// What a norm reads: its operand 0, or the sums of operands 0 and 1, which are its last result.
template <typename S>
struct NormInput {
  NormInput(const KernelArgs& args, bool adds, int sum_result)
      : input(args.operand<S>(0)),
        addend(adds ? args.operand<S>(1) : nullptr),
        sums(adds ? args.result<S>(sum_result) : nullptr) {}

  // A row of n elements, as it is stored.
  const S* Row(int64_t row, int64_t n) const {
    if (addend == nullptr) return input + row * n;
    const S *a = input + row * n, *b = addend + row * n;
    S* sum = sums + row * n;
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) {
      Assign(sum + i, static_cast<Compute<S>>(a[i]) + static_cast<Compute<S>>(b[i]));
    }
    return sum;
  }

  const S* input;
  const S* addend;
  S* sums;
};

// Of a norm that adds first: operand 1 and the last result.
absl::Status CheckSum(const KernelSpec& spec) {
  const TensorSpec& x = spec.operands[0];
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, x.dtype, x.shape));
  return CheckResult(spec, spec.results.size() - 1, x.dtype, x.shape);
}

// The gradients of a norm of rows, operand 1, from the cotangent, operand 0: that of the input, to
// which `addend` is added unless it is null, as result 0, and kSums sums over rows behind it.
// grad(row, cotangent, input, input_grad, sums, plus) is called for each row, with plus as above,
// and adds the row's part to its sums.
template <typename S, int kSums, typename Grad>
void GradRows(const KernelArgs& args, int64_t rows, int64_t n, const S* addend, int threads,
              const Grad& grad) {
  using T = Compute<S>;
  RowBlockSums sums(rows, n, kSums);
  RowBlockSums* partial = &sums;
  const S* cotangent = args.operand<S>(0);
  const S* input = args.operand<S>(1);
  S* input_grad = args.result<S>(0);
  const int64_t block_rows = sums.block_rows();
  ParallelFor(threads, sums.blocks(), 6 * block_rows * n, [=](int64_t begin, int64_t end) {
    WideRow<S> cotangent_row(n), input_row(n), addend_row(n), target(n);
    for (int64_t block = begin; block < end; ++block) {
      std::array<double*, kSums> block_sums;
      for (int i = 0; i < kSums; ++i) {
        block_sums[i] = partial->partial(block, i);
        std::fill(block_sums[i], block_sums[i] + n, 0.0);
      }
      const int64_t last = std::min(rows, (block + 1) * block_rows);
      for (int64_t row = block * block_rows; row < last; ++row) {
        const T* dy = cotangent_row.Read(cotangent + row * n);
        const T* x = input_row.Read(input + row * n);
        T* dx = target.Begin(input_grad + row * n);
        WriteSums<T>(addend == nullptr ? nullptr : addend_row.Read(addend + row * n),
                     [&](auto plus) { grad(row, dy, x, dx, block_sums, plus); });
        target.End(input_grad + row * n);
      }
    }
  });
  for (int i = 0; i < kSums; ++i) sums.Finish(i, args.result<T>(1 + i));
}

template <bool kAdds>
struct LayerNorm {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    const TensorSpec& x = spec.operands[0];
    const DType small = ComputeDType(x.dtype);
    ORIEL_ASSIGN_OR_RETURN(const Rows shape, RowsOf(spec, 0));
    ORIEL_ASSIGN_OR_RETURN(const double epsilon, spec.Float("epsilon"));
    constexpr int kWeight = kAdds ? 2 : 1;
    if (kAdds) ORIEL_RETURN_IF_ERROR(CheckSum(spec));
    const bool has_bias = spec.operands.size() == kWeight + 2;
    for (size_t i = kWeight; i < spec.operands.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, small, {shape.n}));
    }
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, small, shape.outer));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 2, small, shape.outer));
    const int threads = spec.num_threads;
    return KernelFn(
        [rows = shape.rows, n = shape.n, epsilon, has_bias, threads](const KernelArgs& args) {
          const NormInput<S> input(args, kAdds, 3);
          const T* weight = args.operand<T>(kWeight);
          const T* bias = has_bias ? args.operand<T>(kWeight + 1) : nullptr;
          S* result = args.result<S>(0);
          T* means = args.result<T>(1);
          T* inv_stds = args.result<T>(2);
          ParallelFor(threads, rows, 4 * n, [=](int64_t begin, int64_t end) {
            WideRow<S> source(n), target(n);
            for (int64_t row = begin; row < end; ++row) {
              const T* x = source.Read(input.Row(row, n));
              T* y = target.Begin(result + row * n);
              const double mean = RowSum<T>(n, [x](auto at) { return at(x); }) / n;
              const T shift = static_cast<T>(mean);
              const double variance = RowSum<T>(n,
                                                [x, shift](auto at) {
                                                  const auto d = Widen(at(x) - shift);
                                                  return d * d;
                                                }) /
                                      n;
              const T scale = static_cast<T>(1 / std::sqrt(variance + epsilon));
              means[row] = shift;
              inv_stds[row] = scale;
              if (bias != nullptr) {
#pragma omp simd
                for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) * scale * weight[i] + bias[i];
              } else {
#pragma omp simd
                for (int64_t i = 0; i < n; ++i) y[i] = (x[i] - shift) * scale * weight[i];
              }
              target.End(result + row * n);
            }
          });
          return absl::OkStatus();
        });
  }
};

struct LayerNormGrad {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    const TensorSpec& x = spec.operands[1];
    const DType small = ComputeDType(x.dtype);
    ORIEL_ASSIGN_OR_RETURN(const Rows shape, RowsOf(spec, 1));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, small, {shape.n}));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, small, shape.outer));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 4, small, shape.outer));
    const bool adds = spec.operands.size() == 6;
    if (adds) ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 5, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, small, {shape.n}));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 2, small, {shape.n}));
    const int threads = spec.num_threads;
    return KernelFn([rows = shape.rows, n = shape.n, adds, threads](const KernelArgs& args) {
      const T* weight = args.operand<T>(2);
      const T* means = args.operand<T>(3);
      const T* inv_stds = args.operand<T>(4);
      GradRows<S, 2>(
          args, rows, n, adds ? args.operand<S>(5) : nullptr, threads,
          [=](int64_t row, const T* dy, const T* x, T* dx, const std::array<double*, 2>& sums,
              auto plus) {
            double *weight_sum = sums[0], *bias_sum = sums[1];
            const T mean = means[row];
            const T scale = inv_stds[row];
            const T avg_g =
                static_cast<T>(RowSum<T>(n, [=](auto at) { return at(dy) * at(weight); }) / n);
            const T avg_gx = static_cast<T>(
                RowSum<T>(n,
                          [=](auto at) { return at(dy) * at(weight) * ((at(x) - mean) * scale); }) /
                n);
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) {
              const T normed = (x[i] - mean) * scale;
              weight_sum[i] += static_cast<double>(dy[i] * normed);
              bias_sum[i] += static_cast<double>(dy[i]);
              dx[i] = plus(i, scale * (dy[i] * weight[i] - avg_g - normed * avg_gx));
            }
          });
      return absl::OkStatus();
    });
  }
};

template <bool kAdds>
struct RmsNorm {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    const TensorSpec& x = spec.operands[0];
    const DType small = ComputeDType(x.dtype);
    ORIEL_ASSIGN_OR_RETURN(const Rows shape, RowsOf(spec, 0));
    ORIEL_ASSIGN_OR_RETURN(const double epsilon, spec.Float("epsilon"));
    ORIEL_ASSIGN_OR_RETURN(const double weight_offset, FloatOr(spec, "weight_offset", 0));
    const T offset = static_cast<T>(weight_offset);
    constexpr int kWeight = kAdds ? 2 : 1;
    if (kAdds) ORIEL_RETURN_IF_ERROR(CheckSum(spec));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, kWeight, small, {shape.n}));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, small, shape.outer));
    const int threads = spec.num_threads;
    return KernelFn(
        [rows = shape.rows, n = shape.n, epsilon, offset, threads](const KernelArgs& args) {
          const NormInput<S> input(args, kAdds, 2);
          const T* weight = args.operand<T>(kWeight);
          S* result = args.result<S>(0);
          T* inv_rms = args.result<T>(1);
          ParallelFor(threads, rows, 4 * n, [=](int64_t begin, int64_t end) {
            WideRow<S> source(n), target(n);
            for (int64_t row = begin; row < end; ++row) {
              const T* x = source.Read(input.Row(row, n));
              T* y = target.Begin(result + row * n);
              const double squares = RowSum<T>(n, [x](auto at) {
                const auto v = Widen(at(x));
                return v * v;
              });
              const T scale = static_cast<T>(1 / std::sqrt(squares / n + epsilon));
              inv_rms[row] = scale;
#pragma omp simd
              for (int64_t i = 0; i < n; ++i) y[i] = x[i] * scale * (weight[i] + offset);
              target.End(result + row * n);
            }
          });
          return absl::OkStatus();
        });
  }
};

struct RmsNormGrad {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    const TensorSpec& x = spec.operands[1];
    const DType small = ComputeDType(x.dtype);
    ORIEL_ASSIGN_OR_RETURN(const Rows shape, RowsOf(spec, 1));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, small, {shape.n}));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, small, shape.outer));
    const bool adds = spec.operands.size() == 5;
    if (adds) ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 4, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, small, {shape.n}));
    ORIEL_ASSIGN_OR_RETURN(const double weight_offset, FloatOr(spec, "weight_offset", 0));
    const T offset = static_cast<T>(weight_offset);
    const int threads = spec.num_threads;
    return KernelFn([rows = shape.rows, n = shape.n, offset, adds,
                     threads](const KernelArgs& args) {
      const T* weight = args.operand<T>(2);
      const T* inv_rms = args.operand<T>(3);
      GradRows<S, 1>(
          args, rows, n, adds ? args.operand<S>(4) : nullptr, threads,
          [=](int64_t row, const T* dy, const T* x, T* dx, const std::array<double*, 1>& sums,
              auto plus) {
            double* weight_sum = sums[0];
            const T scale = inv_rms[row];
            const T avg_gx = static_cast<T>(
                RowSum<T>(
                    n, [=](auto at) { return at(dy) * (at(weight) + offset) * (at(x) * scale); }) /
                n);
#pragma omp simd
            for (int64_t i = 0; i < n; ++i) {
              const T normed = x[i] * scale;
              weight_sum[i] += static_cast<double>(dy[i] * normed);
              dx[i] = plus(i, scale * (dy[i] * (weight[i] + offset) - normed * avg_gx));
            }
          });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeLayerNorm(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 3));
  return DispatchStored<LayerNorm<false>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeAddLayerNorm(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 4, 4));
  return DispatchStored<LayerNorm<true>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeLayerNormGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 5, 6, 3));
  return DispatchStored<LayerNormGrad>(spec, spec.operands[1].dtype);
}
absl::StatusOr<KernelFn> MakeRmsNorm(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2));
  return DispatchStored<RmsNorm<false>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeAddRmsNorm(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 3));
  return DispatchStored<RmsNorm<true>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeRmsNormGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 5, 2));
  return DispatchStored<RmsNormGrad>(spec, spec.operands[1].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("add_layer_norm", 0, MakeAddLayerNorm);
ORIEL_REGISTER_HOST_KERNEL("add_rms_norm", 0, MakeAddRmsNorm);
ORIEL_REGISTER_HOST_KERNEL("layer_norm", 0, MakeLayerNorm);
ORIEL_REGISTER_HOST_KERNEL("layer_norm_grad", 0, MakeLayerNormGrad);
ORIEL_REGISTER_HOST_KERNEL("rms_norm", 0, MakeRmsNorm);
ORIEL_REGISTER_HOST_KERNEL("rms_norm_grad", 0, MakeRmsNormGrad);

}  // namespace
}  // namespace oriel::kernels
