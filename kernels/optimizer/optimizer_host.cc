#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/row_sums.h"
#include "kernels/common/wide_row.h"
#include "kernels/optimizer/optimizer.h"

namespace oriel::kernels {
namespace {

// Σ x² of a block of at most kSquaresBlock elements.
template <typename S>
double BlockSquares(const S* x, int64_t count) {
  using T = Compute<S>;
  T wide[std::is_same_v<S, T> ? 1 : kSquaresBlock];
  const T* row;
  if constexpr (std::is_same_v<S, T>) {
    row = x;
  } else {
    WidenElements(x, count, wide);
    row = wide;
  }
  return RowSum<T>(count, [row](auto at) {
    const auto value = Widen(at(row));
    return value * value;
  });
}

struct SumSquares {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    struct Block {
      int operand;
      int64_t begin;
      int64_t count;
      bool is_bf16;
    };
    std::vector<Block> blocks;
    for (size_t i = 0; i < spec.operands.size(); ++i) {
      const TensorSpec& operand = spec.operands[i];
      const bool is_bf16 = operand.dtype == DType::kBF16 && std::is_same_v<T, float>;
      if (!is_bf16) {
        ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, spec.results[0].dtype, operand.shape));
      }
      const int64_t size = operand.num_elements();
      for (int64_t begin = 0; begin < size; begin += kSquaresBlock) {
        blocks.push_back(
            {static_cast<int>(i), begin, std::min(kSquaresBlock, size - begin), is_bf16});
      }
    }
    auto sums = std::make_shared<std::vector<double>>(blocks.size());
    const int threads = spec.num_threads;
    return KernelFn([blocks, sums, threads](const KernelArgs& args) {
      ParallelFor(threads, static_cast<int64_t>(blocks.size()), kSquaresBlock,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const auto [operand, first, count, is_bf16] = blocks[i];
                      (*sums)[i] =
                          is_bf16 ? BlockSquares(args.operand<BFloat16>(operand) + first, count)
                                  : BlockSquares(args.operand<T>(operand) + first, count);
                    }
                  });
      double total = 0;
      for (double sum : *sums) total += sum;
      *args.result<T>(0) = static_cast<T>(total);
      return absl::OkStatus();
    });
  }
};

// The loops stand in functions of their own, with coefficients by value: from within a lambda,
// the compiler would have to assume that a store changes a captured coefficient.
template <typename T, typename G>
void SgdRange(const T* p, const G* g, T scale, T rate, T decay, T* out, int64_t begin,
              int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) out[i] = p[i] - rate * (scale * g[i] + decay * p[i]);
}

template <typename T>
struct AdamWCoefficients {
  T scale;       // of the gradient
  T keep;        // 1 - learning rate * weight decay
  T b1, c1;      // β1, 1 - β1
  T b2, c2;      // β2, 1 - β2
  T step_size;   // learning rate / (1 - β1^step)
  T root_scale;  // 1 / √(1 - β2^step)
  T epsilon;
};

template <typename T, typename G>
void AdamWRange(const T* p, const G* gradient, const T* m, const T* v, AdamWCoefficients<T> c,
                T* new_p, T* new_m, T* new_v, int64_t begin, int64_t end) {
#pragma omp simd
  for (int64_t i = begin; i < end; ++i) {
    const T g = c.scale * gradient[i];
    const T first = c.b1 * m[i] + c.c1 * g;
    const T second = c.b2 * v[i] + c.c2 * (g * g);
    new_p[i] = c.keep * p[i] - c.step_size * first / (std::sqrt(second) * c.root_scale + c.epsilon);
    new_m[i] = first;
    new_v[i] = second;
  }
}

// Elements that are stepped before they are rounded: they stay in the cache.
constexpr int64_t kRoundedBlock = 4096;

// Calls range(tensor, begin, end) for pieces of all tensors, in parallel where they are large, and
// rounds what it has made.
template <typename T, typename Range>
void ForEachRange(const std::vector<int64_t>& sizes, int threads, int64_t cost,
                  const KernelArgs& args, int rounded, Range range) {
  for (size_t i = 0; i < sizes.size(); ++i) {
    const int tensor = static_cast<int>(i);
    const T* stepped = args.result<T>(tensor);
    auto* narrow = rounded < 0 ? nullptr : args.result<BFloat16>(rounded + tensor);
    ParallelForElements(threads, sizes[i], cost, [=](int64_t begin, int64_t end) {
      if (narrow == nullptr) return range(tensor, begin, end);
      for (; begin < end; begin += kRoundedBlock) {
        const int64_t block = std::min(end, begin + kRoundedBlock);
        range(tensor, begin, block);
        if constexpr (std::is_same_v<T, float>) {
          RoundElements(stepped + begin, block - begin, narrow + begin);
        }
      }
    });
  }
}

std::vector<int64_t> SizesOf(const KernelSpec& spec, const StepShape& shape) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < shape.count; ++i) sizes.push_back(spec.operands[i].num_elements());
  return sizes;
}

// Parameters of T, gradients of G.
template <typename T, typename G>
struct Sgd {
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const StepShape& shape) {
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    const int threads = spec.num_threads;
    return KernelFn([=, sizes = SizesOf(spec, shape)](const KernelArgs& args) {
      const int n = shape.count;
      const T scale = *args.operand<T>(2 * n);
      const T rate = *args.operand<T>(2 * n + 1);
      const T decay = static_cast<T>(weight_decay);
      ForEachRange<T>(sizes, threads, 2, args, shape.rounded ? n : -1,
                      [=](int i, int64_t begin, int64_t end) {
                        SgdRange(args.operand<T>(i), args.operand<G>(n + i), scale, rate, decay,
                                 args.result<T>(i), begin, end);
                      });
      return absl::OkStatus();
    });
  }
};

template <typename T, typename G>
struct AdamW {
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const StepShape& shape) {
    ORIEL_ASSIGN_OR_RETURN(const double beta1, spec.Float("beta1"));
    ORIEL_ASSIGN_OR_RETURN(const double beta2, spec.Float("beta2"));
    ORIEL_ASSIGN_OR_RETURN(const double epsilon, spec.Float("epsilon"));
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    const int threads = spec.num_threads;
    return KernelFn([=, sizes = SizesOf(spec, shape)](const KernelArgs& args) {
      const int n = shape.count;
      const double rate = static_cast<double>(*args.operand<T>(4 * n + 1));
      const double step = static_cast<double>(*args.operand<T>(4 * n + 2));
      AdamWCoefficients<T> c;
      c.scale = *args.operand<T>(4 * n);
      c.keep = static_cast<T>(1 - rate * weight_decay);
      c.b1 = static_cast<T>(beta1);
      c.c1 = static_cast<T>(1 - beta1);
      c.b2 = static_cast<T>(beta2);
      c.c2 = static_cast<T>(1 - beta2);
      c.step_size = static_cast<T>(rate / (1 - std::pow(beta1, step)));
      c.root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
      c.epsilon = static_cast<T>(epsilon);
      ForEachRange<T>(sizes, threads, 4, args, shape.rounded ? 3 * n : -1,
                      [=](int i, int64_t begin, int64_t end) {
                        AdamWRange(args.operand<T>(i), args.operand<G>(n + i),
                                   args.operand<T>(2 * n + i), args.operand<T>(3 * n + i), c,
                                   args.result<T>(i), args.result<T>(n + i),
                                   args.result<T>(2 * n + i), begin, end);
                      });
      return absl::OkStatus();
    });
  }
};

// A step, with gradients of the parameter's type, or of bf16 for f32. kOwn operands are each
// parameter's, kScalars stand behind them.
template <template <typename, typename> class Step, int kOwn, int kScalars>
struct ByGradient {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const StepShape shape, StepShape::Make(spec, kOwn, kScalars));
    if constexpr (std::is_same_v<T, float>) {
      if (shape.gradient == DType::kBF16) return Step<T, BFloat16>::Make(spec, shape);
    }
    return Step<T, T>::Make(spec, shape);
  }
};

absl::StatusOr<KernelFn> MakeSumSquares(const KernelSpec& spec) {
  if (spec.results.size() != 1) return Malformed(spec, "needs one result");
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.results[0].dtype, {}));
  return DispatchFloat<SumSquares>(spec, spec.results[0].dtype);
}
absl::StatusOr<KernelFn> MakeSgd(const KernelSpec& spec) {
  if (spec.operands.empty()) return Malformed(spec, "has no operands");
  return DispatchFloat<ByGradient<Sgd, 2, 2>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeAdamW(const KernelSpec& spec) {
  if (spec.operands.empty()) return Malformed(spec, "has no operands");
  return DispatchFloat<ByGradient<AdamW, 4, 3>>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("sum_squares", 0, MakeSumSquares);
ORIEL_REGISTER_HOST_KERNEL("sgd", 0, MakeSgd);
ORIEL_REGISTER_HOST_KERNEL("adamw", 0, MakeAdamW);

}  // namespace
}  // namespace oriel::kernels
