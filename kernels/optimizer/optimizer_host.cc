#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/row_sums.h"
#include "kernels/optimizer/optimizer.h"

namespace oriel::kernels {
namespace {

struct SumSquares {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    struct Block {
      int operand;
      int64_t begin;
      int64_t count;
    };
    std::vector<Block> blocks;
    for (size_t i = 0; i < spec.operands.size(); ++i) {
      ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, spec.results[0].dtype, spec.operands[i].shape));
      const int64_t size = spec.operands[i].num_elements();
      for (int64_t begin = 0; begin < size; begin += kSquaresBlock) {
        blocks.push_back({static_cast<int>(i), begin, std::min(kSquaresBlock, size - begin)});
      }
    }
    auto sums = std::make_shared<std::vector<double>>(blocks.size());
    const int threads = spec.num_threads;
    return KernelFn([blocks, sums, threads](const KernelArgs& args) {
      ParallelFor(threads, static_cast<int64_t>(blocks.size()), kSquaresBlock,
                  [&](int64_t begin, int64_t end) {
                    for (int64_t i = begin; i < end; ++i) {
                      const T* x = args.operand<T>(blocks[i].operand) + blocks[i].begin;
                      (*sums)[i] = RowSum<T>(blocks[i].count, [x](auto at) {
                        const auto value = Widen(at(x));
                        return value * value;
                      });
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
template <typename T>
void SgdRange(const T* p, const T* g, T scale, T rate, T decay, T* out, int64_t begin,
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

template <typename T>
void AdamWRange(const T* p, const T* gradient, const T* m, const T* v, AdamWCoefficients<T> c,
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

struct Sgd {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const TensorSpec& parameter = spec.operands[0];
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, parameter.dtype, parameter.shape));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, parameter.dtype, {}));
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, parameter.dtype, {}));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, parameter.dtype, parameter.shape));
    const int64_t count = parameter.num_elements();
    const int threads = spec.num_threads;
    return KernelFn([=](const KernelArgs& args) {
      const T* p = args.operand<T>(0);
      const T* g = args.operand<T>(1);
      const T scale = *args.operand<T>(2);
      const T rate = *args.operand<T>(3);
      const T decay = static_cast<T>(weight_decay);
      T* out = args.result<T>(0);
      ParallelForElements(threads, count, 2, [=](int64_t begin, int64_t end) {
        SgdRange(p, g, scale, rate, decay, out, begin, end);
      });
      return absl::OkStatus();
    });
  }
};

struct AdamW {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const TensorSpec& parameter = spec.operands[0];
    ORIEL_ASSIGN_OR_RETURN(const double beta1, spec.Float("beta1"));
    ORIEL_ASSIGN_OR_RETURN(const double beta2, spec.Float("beta2"));
    ORIEL_ASSIGN_OR_RETURN(const double epsilon, spec.Float("epsilon"));
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    for (size_t i = 1; i < 7; ++i) {
      ORIEL_RETURN_IF_ERROR(
          CheckOperand(spec, i, parameter.dtype, i < 4 ? parameter.shape : Shape{}));
    }
    for (size_t i = 0; i < 3; ++i) {
      ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, parameter.dtype, parameter.shape));
    }
    const int64_t count = parameter.num_elements();
    const int threads = spec.num_threads;
    return KernelFn([=](const KernelArgs& args) {
      const T* p = args.operand<T>(0);
      const T* gradient = args.operand<T>(1);
      const T* m = args.operand<T>(2);
      const T* v = args.operand<T>(3);
      const double rate = static_cast<double>(*args.operand<T>(5));
      const double step = static_cast<double>(*args.operand<T>(6));
      AdamWCoefficients<T> c;
      c.scale = *args.operand<T>(4);
      c.keep = static_cast<T>(1 - rate * weight_decay);
      c.b1 = static_cast<T>(beta1);
      c.c1 = static_cast<T>(1 - beta1);
      c.b2 = static_cast<T>(beta2);
      c.c2 = static_cast<T>(1 - beta2);
      c.step_size = static_cast<T>(rate / (1 - std::pow(beta1, step)));
      c.root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
      c.epsilon = static_cast<T>(epsilon);
      T* new_p = args.result<T>(0);
      T* new_m = args.result<T>(1);
      T* new_v = args.result<T>(2);
      ParallelForElements(threads, count, 4, [=](int64_t begin, int64_t end) {
        AdamWRange(p, gradient, m, v, c, new_p, new_m, new_v, begin, end);
      });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeSumSquares(const KernelSpec& spec) {
  if (spec.results.size() != 1) return Malformed(spec, "needs one result");
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.results[0].dtype, {}));
  return DispatchFloat<SumSquares>(spec, spec.results[0].dtype);
}
absl::StatusOr<KernelFn> MakeSgd(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 1));
  return DispatchFloat<Sgd>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeAdamW(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 7, 3));
  return DispatchFloat<AdamW>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("sum_squares", 0, MakeSumSquares);
ORIEL_REGISTER_HOST_KERNEL("sgd", 0, MakeSgd);
ORIEL_REGISTER_HOST_KERNEL("adamw", 0, MakeAdamW);

}  // namespace
}  // namespace oriel::kernels
