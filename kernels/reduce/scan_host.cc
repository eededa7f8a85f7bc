// cumsum, argmax and remaining_from; see reduce.h.
#include <algorithm>
#include <type_traits>

#include "kernels/common/bfloat16.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/reduce/reduce.h"

namespace oriel::kernels {
namespace {

// A tensor seen as [outer, n, inner] around one dimension.
struct Layout {
  int64_t outer, n, inner;
};

absl::StatusOr<Layout> LayoutOf(const KernelSpec& spec) {
  const TensorSpec& x = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  return Layout{SizeOf(x.shape, 0, dim), x.shape[dim], SizeOf(x.shape, dim + 1, x.rank())};
}

template <typename T>
absl::StatusOr<KernelFn> MakeCumsumTyped(const KernelSpec& spec) {
  using A = std::conditional_t<std::is_floating_point_v<T>, double, uint64_t>;
  ORIEL_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(spec));
  ORIEL_ASSIGN_OR_RETURN(const bool exclusive, FlagOr(spec, "exclusive", false));
  ORIEL_ASSIGN_OR_RETURN(const bool reverse, FlagOr(spec, "reverse", false));
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const T* x = args.operand<T>(0);
    T* y = args.result<T>(0);
    const auto [outer, n, inner] = layout;
    const int64_t length = n;
    const int64_t lines = inner;
    ParallelFor(threads, outer * inner, n, [=](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t start = line / lines * length * lines + line % lines;
        A sum = 0;
        for (int64_t i = 0; i < length; ++i) {
          const int64_t at = start + (reverse ? length - 1 - i : i) * lines;
          const A next = sum + static_cast<A>(x[at]);
          y[at] = static_cast<T>(exclusive ? sum : next);
          sum = next;
        }
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeCumsum(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.operands[0].dtype, spec.operands[0].shape));
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeCumsumTyped<float>(spec);
    case DType::kF64:
      return MakeCumsumTyped<double>(spec);
    case DType::kI64:
      return MakeCumsumTyped<int64_t>(spec);
    case DType::kI32:
      return MakeCumsumTyped<int32_t>(spec);
    default:
      return Unsupported(spec, "takes f32, f64, i64 and i32");
  }
}

// Index of the first largest of n elements `stride` apart; n > 0.
template <typename T>
int64_t FirstLargest(const T* x, int64_t n, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 1; i < n; ++i) {
    const T value = x[i * stride];
    const T held = x[best * stride];
    if (value > held || (value != value && held == held)) best = i;
  }
  return best;
}

template <typename T, typename I>
absl::StatusOr<KernelFn> MakeArgmaxTyped(const KernelSpec& spec, const Layout& layout) {
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const T* x = args.operand<T>(0);
    I* y = args.result<I>(0);
    const auto [outer, n, inner] = layout;
    const int64_t length = n;
    const int64_t lines = inner;
    ParallelFor(threads, outer * inner, n, [=](int64_t begin, int64_t end) {
      for (int64_t line = begin; line < end; ++line) {
        const int64_t start = line / lines * length * lines + line % lines;
        y[line] = static_cast<I>(FirstLargest(x + start, length, lines));
      }
    });
    return absl::OkStatus();
  });
}

template <typename I>
absl::StatusOr<KernelFn> MakeArgmaxIndexed(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const Layout layout, LayoutOf(spec));
  if (layout.n == 0) return Malformed(spec, "the dimension is empty");
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeArgmaxTyped<float, I>(spec, layout);
    case DType::kF64:
      return MakeArgmaxTyped<double, I>(spec, layout);
    case DType::kBF16:
      return MakeArgmaxTyped<BFloat16, I>(spec, layout);
    case DType::kI64:
      return MakeArgmaxTyped<int64_t, I>(spec, layout);
    case DType::kI32:
      return MakeArgmaxTyped<int32_t, I>(spec, layout);
    case DType::kBool:
      return MakeArgmaxTyped<uint8_t, I>(spec, layout);
    default:
      return Unsupported(spec, "takes f32, f64, bf16, i64, i32 and bool");
  }
}

absl::StatusOr<KernelFn> MakeArgmax(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  ORIEL_ASSIGN_OR_RETURN(const bool keep, FlagOr(spec, "keep_dims", false));
  Shape expected = x.shape;
  if (keep) {
    expected[dim] = 1;
  } else {
    expected.erase(expected.begin() + dim);
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.results[0].dtype, expected));
  if (spec.results[0].dtype == DType::kI64) return MakeArgmaxIndexed<int64_t>(spec);
  if (spec.results[0].dtype == DType::kI32) return MakeArgmaxIndexed<int32_t>(spec);
  return Unsupported(spec, "gives i64 and i32");
}

struct RemainingFrom {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const RowsWithValue shape, RowsWithValue::Make(spec));
    const int threads = spec.num_threads;
    return KernelFn([shape, threads](const KernelArgs& args) {
      const T *x = args.operand<T>(0), *values = args.operand<T>(1);
      int64_t* y = args.result<int64_t>(0);
      ORIEL_ASSIGN_OR_RETURN(const int64_t first, shape.elements.First(args));
      ParallelFor(threads, shape.rows, shape.elements.size, [=](int64_t begin, int64_t end) {
        const int64_t n = shape.elements.size;
        for (int64_t row = begin; row < end; ++row) {
          const T value = values[row];
          const T* at = std::find_if(x + row * n, x + (row + 1) * n, [value](T element) {
            return element == value || (element != element && value != value);
          });
          const int64_t i = at - (x + row * n);
          y[row] = i == n ? 0 : shape.elements.whole - first - i;
        }
      });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeRemainingFrom(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  return DispatchStored<RemainingFrom>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("cumsum", 0, MakeCumsum);
ORIEL_REGISTER_HOST_KERNEL("remaining_from", 0, MakeRemainingFrom);
ORIEL_REGISTER_HOST_KERNEL("argmax", 0, MakeArgmax);

}  // namespace
}  // namespace oriel::kernels
