#include <algorithm>
#include <limits>
#include <type_traits>

#include "kernels/common/bfloat16.h"
#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/scratch.h"
#include "kernels/reduce/reduce.h"

namespace oriel::kernels {
namespace {

template <typename T>
using SumType = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;

struct Sum {
  template <typename T>
  using Accumulator = SumType<T>;
  template <typename T>
  static SumType<T> Start() {
    return 0;
  }
  template <typename A>
  static A Combine(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
    } else {
      return a + b;
    }
  }
  template <typename A>
  static A Finish(A a, int64_t) {
    return a;
  }
};
struct Mean : Sum {
  template <typename A>
  static A Finish(A a, int64_t count) {
    if (std::is_integral_v<A> && count == 0) return 0;
    return a / static_cast<A>(count);
  }
};
struct Prod {
  template <typename T>
  using Accumulator = SumType<T>;
  template <typename T>
  static SumType<T> Start() {
    return 1;
  }
  template <typename A>
  static A Combine(A a, A b) {
    if constexpr (std::is_integral_v<A>) {
      return static_cast<A>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
    } else {
      return a * b;
    }
  }
  template <typename A>
  static A Finish(A a, int64_t) {
    return a;
  }
};
template <bool kLargest>
struct Extreme {
  template <typename T>
  using Accumulator = T;
  template <typename T>
  static T Start() {
    using Limits = std::numeric_limits<T>;
    if constexpr (std::is_same_v<T, uint8_t>) return kLargest ? 0 : 1;  // a boolean
    if constexpr (std::is_floating_point_v<T>) {
      return kLargest ? -Limits::infinity() : Limits::infinity();
    }
    return kLargest ? Limits::lowest() : Limits::max();
  }
  template <typename A>
  static A Combine(A a, A b) {
    const bool keep = (kLargest ? a >= b : a <= b) || a != a;
    return keep ? a : b;  // NaN enters and stays
  }
  template <typename A>
  static A Finish(A a, int64_t) {
    return a;
  }
};

// Lanes of a reduction along a contiguous row, and columns that are reduced together.
constexpr int kLanes = 16;
constexpr int64_t kColumns = 128;

template <typename Op, typename S>
Compute<S> ReduceRow(const S* x, int64_t count, int64_t divisor) {
  using T = Compute<S>;
  using A = typename Op::template Accumulator<T>;
  A lanes[kLanes];
  for (A& lane : lanes) lane = Op::template Start<T>();
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
#pragma omp simd
    for (int l = 0; l < kLanes; ++l) lanes[l] = Op::Combine(lanes[l], static_cast<A>(x[i + l]));
  }
  for (int l = 0; i < count; ++i, ++l) lanes[l] = Op::Combine(lanes[l], static_cast<A>(x[i]));
  A total = lanes[0];
  for (int l = 1; l < kLanes; ++l) total = Op::Combine(total, lanes[l]);
  return static_cast<T>(Op::Finish(total, divisor));
}

// result[j] for `width` <= kColumns columns, over `rows` rows of length `stride`.
template <typename Op, typename S, typename R>
void ReduceColumns(const S* x, int64_t rows, int64_t stride, int64_t width, int64_t divisor,
                   R* result) {
  using T = Compute<S>;
  using A = typename Op::template Accumulator<T>;
  A sums[kColumns];
  for (int64_t j = 0; j < width; ++j) sums[j] = Op::template Start<T>();
  for (int64_t r = 0; r < rows; ++r) {
    const S* row = x + r * stride;
#pragma omp simd
    for (int64_t j = 0; j < width; ++j) sums[j] = Op::Combine(sums[j], static_cast<A>(row[j]));
  }
  for (int64_t j = 0; j < width; ++j) result[j] = static_cast<T>(Op::Finish(sums[j], divisor));
}

// Any pattern of kept and reduced dimensions: walks the operand in order, with an accumulator for
// each result.
template <typename Op, typename S, typename R>
KernelFn LaunchGeneral(const ReducePlan& plan) {
  using T = Compute<S>;
  using A = typename Op::template Accumulator<T>;
  const int64_t rank = static_cast<int64_t>(plan.dims.size());
  std::vector<int64_t> strides(rank);  // of each dimension in the result
  int64_t stride = 1;
  for (int64_t d = rank - 1; d >= 0; --d) {
    strides[d] = plan.dims[d].reduced ? 0 : stride;
    if (!plan.dims[d].reduced) stride *= plan.dims[d].size;
  }
  return [plan, rank, strides](const KernelArgs& args) {
    const S* x = args.operand<S>(0);
    R* y = args.result<R>(0);
    A* sum = static_cast<A*>(ThreadScratch(plan.results * sizeof(A)));
    std::fill_n(sum, plan.results, Op::template Start<T>());
    const int64_t inner = plan.dims.back().size;
    const int64_t step = strides.back();
    const int64_t rows = plan.results * plan.reduced_elements / inner;
    std::vector<int64_t> index(rank, 0);
    int64_t out = 0;
    for (int64_t row = 0; row < rows; ++row, x += inner) {
      for (int64_t j = 0; j < inner; ++j) {
        A& into = sum[out + j * step];
        into = Op::Combine(into, static_cast<A>(x[j]));
      }
      for (int64_t d = rank - 2; d >= 0; --d) {
        out += strides[d];
        if (++index[d] < plan.dims[d].size) break;
        out -= strides[d] * plan.dims[d].size;
        index[d] = 0;
      }
    }
    for (int64_t i = 0; i < plan.results; ++i) {
      y[i] = static_cast<T>(Op::Finish(sum[i], plan.reduced_elements));
    }
    return absl::OkStatus();
  };
}

// Of elements of S to those of R, the same or what they are computed in.
template <typename Op, typename S, typename R = S>
absl::StatusOr<KernelFn> MakeReduceTyped(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const ReducePlan plan, ReducePlan::Make(spec));
  // Most launches are [outer, n, inner] with n reduced.
  int64_t outer = 1, n = 1, inner = 1;
  const auto& dims = plan.dims;
  size_t next = 0;
  if (plan.results * plan.reduced_elements == 0) {
    // No element to read: each result, if there is one, is the neutral element.
    outer = plan.results;
    n = 0;
    next = dims.size();
  }
  if (next < dims.size() && !dims[next].reduced) outer = dims[next++].size;
  if (next < dims.size() && dims[next].reduced) n = dims[next++].size;
  if (next < dims.size() && !dims[next].reduced) inner = dims[next++].size;
  if (next < dims.size()) return LaunchGeneral<Op, S, R>(plan);
  const int threads = spec.num_threads;
  const int64_t divisor = plan.reduced_elements;
  if (inner == 1) {
    return KernelFn([outer, n, divisor, threads](const KernelArgs& args) {
      const S* x = args.operand<S>(0);
      R* y = args.result<R>(0);
      ParallelFor(threads, outer, 2 * n, [=](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) y[i] = ReduceRow<Op>(x + i * n, n, divisor);
      });
      return absl::OkStatus();
    });
  }
  const int64_t strips = (inner + kColumns - 1) / kColumns;
  return KernelFn([=](const KernelArgs& args) {
    const S* x = args.operand<S>(0);
    R* y = args.result<R>(0);
    ParallelFor(threads, outer * strips, n * kColumns, [=](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        const int64_t o = i / strips;
        const int64_t j = i % strips * kColumns;
        ReduceColumns<Op>(x + o * n * inner + j, n, inner, std::min(kColumns, inner - j), divisor,
                          y + o * inner + j);
      }
    });
    return absl::OkStatus();
  });
}

template <typename Op>
absl::StatusOr<KernelFn> MakeReduce(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  switch (spec.operands[0].dtype) {
    case DType::kF32:
      return MakeReduceTyped<Op, float>(spec);
    case DType::kF64:
      return MakeReduceTyped<Op, double>(spec);
    case DType::kBF16:
      if (spec.results[0].dtype == DType::kF32) return MakeReduceTyped<Op, BFloat16, float>(spec);
      return MakeReduceTyped<Op, BFloat16>(spec);
    case DType::kI64:
      return MakeReduceTyped<Op, int64_t>(spec);
    case DType::kI32:
      return MakeReduceTyped<Op, int32_t>(spec);
    case DType::kBool:
      if constexpr (std::is_same_v<Op, Extreme<true>> || std::is_same_v<Op, Extreme<false>>) {
        return MakeReduceTyped<Op, uint8_t>(spec);
      }
      return Unsupported(spec, "takes no booleans");
    default:
      return Unsupported(spec, "takes f32, f64, bf16, i64 and i32");
  }
}

ORIEL_REGISTER_HOST_KERNEL("reduce_sum", 0, MakeReduce<Sum>);
ORIEL_REGISTER_HOST_KERNEL("reduce_mean", 0, MakeReduce<Mean>);
ORIEL_REGISTER_HOST_KERNEL("reduce_max", 0, MakeReduce<Extreme<true>>);
ORIEL_REGISTER_HOST_KERNEL("reduce_min", 0, MakeReduce<Extreme<false>>);
ORIEL_REGISTER_HOST_KERNEL("reduce_prod", 0, MakeReduce<Prod>);

}  // namespace
}  // namespace oriel::kernels
