#include "kernels/loss/cross_entropy.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<CrossEntropyShape> CrossEntropyShape::Make(const KernelSpec& spec, size_t logits,
                                                          size_t first) {
  const TensorSpec& x = spec.operands[logits];
  if (x.rank() < 1) return Malformed(spec, "the logits have rank 0");
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, logits + 1, spec.operands[logits + 1].dtype, rows));
  ORIEL_ASSIGN_OR_RETURN(const int64_t ignore_index, IntOr(spec, "ignore_index", -100));
  ORIEL_ASSIGN_OR_RETURN(const Piece classes, Piece::Make(spec, first, "classes", x.shape.back()));
  return CrossEntropyShape{runtime::NumElements(rows), x.shape.back(), ignore_index, classes};
}

}  // namespace oriel::kernels
