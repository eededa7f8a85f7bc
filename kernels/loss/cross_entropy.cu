// The cross entropy family; see cross_entropy.h for operands.
//
// Numbers: logits are widened to T (f32 for bf16). A row is read once: each thread keeps the
// largest element so far and Σ exp(x - largest) in T, rescaled when the largest grows; threads'
// sums are joined in the fixed order of rows.cuh; log and the row's loss are taken in double, and
// losses are summed in double by one block, thread i every 512th row from i, then these in pairs
// and in order. The gradient is rounded once; of the label's own logit it is cotangent * expm1(x -
// logsumexp). A label out of range is reported, and counts as ignored. Bytes over the memory:
// cross_entropy, sum_exp and block_logsumexp read the logits once; the gradient reads the logits
// and writes as much.
#include "kernels/cuda/piece.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/loss/loss_args.h"

namespace oriel::kernels::cuda {
namespace {

// Whether the row has a label that counts; else reports one that is out of range.
template <typename I>
__device__ bool HasLabel(const LossArgs& args, const I* labels, int64_t row) {
  const int64_t label = labels[row];
  if (label == args.ignore_index) return false;
  if (label >= 0 && label < args.classes.whole) return true;
  if (threadIdx.x == 0) {
    ReportFault(args.labels.fault, args.labels.launch, kIndexOutOfRange, label, args.classes.whole,
                row);
  }
  return false;
}

// Σ exp(x - shift) of a row as it comes.
template <typename T>
struct RunningSum {
  T max = -static_cast<T>(INFINITY), sum = 0;

  // exp(x - max), of no elements or of -infinity alone too.
  __device__ static T Shift(T max) { return max == -static_cast<T>(INFINITY) ? T(0) : max; }

  template <int kWidth>
  __device__ void Add(const T (&x)[kWidth]) {
    T larger = max;
#pragma unroll
    for (int i = 0; i < kWidth; ++i) larger = Larger()(larger, x[i]);
    const T shift = Shift(larger);
    sum *= exp(max - shift);
#pragma unroll
    for (int i = 0; i < kWidth; ++i) sum += exp(x[i] - shift);
    max = larger;
  }
};

// Calls f(pack, elements) for what is this thread's of the row.
template <int kWidth, typename S, typename F>
__device__ void ForEachPack(const S* row, int64_t n, F f) {
  for (int64_t pack = threadIdx.x; pack < n / kWidth; pack += blockDim.x) {
    Compute<S> x[kWidth];
    LoadPack(row + pack * kWidth, x);
    f(pack, x);
  }
}

template <int kWidth, typename S, typename I>
__device__ void CrossEntropy(const LossArgs& args, const S* logits, const I* labels,
                             Compute<S>* logsumexp, double* losses) {
  using T = Compute<S>;
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const S* x = logits + row * args.vocabulary;
    RunningSum<T> own;
    ForEachPack<kWidth>(x, args.vocabulary,
                        [&](int64_t, const T(&elements)[kWidth]) { own.Add(elements); });
    const T max = GroupTotal(own.max, Larger());
    const T sum = GroupSum(own.sum * exp(own.max - RunningSum<T>::Shift(max)));
    if (threadIdx.x != 0) continue;
    const double lse = static_cast<double>(max) + log(static_cast<double>(sum));
    logsumexp[row] = static_cast<T>(lse);
    losses[row] =
        HasLabel(args, labels, row) ? lse - static_cast<double>(Widen(x[labels[row]])) : 0.0;
  }
}

// One block: the sum of all losses, and how many rows count.
template <typename T, typename I>
__device__ void FinishLoss(const LossArgs& args, const I* labels, const double* losses, T* loss,
                           T* count) {
  double sum = 0;
  int64_t rows = 0;
  for (int64_t row = threadIdx.x; row < args.rows; row += blockDim.x) {
    if (labels[row] == args.ignore_index) continue;
    sum += losses[row];
    ++rows;
  }
  sum = GroupSum(sum);
  rows = GroupSum(rows);
  if (threadIdx.x != 0) return;
  *loss = static_cast<T>(sum);
  *count = static_cast<T>(rows);
}

template <int kWidth, typename S, typename I>
__device__ void CrossEntropyGrad(const LossArgs& args, const Compute<S>* cotangent, const S* logits,
                                 const I* labels, const Compute<S>* logsumexp, S* result) {
  using T = Compute<S>;
  const T scale = *cotangent;
  const int64_t first = PieceFirst(args.classes, args.labels.fault);
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    S* dx = result + row * args.vocabulary;
    const bool counts = HasLabel(args, labels, row);
    const T factor = counts ? scale : T(0), shift = logsumexp[row];
    const int64_t own = static_cast<int64_t>(labels[row]) - first;
    if (!counts) {
      const T zeros[kWidth] = {};
      for (int64_t pack = threadIdx.x; pack < args.vocabulary / kWidth; pack += blockDim.x) {
        StorePack(dx + pack * kWidth, zeros);
      }
      continue;
    }
    ForEachPack<kWidth>(
        logits + row * args.vocabulary, args.vocabulary, [&](int64_t pack, const T(&x)[kWidth]) {
          T to[kWidth];
#pragma unroll
          for (int i = 0; i < kWidth; ++i) {
            // Not exp - 1: where the label is nearly certain that loses digits.
            to[i] = factor * (pack * kWidth + i == own ? expm1(x[i] - shift) : exp(x[i] - shift));
          }
          StorePack(dx + pack * kWidth, to);
        });
  }
}

template <int kWidth, typename S>
__device__ void SumExp(const S* x, const Compute<S>* shifts, Compute<S>* result, int64_t rows,
                       int64_t n) {
  using T = Compute<S>;
  for (int64_t row = FirstRow(); row < rows; row += RowStep()) {
    const T shift = shifts[row];
    T sum = 0;
    ForEachPack<kWidth>(x + row * n, n, [&](int64_t, const T(&elements)[kWidth]) {
#pragma unroll
      for (int i = 0; i < kWidth; ++i) sum += exp(elements[i] - shift);
    });
    sum = GroupSum(sum);
    if (threadIdx.x == 0) result[row] = sum;
  }
}

// Blocks are short; and eight elements at a time would take more registers than there are.
template <typename S>
constexpr int kBlockPack = kPackOf<S> < 4 ? kPackOf<S> : 4;

// A group for each block of each row. The group that has the label's logit gives it; if none has,
// that of the first block gives 0.
template <int kWidth, typename S, typename I>
__device__ void BlockLogsumexp(const LossArgs& args, int64_t blocks, const S* logits,
                               const I* labels, Compute<S>* logsumexp, Compute<S>* label_logit) {
  using T = Compute<S>;
  const int64_t width = args.vocabulary / blocks;
  const int64_t first = PieceFirst(args.classes, args.labels.fault) * width;
  for (int64_t at = FirstRow(); at < args.rows * blocks; at += RowStep()) {
    const S* x = logits + at * width;
    RunningSum<T> own;
    ForEachPack<kWidth>(x, width, [&](int64_t, const T(&elements)[kWidth]) { own.Add(elements); });
    const T max = GroupTotal(own.max, Larger());
    const T sum = GroupSum(own.sum * exp(own.max - RunningSum<T>::Shift(max)));
    if (threadIdx.x != 0) continue;
    const bool is_none = max == -static_cast<T>(INFINITY);
    logsumexp[at] =
        is_none ? max : static_cast<T>(static_cast<double>(max) + log(static_cast<double>(sum)));
    const int64_t row = at / blocks, block = at % blocks, label = labels[row];
    const bool counts = label != args.ignore_index;
    const int64_t in_row = label - first, in_block = in_row - block * width;
    const bool has = counts && in_row >= 0 && in_row < args.vocabulary;
    if (has && in_block >= 0 && in_block < width) label_logit[row] = Widen(x[in_block]);
    if (!has && block == 0) label_logit[row] = T(0);
  }
}

template <typename I>
__device__ void CheckLabels(const LossArgs& args, const I* labels) {
  for (int64_t row = GlobalThread(); row < args.rows; row += GlobalThreads()) {
    const int64_t label = labels[row];
    if (label == args.ignore_index || (label >= 0 && label < args.classes.whole)) continue;
    ReportFault(args.labels.fault, args.labels.launch, kIndexOutOfRange, label, args.classes.whole,
                row);
  }
}

// A thread for each row.
template <typename S, typename I>
__device__ void LabelLogits(const LossArgs& args, const S* logits, const I* labels,
                            Compute<S>* result) {
  const int64_t first = PieceFirst(args.classes, args.labels.fault);
  for (int64_t row = GlobalThread(); row < args.rows; row += GlobalThreads()) {
    const int64_t label = labels[row], own = label - first;
    const bool counts = label != args.ignore_index;
    if (counts && (label < 0 || label >= args.classes.whole)) {
      ReportFault(args.labels.fault, args.labels.launch, kIndexOutOfRange, label,
                  args.classes.whole, row);
    }
    const bool has = counts && own >= 0 && own < args.vocabulary;
    result[row] = has ? Widen(logits[row * args.vocabulary + own]) : Compute<S>(0);
  }
}

}  // namespace

#define ORIEL_LOSS_KERNELS(S, T, type, I, index)                                               \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_cross_entropy_##type##_##index, const LossArgs args,      \
                    const S* logits, const I* labels, T* logsumexp, double* losses) {          \
    if (args.vocabulary % kPackOf<S> == 0) {                                                   \
      CrossEntropy<kPackOf<S>>(args, logits, labels, logsumexp, losses);                       \
    } else {                                                                                   \
      CrossEntropy<1>(args, logits, labels, logsumexp, losses);                                \
    }                                                                                          \
  }                                                                                            \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_cross_entropy_grad_##type##_##index, const LossArgs args, \
                    const T* cotangent, const S* logits, const I* labels, const T* logsumexp,  \
                    S* result) {                                                               \
    if (args.vocabulary % kPackOf<S> == 0) {                                                   \
      CrossEntropyGrad<kPackOf<S>>(args, cotangent, logits, labels, logsumexp, result);        \
    } else {                                                                                   \
      CrossEntropyGrad<1>(args, cotangent, logits, labels, logsumexp, result);                 \
    }                                                                                          \
  }                                                                                            \
  ORIEL_CUDA_KERNEL(256, oriel_label_logits_##type##_##index, const LossArgs args,             \
                    const S* logits, const I* labels, T* result) {                             \
    LabelLogits(args, logits, labels, result);                                                 \
  }
#define ORIEL_BLOCK_KERNELS(S, T, type, I, index)                                               \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_block_logsumexp_##type##_##index, const LossArgs args,     \
                    int64_t blocks, const S* logits, const I* labels, T* lse, T* label_logit) { \
    if (args.vocabulary / blocks % kBlockPack<S> == 0) {                                        \
      BlockLogsumexp<kBlockPack<S>>(args, blocks, logits, labels, lse, label_logit);            \
    } else {                                                                                    \
      BlockLogsumexp<1>(args, blocks, logits, labels, lse, label_logit);                        \
    }                                                                                           \
  }
#define ORIEL_LOSS_KERNELS_OF(S, T, type)                                                    \
  ORIEL_LOSS_KERNELS(S, T, type, int64_t, i64)                                               \
  ORIEL_LOSS_KERNELS(S, T, type, int32_t, i32)                                               \
  ORIEL_BLOCK_KERNELS(S, T, type, int64_t, i64)                                              \
  ORIEL_BLOCK_KERNELS(S, T, type, int32_t, i32)                                              \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_sum_exp_##type, const S* x, const T* shifts, T* result, \
                    int64_t rows, int64_t n) {                                               \
    if (n % kPackOf<S> == 0) {                                                               \
      SumExp<kPackOf<S>>(x, shifts, result, rows, n);                                        \
    } else {                                                                                 \
      SumExp<1>(x, shifts, result, rows, n);                                                 \
    }                                                                                        \
  }
#define ORIEL_FINISH_LOSS(T, type, I, index)                                            \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_finish_loss_##type##_##index, const LossArgs args, \
                    const I* labels, const double* losses, T* loss, T* count) {         \
    FinishLoss(args, labels, losses, loss, count);                                      \
  }

ORIEL_CUDA_KERNEL(256, oriel_check_labels_i64, const LossArgs args, const int64_t* labels) {
  CheckLabels(args, labels);
}
ORIEL_CUDA_KERNEL(256, oriel_check_labels_i32, const LossArgs args, const int32_t* labels) {
  CheckLabels(args, labels);
}
ORIEL_LOSS_KERNELS_OF(float, float, f32)
ORIEL_LOSS_KERNELS_OF(double, double, f64)
ORIEL_LOSS_KERNELS_OF(__nv_bfloat16, float, bf16)
ORIEL_FINISH_LOSS(float, f32, int64_t, i64)
ORIEL_FINISH_LOSS(float, f32, int32_t, i32)
ORIEL_FINISH_LOSS(double, f64, int64_t, i64)
ORIEL_FINISH_LOSS(double, f64, int32_t, i32)

}  // namespace oriel::kernels::cuda
