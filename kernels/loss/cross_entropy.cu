// The cross entropy family; see cross_entropy.h for operands.
//
// Numbers: logits are widened to T (f32 for bf16). A row is read once: each thread keeps the
// largest element so far and Σ exp(x - largest) in T, rescaled when the largest grows; threads'
// sums are joined in the fixed order of rows.cuh; log and the row's loss are taken in double, and
// losses are summed in double by one block, thread i every 512th row from i, then these in pairs
// and in order. The gradient is rounded once; of the label's own logit it is cotangent * expm1(x -
// logsumexp). A label out of range is reported, and counts as ignored. Where a row begins between
// two packs of 16 bytes, its first and last elements come first in the sums.
// Of bf16, exp(x - m) is 2^(x log2(e) - m log2(e)) with one rounding each and the device's fast 2^x
// (relative error 2^-22). The rounding of m log2(e), common to a row, is made up for in logsumexps;
// in sum_exp and the gradient it leaves a relative error of up to |m| 2^-23. Logits beyond 2.3e38
// count as infinite.
// Bytes over the memory: cross_entropy, token_losses, sum_exp and block_logsumexp read the logits
// once; the gradient reads the logits and writes as much.
#include <limits>

#include "kernels/cuda/piece.cuh"
#include "kernels/cuda/rows.cuh"
#include "kernels/loss/loss_args.h"

namespace oriel::kernels::cuda {
namespace {

// Whether the row's label counts; else reports one that is out of range.
__device__ bool HasLabel(const LossArgs& args, int64_t label, int64_t row) {
  if (label == args.ignore_index) return false;
  if (label >= 0 && label < args.classes.whole) return true;
  if (threadIdx.x == 0) {
    ReportFault(args.labels.fault, args.labels.launch, kIndexOutOfRange, label, args.classes.whole,
                row);
  }
  return false;
}

// Exponentials of elements of S. Shifts are scaled once; in base 2, for bf16, the product and the
// difference are one instruction.
template <typename S>
struct Powers {
  using T = Compute<S>;
  __device__ static T Scale(T shift) { return shift; }
  __device__ static double Unscale(T scaled) { return static_cast<double>(scaled); }
  __device__ static T Shifted(T x, T scaled) { return exp(x - scaled); }
  __device__ static T Ratio(T scaled, T other) { return exp(scaled - other); }
};
template <>
struct Powers<__nv_bfloat16> {
  static constexpr float kLog2E = 1.44269504f;
  __device__ static float Scale(float shift) { return shift * kLog2E; }
  __device__ static double Unscale(float scaled) { return scaled / static_cast<double>(kLog2E); }
  __device__ static float Shifted(float x, float scaled) {
    return FastExp2(fmaf(x, kLog2E, -scaled));
  }
  __device__ static float Ratio(float scaled, float other) { return FastExp2(scaled - other); }
};

// Σ exp(x - max) of a row as it comes. NaN does not get into `max`, but into `sum`.
template <typename S>
struct RunningSum {
  using T = Compute<S>;
  using P = Powers<S>;
  T max = std::numeric_limits<T>::lowest(), sum = 0;  // `max` is scaled

  template <int kCount, int kWidth>
  __device__ void Add(const T (&x)[kCount][kWidth]) {
    T larger = x[0][0];
#pragma unroll
    for (int i = 1; i < kCount * kWidth; ++i) larger = ::max(larger, x[i / kWidth][i % kWidth]);
    larger = ::max(max, P::Scale(larger));
    sum *= P::Ratio(max, larger);
#pragma unroll
    for (int i = 0; i < kCount * kWidth; ++i) sum += P::Shifted(x[i / kWidth][i % kWidth], larger);
    max = larger;
  }

  // The logarithm of the group's sum, for its first thread: -infinity of a row of nothing else.
  __device__ double GroupLog() const {
    const T whole = GroupTotal(max, Larger());
    const T total = GroupSum(sum * P::Ratio(max, whole));
    if (threadIdx.x != 0) return 0;
    return P::Unscale(whole) + log(static_cast<double>(total));
  }
};

// A row of n elements, from number `begin` of a tensor on: [head, end) are packs aligned to 16
// bytes; what is before and behind them, less than a group has threads, is taken one by one.
template <typename S>
struct RowPacks {
  static constexpr int kPack = kPackOf<S>;
  int64_t n, head, end;

  __device__ RowPacks(int64_t begin, int64_t length)
      : n(length), head(min(n, -begin & (kPack - 1))), end(n - (n - head) % kPack) {}
  __device__ int64_t First() const { return head + threadIdx.x * kPack; }
  __device__ unsigned Step() const { return blockDim.x * kPack; }
  // Whether the thread has a single element, and which.
  __device__ bool HasSingle() const { return threadIdx.x < n - end + head; }
  __device__ int64_t Single() const {
    return threadIdx.x < head ? threadIdx.x : threadIdx.x + end - head;
  }
  // Whether element i is the thread's. A row has less than 2^32 packs.
  __device__ bool IsMine(int64_t i) const {
    if (i < 0 || i >= n) return false;
    if (i < head || i >= end) return HasSingle() && Single() == i;
    return static_cast<uint32_t>((i - head) / kPack) % blockDim.x == threadIdx.x;
  }
};

// Packs that are loaded at a time: of f64 an exponential takes many registers.
template <typename S>
constexpr int kAhead = sizeof(S) == 8 ? 1 : 2;

// Calls f(i, x) for what is this thread's of the row: x[j] are elements i + j * Step() and those
// behind.
template <typename S, typename F>
__device__ void ForEachPack(const S* row, const RowPacks<S>& packs, F f) {
  using T = Compute<S>;
  constexpr int kPack = kPackOf<S>;
  if (packs.HasSingle()) {
    T x[1][1];
    LoadPack(row + packs.Single(), x[0]);
    f(packs.Single(), x);
  }
  constexpr int kCount = kAhead<S>;
  const unsigned step = packs.Step();
  int64_t i = packs.First();
  for (; i + (kCount - 1) * step < packs.end; i += kCount * step) {
    T x[kCount][kPack];
#pragma unroll
    for (int j = 0; j < kCount; ++j) LoadPack(row + i + j * step, x[j]);
    f(i, x);
  }
  if (kCount > 1 && i < packs.end) {  // of two
    T x[1][kPack];
    LoadPack(row + i, x[0]);
    f(i, x);
  }
}

template <typename S, typename I, typename L>
__device__ void RowLosses(const LossArgs& args, const S* logits, const I* labels,
                          Compute<S>* logsumexp, L* losses) {
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const int64_t begin = row * args.vocabulary, label = labels[row];
    RunningSum<S> own;
    ForEachPack(logits + begin, RowPacks<S>(begin, args.vocabulary),
                [&](int64_t, const auto& x) { own.Add(x); });
    // Before the barriers, so that they hide how long it takes.
    const bool counts = threadIdx.x == 0 && HasLabel(args, label, row);
    const Compute<S> logit = counts ? Widen(logits[begin + label]) : Compute<S>(0);
    const double lse = own.GroupLog();
    if (threadIdx.x != 0) continue;
    logsumexp[row] = static_cast<Compute<S>>(lse);
    losses[row] = counts ? static_cast<L>(lse - static_cast<double>(logit)) : L(0);
  }
}

// One block: the sum of all losses, and how many rows count.
template <typename T, typename I>
__device__ void FinishLoss(const LossArgs& args, const I* labels, const double* losses, T* loss,
                           T* count) {
  constexpr int kLoaded = 8;  // rows at a time
  double sum = 0;
  int64_t rows = 0;
  for (int64_t begin = threadIdx.x; begin < args.rows; begin += kLoaded * blockDim.x) {
    double loss[kLoaded];
    bool counts[kLoaded];
#pragma unroll
    for (int i = 0; i < kLoaded; ++i) {
      const int64_t row = begin + i * blockDim.x;
      loss[i] = row < args.rows ? losses[row] : 0.0;  // 0 of a row that does not count
      counts[i] = row < args.rows && labels[row] != args.ignore_index;
    }
#pragma unroll
    for (int i = 0; i < kLoaded; ++i) {
      sum += loss[i];
      rows += counts[i];
    }
  }
  sum = GroupSum(sum);
  rows = GroupSum(rows);
  if (threadIdx.x != 0) return;
  *loss = static_cast<T>(sum);
  *count = static_cast<T>(rows);
}

// The result may be in the place of the logits. A cotangent for each row, or one for all.
template <typename S, typename I>
__device__ void CrossEntropyGrad(const LossArgs& args, const Compute<S>* cotangents,
                                 bool is_of_rows, const S* logits, const I* labels,
                                 const Compute<S>* logsumexp, S* result) {
  using T = Compute<S>;
  const int64_t first = PieceFirst(args.classes, args.labels.fault);
  for (int64_t row = FirstRow(); row < args.rows; row += RowStep()) {
    const int64_t begin = row * args.vocabulary, label = labels[row], own = label - first;
    const RowPacks<S> packs(begin, args.vocabulary);
    const S* x = logits + begin;
    S* dx = result + begin;
    if (!HasLabel(args, label, row)) {
      const T zeros[kPackOf<S>] = {}, zero[1] = {};
      if (packs.HasSingle()) StorePack(dx + packs.Single(), zero);
      for (int64_t i = packs.First(); i < packs.end; i += packs.Step()) StorePack(dx + i, zeros);
      continue;
    }
    const T shift = logsumexp[row], scaled = Powers<S>::Scale(shift);
    const T scale = cotangents[is_of_rows ? row : 0];
    // Not exp - 1: where the label is nearly certain that loses digits.
    const bool is_mine = packs.IsMine(own);
    const T of_label = is_mine ? scale * expm1(Widen(x[own]) - shift) : T(0);
    ForEachPack(x, packs, [&](int64_t i, auto& loaded) {
#pragma unroll
      for (auto& pack : loaded) {
#pragma unroll
        for (T& element : pack) element = scale * Powers<S>::Shifted(element, scaled);
        StorePack(dx + i, pack);
        i += packs.Step();
      }
    });
    if (is_mine) dx[own] = Narrow<S>(of_label);
  }
}

template <typename S>
__device__ void SumExp(const S* x, const Compute<S>* shifts, Compute<S>* result, int64_t rows,
                       int64_t n) {
  for (int64_t row = FirstRow(); row < rows; row += RowStep()) {
    const Compute<S> shift = Powers<S>::Scale(shifts[row]);
    Compute<S> sum = 0;
    ForEachPack(x + row * n, RowPacks<S>(row * n, n), [&](int64_t, const auto& packs) {
#pragma unroll
      for (const auto& pack : packs) {
#pragma unroll
        for (const Compute<S> element : pack) sum += Powers<S>::Shifted(element, shift);
      }
    });
    sum = GroupSum(sum);
    if (threadIdx.x == 0) result[row] = sum;
  }
}

// A group for each block of each row. The group that has the label's logit gives it; if none has,
// that of the first block gives 0.
template <typename S, typename I>
__device__ void BlockLogsumexp(const LossArgs& args, int64_t blocks, const S* logits,
                               const I* labels, Compute<S>* logsumexp, Compute<S>* label_logit) {
  using T = Compute<S>;
  const int64_t width = args.vocabulary / blocks;
  const int64_t first = PieceFirst(args.classes, args.labels.fault) * width;
  for (int64_t at = FirstRow(); at < args.rows * blocks; at += RowStep()) {
    const S* x = logits + at * width;
    RunningSum<S> own;
    ForEachPack(x, RowPacks<S>(at * width, width),
                [&](int64_t, const auto& packs) { own.Add(packs); });
    const double lse = own.GroupLog();
    if (threadIdx.x != 0) continue;
    logsumexp[at] = static_cast<T>(lse);
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
    RowLosses(args, logits, labels, logsumexp, losses);                                        \
  }                                                                                            \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_token_losses_##type##_##index, const LossArgs args,       \
                    const S* logits, const I* labels, T* logsumexp, T* losses) {               \
    RowLosses(args, logits, labels, logsumexp, losses);                                        \
  }                                                                                            \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_cross_entropy_grad_##type##_##index, const LossArgs args, \
                    const T* cotangents, bool is_of_rows, const S* logits, const I* labels,    \
                    const T* logsumexp, S* result) {                                           \
    CrossEntropyGrad(args, cotangents, is_of_rows, logits, labels, logsumexp, result);         \
  }                                                                                            \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_block_logsumexp_##type##_##index, const LossArgs args,    \
                    int64_t blocks, const S* logits, const I* labels, T* logsumexp,            \
                    T* label_logit) {                                                          \
    BlockLogsumexp(args, blocks, logits, labels, logsumexp, label_logit);                      \
  }                                                                                            \
  ORIEL_CUDA_KERNEL(256, oriel_label_logits_##type##_##index, const LossArgs args,             \
                    const S* logits, const I* labels, T* result) {                             \
    LabelLogits(args, logits, labels, result);                                                 \
  }
#define ORIEL_LOSS_KERNELS_OF(S, T, type)                                                    \
  ORIEL_LOSS_KERNELS(S, T, type, int64_t, i64)                                               \
  ORIEL_LOSS_KERNELS(S, T, type, int32_t, i32)                                               \
  ORIEL_CUDA_KERNEL(kMaxGroup, oriel_sum_exp_##type, const S* x, const T* shifts, T* result, \
                    int64_t rows, int64_t n) {                                               \
    SumExp(x, shifts, result, rows, n);                                                      \
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
