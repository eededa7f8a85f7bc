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
#include "runtime/base/remainder.h"

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
void StepSgd(const T* p, const G* g, T scale, T rate, T decay, T* new_p, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) new_p[i] = p[i] - rate * (scale * g[i] + decay * p[i]);
}

template <typename T>
struct MomentumCoefficients {
  T scale, rate, decay;
  T momentum;
  T own, past;  // of the step: of the gradient, and of the new buffer
};

template <typename T, typename G>
void StepMomentum(const T* p, const G* gradient, const T* buffer, MomentumCoefficients<T> c,
                  T* new_p, T* new_buffer, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const T g = c.scale * gradient[i] + c.decay * p[i];
    const T moved = c.momentum * buffer[i] + g;
    new_p[i] = p[i] - c.rate * (c.own * g + c.past * moved);
    new_buffer[i] = moved;
  }
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
void StepAdamW(const T* p, const G* gradient, const T* m, const T* v, AdamWCoefficients<T> c,
               T* new_p, T* new_m, T* new_v, int64_t count) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    const T g = c.scale * gradient[i];
    const T first = c.b1 * m[i] + c.c1 * g;
    const T second = c.b2 * v[i] + c.c2 * (g * g);
    new_p[i] = c.keep * p[i] - c.step_size * first / (std::sqrt(second) * c.root_scale + c.epsilon);
    new_m[i] = first;
    new_v[i] = second;
  }
}

void JoinElements(const uint16_t* rounded, const int16_t* remainders, int64_t count,
                  float* joined) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    joined[i] = runtime::JoinRemainder(rounded[i], remainders[i]);
  }
}

void SplitElements(const float* joined, int64_t count, uint16_t* rounded, int16_t* remainders) {
#pragma omp simd
  for (int64_t i = 0; i < count; ++i) {
    rounded[i] = runtime::RoundedAway(joined[i]);
    remainders[i] = runtime::RemainderOf(joined[i]);
  }
}

// Elements that are stepped before they are rounded: they stay in the cache.
constexpr int64_t kRoundedBlock = 4096;

// A step of all parameters of a list, whose operands of their own come in `own` groups.
class StepList {
 public:
  StepList(const KernelSpec& spec, const StepShape& step, int groups)
      : shape_(step), own_(groups), threads_(spec.num_threads) {
    for (int i = 0; i < count(); ++i) sizes_.push_back(spec.operands[i].num_elements());
  }

  int count() const { return shape_.count; }

  // Where the scalars begin.
  int scalars() const { return (own_ + (shape_.remainders ? 1 : 0)) * count(); }

  // Calls step(tensor, p, new_p, begin, count) for pieces of all tensors, in parallel where they
  // are large; p and new_p are those of the piece.
  template <typename T, typename Step>
  void Run(const KernelArgs& args, int64_t cost, Step step) const {
    for (size_t i = 0; i < sizes_.size(); ++i) {
      const int tensor = static_cast<int>(i);
      ParallelForElements(threads_, sizes_[i], cost, [&](int64_t begin, int64_t end) {
        if constexpr (std::is_same_v<T, float>) {
          if (shape_.rounded || shape_.remainders) return RunNarrow(args, tensor, begin, end, step);
        }
        step(tensor, args.operand<T>(tensor) + begin, args.result<T>(tensor) + begin, begin,
             end - begin);
      });
    }
  }

 private:
  template <typename Step>
  void RunNarrow(const KernelArgs& args, int tensor, int64_t begin, int64_t end, Step step) const {
    const int last = (own_ - 1) * count() + tensor;  // result: rounded, or a remainder
    float joined[kRoundedBlock];
    for (; begin < end; begin += kRoundedBlock) {
      const int64_t size = std::min(end - begin, kRoundedBlock);
      if (shape_.rounded) {
        float* stepped = args.result<float>(tensor) + begin;
        step(tensor, args.operand<float>(tensor) + begin, stepped, begin, size);
        RoundElements(stepped, size, args.result<BFloat16>(last) + begin);
        continue;
      }
      const int remainder = own_ * count() + tensor;
      JoinElements(args.operand<uint16_t>(tensor) + begin, args.operand<int16_t>(remainder) + begin,
                   size, joined);
      step(tensor, joined, joined, begin, size);
      SplitElements(joined, size, args.result<uint16_t>(tensor) + begin,
                    args.result<int16_t>(last) + begin);
    }
  }

  StepShape shape_;
  int own_;
  int threads_;
  std::vector<int64_t> sizes_;  // of the parameters
};

// Parameters of T, gradients of G.
template <typename T, typename G>
struct Sgd {
  static constexpr int kOwn = 2, kScalars = 2;

  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const StepShape& shape) {
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    return KernelFn([weight_decay, list = StepList(spec, shape, kOwn)](const KernelArgs& args) {
      const int n = list.count();
      const T scale = *args.operand<T>(list.scalars());
      const T rate = *args.operand<T>(list.scalars() + 1);
      const T decay = static_cast<T>(weight_decay);
      list.Run<T>(args, 2, [=](int i, const T* p, T* new_p, int64_t begin, int64_t count) {
        StepSgd(p, args.operand<G>(n + i) + begin, scale, rate, decay, new_p, count);
      });
      return absl::OkStatus();
    });
  }
};

template <typename T, typename G>
struct SgdMomentum {
  static constexpr int kOwn = 3, kScalars = 2;

  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const StepShape& shape) {
    ORIEL_ASSIGN_OR_RETURN(const double momentum, spec.Float("momentum"));
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    ORIEL_ASSIGN_OR_RETURN(const int64_t nesterov, spec.Int("nesterov"));
    return KernelFn([=, list = StepList(spec, shape, kOwn)](const KernelArgs& args) {
      const int n = list.count(), scalars = list.scalars();
      MomentumCoefficients<T> c;
      c.scale = *args.operand<T>(scalars);
      c.rate = *args.operand<T>(scalars + 1);
      c.decay = static_cast<T>(weight_decay);
      c.momentum = static_cast<T>(momentum);
      c.own = nesterov != 0 ? 1 : 0;
      c.past = nesterov != 0 ? c.momentum : 1;
      list.Run<T>(args, 2, [=](int i, const T* p, T* new_p, int64_t begin, int64_t count) {
        StepMomentum(p, args.operand<G>(n + i) + begin, args.operand<T>(2 * n + i) + begin, c,
                     new_p, args.result<T>(n + i) + begin, count);
      });
      return absl::OkStatus();
    });
  }
};

template <typename T, typename G>
struct AdamW {
  static constexpr int kOwn = 4, kScalars = 3;

  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const StepShape& shape) {
    ORIEL_ASSIGN_OR_RETURN(const double beta1, spec.Float("beta1"));
    ORIEL_ASSIGN_OR_RETURN(const double beta2, spec.Float("beta2"));
    ORIEL_ASSIGN_OR_RETURN(const double epsilon, spec.Float("epsilon"));
    ORIEL_ASSIGN_OR_RETURN(const double weight_decay, spec.Float("weight_decay"));
    return KernelFn([=, list = StepList(spec, shape, kOwn)](const KernelArgs& args) {
      const int n = list.count(), scalars = list.scalars();
      const double rate = static_cast<double>(*args.operand<T>(scalars + 1));
      const double step = static_cast<double>(*args.operand<T>(scalars + 2));
      AdamWCoefficients<T> c;
      c.scale = *args.operand<T>(scalars);
      c.keep = static_cast<T>(1 - rate * weight_decay);
      c.b1 = static_cast<T>(beta1);
      c.c1 = static_cast<T>(1 - beta1);
      c.b2 = static_cast<T>(beta2);
      c.c2 = static_cast<T>(1 - beta2);
      c.step_size = static_cast<T>(rate / (1 - std::pow(beta1, step)));
      c.root_scale = static_cast<T>(1 / std::sqrt(1 - std::pow(beta2, step)));
      c.epsilon = static_cast<T>(epsilon);
      list.Run<T>(args, 4, [=](int i, const T* p, T* new_p, int64_t begin, int64_t count) {
        StepAdamW(p, args.operand<G>(n + i) + begin, args.operand<T>(2 * n + i) + begin,
                  args.operand<T>(3 * n + i) + begin, c, new_p, args.result<T>(n + i) + begin,
                  args.result<T>(2 * n + i) + begin, count);
      });
      return absl::OkStatus();
    });
  }
};

// A step, with gradients of the parameter's type, or of bf16 for f32.
template <template <typename, typename> class Step>
struct ByGradient {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using Plain = Step<T, T>;
    ORIEL_ASSIGN_OR_RETURN(const StepShape shape,
                           StepShape::Make(spec, Plain::kOwn, Plain::kScalars));
    if constexpr (std::is_same_v<T, float>) {
      if (shape.gradient == DType::kBF16) return Step<T, BFloat16>::Make(spec, shape);
    }
    return Plain::Make(spec, shape);
  }
};

absl::StatusOr<KernelFn> MakeSumSquares(const KernelSpec& spec) {
  if (spec.results.size() != 1) return Malformed(spec, "needs one result");
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.results[0].dtype, {}));
  return DispatchFloat<SumSquares>(spec, spec.results[0].dtype);
}
absl::StatusOr<KernelFn> MakeSgd(const KernelSpec& spec) {
  if (spec.operands.empty()) return Malformed(spec, "has no operands");
  return DispatchFloat<ByGradient<Sgd>>(spec, ComputeDType(spec.operands[0].dtype));
}
absl::StatusOr<KernelFn> MakeSgdMomentum(const KernelSpec& spec) {
  if (spec.operands.empty()) return Malformed(spec, "has no operands");
  return DispatchFloat<ByGradient<SgdMomentum>>(spec, ComputeDType(spec.operands[0].dtype));
}
absl::StatusOr<KernelFn> MakeAdamW(const KernelSpec& spec) {
  if (spec.operands.empty()) return Malformed(spec, "has no operands");
  return DispatchFloat<ByGradient<AdamW>>(spec, ComputeDType(spec.operands[0].dtype));
}

ORIEL_REGISTER_HOST_KERNEL("sum_squares", 0, MakeSumSquares);
ORIEL_REGISTER_HOST_KERNEL("sgd", 0, MakeSgd);
ORIEL_REGISTER_HOST_KERNEL("sgd_momentum", 0, MakeSgdMomentum);
ORIEL_REGISTER_HOST_KERNEL("adamw", 0, MakeAdamW);

}  // namespace
}  // namespace oriel::kernels
