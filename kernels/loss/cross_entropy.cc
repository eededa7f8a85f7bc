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

absl::StatusOr<bool> IsCotangentOfRows(const KernelSpec& spec) {
  const bool is_of_rows = spec.operands[0].rank() > 0;
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, ComputeDType(spec.operands[1].dtype),
                                     is_of_rows ? spec.operands[2].shape : Shape{}));
  return is_of_rows;
}

absl::StatusOr<BlockShape> BlockShape::Make(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 2));
  const TensorSpec &x = spec.operands[0], &labels = spec.operands[1];
  if (x.rank() < 1) return Malformed(spec, "the logits have rank 0");
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, labels.dtype, rows));
  ORIEL_ASSIGN_OR_RETURN(const int64_t ignore_index, IntOr(spec, "ignore_index", -100));
  ORIEL_ASSIGN_OR_RETURN(const int64_t blocks, spec.Int("blocks"));
  if (blocks <= 0 || x.shape.back() % blocks != 0) {
    return Malformed(spec, "the classes are not a multiple of the blocks");
  }
  Shape by_block = rows;
  by_block.push_back(blocks);
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, ComputeDType(x.dtype), by_block));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, ComputeDType(x.dtype), rows));
  ORIEL_ASSIGN_OR_RETURN(const Piece piece, Piece::Make(spec, 2, "all_blocks", blocks));
  const int64_t classes = x.shape.back(), whole = classes / blocks * piece.whole;
  return BlockShape{{runtime::NumElements(rows), classes, ignore_index, Piece{classes, whole, -1}},
                    blocks,
                    piece};
}

}  // namespace oriel::kernels
