// Cross entropy of a linear layer's result, for some rows at a time (ir/oriel/fused.td).
//
//   linear_cross_entropy       input [n.., k], weight [k, v], labels [n..], bias [v]?
//                              -> loss_sum [], token_count [], logsumexp [n..]
//   linear_token_losses        the same -> losses [n..], logsumexp [n..]
//   linear_logsumexp           input, weight, labels, bias?, first []?; int blocks, all_blocks?
//                              -> logsumexp [n.., blocks], label_logit [n..]
//   linear_cross_entropy_grad  cotangent [] or [n..], input, weight, labels, logsumexp [n..],
//   bias?,
//                              first []?; int classes?
//                              -> input's [n.., k], or that, weight's [k, v], and bias's [v] if
//                                 there is a bias
//   all: int ignore_index, transpose_weight (the weight is stored as [v, k]), chunk
//
// Launches of linear (linear/linear.h), cross_entropy and its family (cross_entropy.h), and
// reductions, on chunks of rows: their numbers, labels and errors. Logits are of the operands'
// type. Sums over chunks are taken in f32 (f64 for f64): losses and counts at the end, the weight's
// gradient as it grows, which is rounded once. f32, f64, bf16; gradients of weight and bias may be
// f32 beside bf16, and statistics are. Results are assigned.
//
// The logits of `chunk` rows are in memory at a time, twice for the gradient. That is a multiple of
// 64; without the attribute, as many as have kHostLogits, or kDeviceLogits, elements.
//
// With `first` (i64) the classes are a piece: as in cross_entropy.h, but that linear_logsumexp
// counts in blocks: block `first` of `all_blocks` is the first.
#ifndef ORIEL_KERNELS_LOSS_LINEAR_CROSS_ENTROPY_H_
#define ORIEL_KERNELS_LOSS_LINEAR_CROSS_ENTROPY_H_

#include <cstdint>
#include <functional>

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {

inline constexpr int64_t kHostLogits = int64_t{4} << 20;
inline constexpr int64_t kDeviceLogits = int64_t{128} << 20;

// What such a launch is made of, on the host or on a device.
class LossParts {
 public:
  virtual ~LossParts() = default;
  // A launch of another kernel.
  virtual absl::StatusOr<KernelFn> Prepare(const KernelSpec& spec) = 0;
  // A product; `stream` is the launch's.
  using Product = std::function<absl::Status(void* stream, const void* a, const void* b, void* c)>;
  virtual absl::StatusOr<Product> PrepareProduct(const GemmShape& shape, int num_threads) = 0;
  // A launch with the labels of all rows as its operand 0, which refuses those that are neither in
  // [0, classes) nor ignore_index, in the name of `spec`.
  virtual absl::StatusOr<KernelFn> PrepareLabelCheck(const KernelSpec& spec,
                                                     const TensorSpec& labels, int64_t classes,
                                                     int64_t ignore_index) = 0;
  // Called last: scratch memory, whose address is asked for at each launch.
  virtual absl::StatusOr<std::function<char*()>> Reserve(int64_t bytes) = 0;
};

// Factories of the four kernels. `logits` is kHostLogits or kDeviceLogits.
absl::StatusOr<KernelFn> MakeLinearCrossEntropy(const KernelSpec& spec, LossParts& parts,
                                                int64_t logits);
absl::StatusOr<KernelFn> MakeLinearTokenLosses(const KernelSpec& spec, LossParts& parts,
                                               int64_t logits);
absl::StatusOr<KernelFn> MakeLinearLogsumexp(const KernelSpec& spec, LossParts& parts,
                                             int64_t logits);
absl::StatusOr<KernelFn> MakeLinearCrossEntropyGrad(const KernelSpec& spec, LossParts& parts,
                                                    int64_t logits);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LOSS_LINEAR_CROSS_ENTROPY_H_
