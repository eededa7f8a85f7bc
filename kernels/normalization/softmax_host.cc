#include <limits>
#include <type_traits>
#include <vector>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/row_sums.h"
#include "kernels/common/vector_math.h"
#include "kernels/normalization/normalization.h"

namespace oriel::kernels {
namespace {

// A tensor seen as [outer, n, inner] around the softmax dimension.
struct Layout {
  int64_t outer;
  int64_t n;
  int64_t inner;
};

absl::StatusOr<Layout> LayoutOf(const KernelSpec& spec) {
  const TensorSpec& x = spec.operands[0];
  for (size_t i = 1; i < spec.operands.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, x.dtype, x.shape));
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  return Layout{SizeOf(x.shape, 0, dim), x.shape[dim], SizeOf(x.shape, dim + 1, x.rank())};
}

template <typename T>
void SoftmaxRow(const T* x, T* y, int64_t n) {
  const T shift = RowMax(x, n, -std::numeric_limits<T>::infinity());
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = Exp(x[i] - shift);
  const double sum = RowSum<T>(n, [y](auto at) { return at(y); });
  const T scale = static_cast<T>(1 / sum);
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] *= scale;
}

template <typename T>
void SoftmaxGradRow(const T* dy, const T* y, T* dx, int64_t n) {
  const T dot = static_cast<T>(RowSum<T>(n, [=](auto at) { return at(dy) * at(y); }));
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) dx[i] = y[i] * (dy[i] - dot);
}

// Calls f on each line along the softmax dimension. Lines that are not contiguous, or of bf16, are
// gathered into `scratch` (kOperands lines and one result), and the result scattered.
template <typename S, int kOperands, typename F>
void ForEachLine(const Layout& layout, int threads, const S* const* operands, S* result,
                 const F& f) {
  using T = Compute<S>;
  const auto [outer, n, inner] = layout;
  const int64_t length = n;
  if constexpr (std::is_same_v<S, T>) {
    if (inner == 1) {
      ParallelFor(threads, outer, 8 * n, [=](int64_t begin, int64_t end) {
        const T* lines[kOperands];
        for (int64_t row = begin; row < end; ++row) {
          for (int i = 0; i < kOperands; ++i) lines[i] = operands[i] + row * length;
          f(lines, result + row * length);
        }
      });
      return;
    }
  }
  const int64_t stride = inner;
  ParallelFor(threads, outer * inner, 8 * n, [=](int64_t begin, int64_t end) {
    std::vector<T> scratch((kOperands + 1) * length);
    const T* lines[kOperands];
    T* out = scratch.data() + kOperands * length;
    for (int64_t line = begin; line < end; ++line) {
      const int64_t start = line / stride * length * stride + line % stride;
      for (int i = 0; i < kOperands; ++i) {
        T* copy = scratch.data() + i * length;
        for (int64_t j = 0; j < length; ++j) copy[j] = operands[i][start + j * stride];
        lines[i] = copy;
      }
      f(lines, out);
      for (int64_t j = 0; j < length; ++j) result[start + j * stride] = out[j];
    }
  });
}

struct Softmax {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    ORIEL_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(spec));
    const int threads = spec.num_threads;
    return KernelFn([layout, threads](const KernelArgs& args) {
      const S* operands[] = {args.operand<S>(0)};
      const int64_t n = layout.n;
      ForEachLine<S, 1>(layout, threads, operands, args.result<S>(0),
                        [n](const T* const* x, T* y) { SoftmaxRow(x[0], y, n); });
      return absl::OkStatus();
    });
  }
};

struct SoftmaxGrad {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    ORIEL_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(spec));
    const int threads = spec.num_threads;
    return KernelFn([layout, threads](const KernelArgs& args) {
      const S* operands[] = {args.operand<S>(0), args.operand<S>(1)};
      const int64_t n = layout.n;
      ForEachLine<S, 2>(layout, threads, operands, args.result<S>(0),
                        [n](const T* const* x, T* dx) { SoftmaxGradRow(x[0], x[1], dx, n); });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeSoftmax(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  return DispatchStored<Softmax>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeSoftmaxGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  return DispatchStored<SoftmaxGrad>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("softmax", 0, MakeSoftmax);
ORIEL_REGISTER_HOST_KERNEL("softmax_grad", 0, MakeSoftmaxGrad);

}  // namespace
}  // namespace oriel::kernels
