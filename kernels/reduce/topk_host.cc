// topk; see reduce.h.
#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/common/bfloat16.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/reduce/reduce.h"

namespace oriel::kernels {
namespace {

// Whether element i comes before j, elements being `stride` apart.
template <typename T>
struct Before {
  const T* x;
  int64_t stride;
  bool largest;

  bool operator()(int64_t i, int64_t j) const {
    const T a = x[i * stride], b = x[j * stride];
    const bool a_nan = a != a, b_nan = b != b;
    if (a_nan || b_nan) {
      if (a_nan == b_nan) return i < j;
      return largest ? a_nan : b_nan;
    }
    if (a == b) return i < j;
    return largest ? a > b : a < b;
  }
};

template <typename T>
absl::StatusOr<KernelFn> MakeTopkTyped(const KernelSpec& spec, int64_t dim, bool largest) {
  const Shape& shape = spec.operands[0].shape;
  const int64_t outer = SizeOf(shape, 0, dim), n = shape[dim];
  const int64_t inner = SizeOf(shape, dim + 1, static_cast<int64_t>(shape.size()));
  const int64_t k = spec.results[0].shape[dim];
  const int threads = spec.num_threads;
  return KernelFn([=](const KernelArgs& args) {
    const T* x = args.operand<T>(0);
    int64_t* y = args.result<int64_t>(0);
    ParallelFor(threads, outer * inner, n, [=](int64_t begin, int64_t end) {
      std::vector<int64_t> order(n);
      for (int64_t line = begin; line < end; ++line) {
        const int64_t row = line / inner, column = line % inner;
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + k, order.end(),
                          Before<T>{x + row * n * inner + column, inner, largest});
        for (int64_t i = 0; i < k; ++i) y[(row * k + i) * inner + column] = order[i];
      }
    });
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeTopk(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& x = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", x.rank()));
  ORIEL_ASSIGN_OR_RETURN(const int64_t k, spec.Int("k"));
  ORIEL_ASSIGN_OR_RETURN(const bool largest, FlagOr(spec, "largest", true));
  if (k < 0 || k > x.shape[dim]) return Malformed(spec, "k does not fit the dimension");
  Shape expected = x.shape;
  expected[dim] = k;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, DType::kI64, expected));
  switch (x.dtype) {
    case DType::kF32:
      return MakeTopkTyped<float>(spec, dim, largest);
    case DType::kF64:
      return MakeTopkTyped<double>(spec, dim, largest);
    case DType::kBF16:
      return MakeTopkTyped<BFloat16>(spec, dim, largest);
    case DType::kI64:
      return MakeTopkTyped<int64_t>(spec, dim, largest);
    case DType::kI32:
      return MakeTopkTyped<int32_t>(spec, dim, largest);
    default:
      return Unsupported(spec, "takes f32, f64, bf16, i64 and i32");
  }
}

ORIEL_REGISTER_HOST_KERNEL("topk", 0, MakeTopk);

}  // namespace
}  // namespace oriel::kernels
