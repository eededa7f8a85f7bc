// Cross entropy of a language model's logits (ir/oriel/training.td).
//
//   cross_entropy       logits [n.., v], labels [n..] of i64 or i32; int ignore_index
//                       -> loss_sum [], token_count [], logsumexp [n..]
//   cross_entropy_grad  cotangent [], logits, labels, logsumexp, first []?;
//                       int ignore_index, int classes? -> [n.., v]
//   sum_exp             input [n.., v], shift [n..] -> [n..]
//   label_logits        logits, labels, first []?; int ignore_index, int classes? -> [n..]
//
// Dense row-major, f32, f64 and, for logits and their gradient, bf16 beside f32,
// a row of which is widened; results are assigned. A row's exponentials are
// summed in double (row_sums.h), its loss is taken in double, and losses are
// summed in double in row order. The logsumexp of an ignored row is computed too.
// A label outside [0, v) that is not ignore_index is InvalidArgument, naming its
// row, its value and the bounds; nothing is written then.
//
// With `first` (i64) and `classes` the logits are those of the classes [first, first + v) of
// `classes`, and labels are below `classes`: one of another piece has no logit here (0), and
// nothing is taken off its probability.
#ifndef ORIEL_KERNELS_LOSS_CROSS_ENTROPY_H_
#define ORIEL_KERNELS_LOSS_CROSS_ENTROPY_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/common/piece.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

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

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_LOSS_CROSS_ENTROPY_H_
