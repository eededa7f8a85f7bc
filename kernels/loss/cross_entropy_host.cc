#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/common/checks.h"
#include "kernels/common/parallel.h"
#include "kernels/common/row_sums.h"
#include "kernels/common/scratch.h"
#include "kernels/common/vector_math.h"
#include "kernels/common/wide_row.h"
#include "kernels/loss/cross_entropy.h"

namespace oriel::kernels {
namespace {

template <typename I>
absl::Status CheckLabelsOf(const char* kernel, const CrossEntropyShape& shape, const I* labels) {
  return CheckLabels(kernel, labels, shape.rows, shape.classes.whole, shape.ignore_index);
}

// Elements of a row whose exponentials are computed before they are summed.
constexpr int64_t kChunk = 512;

// Σ exp(x - shift)
template <typename T>
double SumExp(const T* x, int64_t n, T shift) {
  T exps[kChunk];
  double sum = 0;
  for (int64_t begin = 0; begin < n; begin += kChunk) {
    const int64_t count = std::min(kChunk, n - begin);
#pragma omp simd
    for (int64_t i = 0; i < count; ++i) exps[i] = Exp(x[begin + i] - shift);
    const T* row = exps;
    sum += RowSum<T>(count, [row](auto at) { return at(row); });
  }
  return sum;
}

template <typename T>
double LogSumExp(const T* x, int64_t n) {
  const T max = RowMax(x, n, -std::numeric_limits<T>::infinity());
  return static_cast<double>(max) + std::log(SumExp(x, n, max));
}

// Each row's loss, 0 of an ignored label, and logsumexp.
template <typename S, typename I, typename L>
void RowLosses(const CrossEntropyShape& shape, int threads, const S* logits, const I* labels,
               L* losses, Compute<S>* logsumexp) {
  using T = Compute<S>;
  ParallelFor(threads, shape.rows, 6 * shape.vocabulary, [=](int64_t begin, int64_t end) {
    WideRow<S> source(shape.vocabulary);
    for (int64_t row = begin; row < end; ++row) {
      const T* x = source.Read(logits + row * shape.vocabulary);
      const double lse = LogSumExp(x, shape.vocabulary);
      logsumexp[row] = static_cast<T>(lse);
      const int64_t label = labels[row];
      const bool counts = label != shape.ignore_index;
      losses[row] = counts ? static_cast<L>(lse - static_cast<double>(x[label])) : L(0);
    }
  });
}

template <typename S, typename I>
absl::StatusOr<KernelFn> MakeTokenLossesTyped(const KernelSpec& spec,
                                              const CrossEntropyShape& shape) {
  using T = Compute<S>;
  const int threads = spec.num_threads;
  return KernelFn([shape, threads](const KernelArgs& args) {
    const I* labels = args.operand<I>(1);
    absl::Status status = CheckLabelsOf("token_losses", shape, labels);
    if (!status.ok()) return status;
    RowLosses(shape, threads, args.operand<S>(0), labels, args.result<T>(0), args.result<T>(1));
    return absl::OkStatus();
  });
}

template <typename S, typename I>
absl::StatusOr<KernelFn> MakeLossTyped(const KernelSpec& spec, const CrossEntropyShape& shape) {
  using T = Compute<S>;
  const int threads = spec.num_threads;
  return KernelFn([shape, threads](const KernelArgs& args) {
    const I* labels = args.operand<I>(1);
    absl::Status status = CheckLabelsOf("cross_entropy", shape, labels);
    if (!status.ok()) return status;
    double* loss = static_cast<double*>(ThreadScratch(shape.rows * sizeof(double)));
    RowLosses(shape, threads, args.operand<S>(0), labels, loss, args.result<T>(2));
    double sum = 0;
    int64_t count = 0;
    for (int64_t row = 0; row < shape.rows; ++row) {
      if (labels[row] == shape.ignore_index) continue;
      sum += loss[row];
      ++count;
    }
    *args.result<T>(0) = static_cast<T>(sum);
    *args.result<T>(1) = static_cast<T>(count);
    return absl::OkStatus();
  });
}

template <typename S, typename I>
absl::StatusOr<KernelFn> MakeGradTyped(const KernelSpec& spec, const CrossEntropyShape& shape) {
  using T = Compute<S>;
  const int threads = spec.num_threads;
  ORIEL_ASSIGN_OR_RETURN(const bool is_of_rows, IsCotangentOfRows(spec));
  return KernelFn([shape, threads, is_of_rows](const KernelArgs& args) {
    const T* cotangents = args.operand<T>(0);
    const S* logits = args.operand<S>(1);
    const I* labels = args.operand<I>(2);
    const T* logsumexp = args.operand<T>(3);
    S* result = args.result<S>(0);
    absl::Status status = CheckLabelsOf("cross_entropy_grad", shape, labels);
    if (!status.ok()) return status;
    ORIEL_ASSIGN_OR_RETURN(const int64_t first, shape.classes.First(args));
    ParallelFor(threads, shape.rows, 6 * shape.vocabulary, [=](int64_t begin, int64_t end) {
      const int64_t n = shape.vocabulary;
      WideRow<S> source(n), target(n);
      for (int64_t row = begin; row < end; ++row) {
        const int64_t label = labels[row];
        if (label == shape.ignore_index) {
          std::fill(result + row * n, result + (row + 1) * n, S(0));
          continue;
        }
        const T* x = source.Read(logits + row * n);
        T* dx = target.Begin(result + row * n);
        const T shift = logsumexp[row], cotangent = cotangents[is_of_rows ? row : 0];
        const int64_t own = label - first;
        const bool has = own >= 0 && own < n;
        const double of_label = has ? static_cast<double>(x[own]) - static_cast<double>(shift) : 0;
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) dx[i] = cotangent * Exp(x[i] - shift);
        // Not dx - cotangent: where the label is nearly certain that would lose digits.
        if (has) dx[own] = cotangent * static_cast<T>(std::expm1(of_label));
        target.End(result + row * n);
      }
    });
    return absl::OkStatus();
  });
}

template <typename S, typename I>
absl::StatusOr<KernelFn> MakeLabelLogitsTyped(const KernelSpec& spec,
                                              const CrossEntropyShape& shape) {
  using T = Compute<S>;
  const int threads = spec.num_threads;
  return KernelFn([shape, threads](const KernelArgs& args) {
    const S* logits = args.operand<S>(0);
    const I* labels = args.operand<I>(1);
    T* result = args.result<T>(0);
    absl::Status status = CheckLabelsOf("label_logits", shape, labels);
    if (!status.ok()) return status;
    ORIEL_ASSIGN_OR_RETURN(const int64_t first, shape.classes.First(args));
    ParallelFor(threads, shape.rows, 1, [=](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const int64_t label = labels[row], own = label - first;
        const bool has = label != shape.ignore_index && own >= 0 && own < shape.vocabulary;
        result[row] = has ? static_cast<T>(logits[row * shape.vocabulary + own]) : T(0);
      }
    });
    return absl::OkStatus();
  });
}

template <typename S, typename I>
absl::StatusOr<KernelFn> MakeBlocksTyped(const BlockShape& shape, int threads) {
  using T = Compute<S>;
  return KernelFn([shape, threads](const KernelArgs& args) {
    const CrossEntropyShape& loss = shape.loss;
    const S* logits = args.operand<S>(0);
    const I* labels = args.operand<I>(1);
    T *logsumexp = args.result<T>(0), *label_logit = args.result<T>(1);
    ORIEL_ASSIGN_OR_RETURN(const int64_t first_block, shape.piece.First(args));
    const int64_t n = loss.vocabulary, width = n / shape.blocks, first = first_block * width;
    ParallelFor(threads, loss.rows, 6 * n, [=](int64_t begin, int64_t end) {
      WideRow<S> source(n);
      for (int64_t row = begin; row < end; ++row) {
        const T* x = source.Read(logits + row * n);
        for (int64_t block = 0; block < shape.blocks; ++block) {
          constexpr T kNone = -std::numeric_limits<T>::infinity();
          const T* part = x + block * width;
          const T max = RowMax(part, width, kNone);
          logsumexp[row * shape.blocks + block] =
              max == kNone
                  ? kNone
                  : static_cast<T>(static_cast<double>(max) + std::log(SumExp(part, width, max)));
        }
        const int64_t label = labels[row], own = label - first;
        const bool has = label != loss.ignore_index && own >= 0 && own < n;
        label_logit[row] = has ? x[own] : T(0);
      }
    });
    return absl::OkStatus();
  });
}

struct Blocks {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const BlockShape shape, BlockShape::Make(spec));
    switch (spec.operands[1].dtype) {
      case DType::kI64:
        return MakeBlocksTyped<S, int64_t>(shape, spec.num_threads);
      case DType::kI32:
        return MakeBlocksTyped<S, int32_t>(shape, spec.num_threads);
      default:
        return Unsupported(spec, "takes labels of i64 and i32");
    }
  }
};

template <template <typename, typename> class Factory>
struct ByIndex {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    ORIEL_ASSIGN_OR_RETURN(const CrossEntropyShape shape,
                           CrossEntropyShape::Make(spec, Factory<T, int64_t>::kLogits,
                                                   Factory<T, int64_t>::kOperands));
    ORIEL_RETURN_IF_ERROR((Factory<T, int64_t>::Check(spec)));
    switch (spec.operands[Factory<T, int64_t>::kLogits + 1].dtype) {
      case DType::kI64:
        return Factory<T, int64_t>::Make(spec, shape);
      case DType::kI32:
        return Factory<T, int32_t>::Make(spec, shape);
      default:
        return Unsupported(spec, "takes labels of i64 and i32");
    }
  }
};

template <typename T, typename I>
struct Loss {
  static constexpr size_t kLogits = 0, kOperands = 2;
  static absl::Status Check(const KernelSpec& spec) {
    const DType dtype = ComputeDType(spec.operands[0].dtype);
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, dtype, {}));
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, dtype, {}));
    return CheckResult(spec, 2, dtype, spec.operands[1].shape);
  }
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const CrossEntropyShape& shape) {
    return MakeLossTyped<T, I>(spec, shape);
  }
};

template <typename T, typename I>
struct TokenLosses {
  static constexpr size_t kLogits = 0, kOperands = 2;
  static absl::Status Check(const KernelSpec& spec) {
    const DType dtype = ComputeDType(spec.operands[0].dtype);
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, dtype, spec.operands[1].shape));
    return CheckResult(spec, 1, dtype, spec.operands[1].shape);
  }
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const CrossEntropyShape& shape) {
    return MakeTokenLossesTyped<T, I>(spec, shape);
  }
};

template <typename T, typename I>
struct LossGrad {
  static constexpr size_t kLogits = 1, kOperands = 4;
  static absl::Status Check(const KernelSpec& spec) {
    const TensorSpec& logits = spec.operands[1];
    const DType small = ComputeDType(logits.dtype);
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, small, spec.operands[2].shape));
    return CheckResult(spec, 0, logits.dtype, logits.shape);
  }
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const CrossEntropyShape& shape) {
    return MakeGradTyped<T, I>(spec, shape);
  }
};

template <typename T, typename I>
struct LabelLogits {
  static constexpr size_t kLogits = 0, kOperands = 2;
  static absl::Status Check(const KernelSpec& spec) {
    return CheckResult(spec, 0, ComputeDType(spec.operands[0].dtype), spec.operands[1].shape);
  }
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec, const CrossEntropyShape& shape) {
    return MakeLabelLogitsTyped<T, I>(spec, shape);
  }
};

struct SumOfExps {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    using T = Compute<S>;
    const Shape& shape = spec.operands[0].shape;
    const int64_t n = shape.back(), rows = SizeOf(shape, 0, spec.operands[0].rank() - 1);
    const int threads = spec.num_threads;
    return KernelFn([=](const KernelArgs& args) {
      const S* x = args.operand<S>(0);
      const T* shift = args.operand<T>(1);
      T* result = args.result<T>(0);
      ParallelFor(threads, rows, 6 * n, [=](int64_t begin, int64_t end) {
        WideRow<S> source(n);
        for (int64_t row = begin; row < end; ++row) {
          result[row] = static_cast<T>(SumExp(source.Read(x + row * n), n, shift[row]));
        }
      });
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeSumExp(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const TensorSpec& x = spec.operands[0];
  if (x.rank() < 1) return Malformed(spec, "the input has rank 0");
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, ComputeDType(x.dtype), rows));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, ComputeDType(x.dtype), rows));
  return DispatchStored<SumOfExps>(spec, x.dtype);
}

absl::StatusOr<KernelFn> MakeCrossEntropy(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3));
  return DispatchStored<ByIndex<Loss>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeTokenLosses(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2));
  return DispatchStored<ByIndex<TokenLosses>>(spec, spec.operands[0].dtype);
}
absl::StatusOr<KernelFn> MakeCrossEntropyGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 5, 1));
  return DispatchStored<ByIndex<LossGrad>>(spec, spec.operands[1].dtype);
}
absl::StatusOr<KernelFn> MakeLabelLogits(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  return DispatchStored<ByIndex<LabelLogits>>(spec, spec.operands[0].dtype);
}

absl::StatusOr<KernelFn> MakeBlockLogsumexp(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 2));
  return DispatchStored<Blocks>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("block_logsumexp", 0, MakeBlockLogsumexp);
ORIEL_REGISTER_HOST_KERNEL("cross_entropy", 0, MakeCrossEntropy);
ORIEL_REGISTER_HOST_KERNEL("cross_entropy_grad", 0, MakeCrossEntropyGrad);
ORIEL_REGISTER_HOST_KERNEL("sum_exp", 0, MakeSumExp);
ORIEL_REGISTER_HOST_KERNEL("label_logits", 0, MakeLabelLogits);
ORIEL_REGISTER_HOST_KERNEL("token_losses", 0, MakeTokenLosses);

}  // namespace
}  // namespace oriel::kernels
