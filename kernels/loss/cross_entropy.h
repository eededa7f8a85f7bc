// Cross entropy of a language model's logits (ir/oriel/training.td).
//
//   cross_entropy       logits [n.., v], labels [n..] of i64 or i32; int ignore_index
//                       -> loss_sum [], token_count [], logsumexp [n..]
//   token_losses        the same -> losses [n..], 0 of an ignored label, logsumexp [n..]
//   cross_entropy_grad  cotangent [] or [n..], logits, labels, logsumexp, first []?;
//                       int ignore_index, int classes? -> [n.., v]
//   sum_exp             input [n.., v], shift [n..] -> [n..]
//   label_logits        logits, labels, first []?; int ignore_index, int classes? -> [n..]
//   block_logsumexp     logits, labels, first []?; int ignore_index, int blocks, int all_blocks?
//                       -> logsumexp [n.., blocks] of equal parts of a row, -inf for one of -inf
//                          alone; the label's logit [n..], as label_logits gives it, 0 for a
//                          label out of range
//
// Dense row-major, f32, f64 and, for logits and their gradient, bf16 beside f32,
// a row of which is widened; results are assigned, a gradient also in the place of the logits. A
// row's exponentials are summed in double (row_sums.h), its loss is taken in double, and losses are
// summed in double in row order. The logsumexp of an ignored row is computed too. On a device
// exponentials of bf16 logits have relative errors of 2^-22, those of sum_exp and the gradient,
// before it is rounded, of |shift| 2^-23 more.
// But for block_logsumexp, a label outside [0, v) that is not ignore_index is InvalidArgument,
// naming its row, its value and the bounds; nothing is written then.
//
// With `first` (i64) and `classes` the logits are those of the classes [first, first + v) of
// `classes`, and labels are below `classes`: one of another piece has no logit here (0), and
// nothing is taken off its probability. block_logsumexp counts in blocks: `first` is that of the
// first one, of `all_blocks`.
#ifndef ORIEL_KERNELS_LOSS_CROSS_ENTROPY_H_
#define ORIEL_KERNELS_LOSS_CROSS_ENTROPY_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "kernels/common/piece.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// InvalidArgument, naming the first label that is neither in [0, classes) nor ignore_index.
template <typename I>
absl::Status CheckLabels(const std::string& kernel, const I* labels, int64_t rows, int64_t classes,
                         int64_t ignore_index) {
  for (int64_t row = 0; row < rows; ++row) {
    const int64_t label = labels[row];
    if (label != ignore_index && (label < 0 || label >= classes)) {
      return absl::InvalidArgumentError(absl::StrCat(kernel, ": label ", label, " of row ", row,
                                                     " is outside [0, ", classes,
                                                     ") and is not ignore_index ", ignore_index));
    }
  }
  return absl::OkStatus();
}

struct CrossEntropyShape {
  int64_t rows;
  int64_t vocabulary;
  int64_t ignore_index;
  Piece classes;

  // The logits are operand `logits`, the labels the next one; `first` is operand `first`, if it
  // is there.
  static absl::StatusOr<CrossEntropyShape> Make(const KernelSpec& spec, size_t logits,
                                                size_t first);
};

// Whether the gradient's cotangent is one of each row, [n..], not of all; Malformed if it is
// neither.
absl::StatusOr<bool> IsCotangentOfRows(const KernelSpec& spec);

// Of block_logsumexp.
struct BlockShape {
  CrossEntropyShape loss;  // of classes
  int64_t blocks;
  Piece piece;  // of the blocks
  static absl::StatusOr<BlockShape> Make(const KernelSpec& spec);
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LOSS_CROSS_ENTROPY_H_
