// Layers of the experts that rows choose: expert_linear, expert_linear_weight_grad
// (ir/oriel/experts.td), expert_linear_weight_grad_add (ir/oriel/fused.td).
//
// Dense row-major operands of f32, f64 or bf16, results are assigned, sums are in the operands'
// type, those of bf16 in f32 and rounded once. Choices are i64 or i32; a negative one counts from
// the end, one out of range is InvalidArgument, naming its position, its value and the bounds, and
// nothing is written.
//
//   expert_linear              input [r.., c, k] or [r.., k], weight [e, k, n], choice [r.., c],
//                              first []? -> [r.., c, n]
//                              int transpose_weight: weight stored as [e, n, k]
//   expert_linear_weight_grad  input [r.., c, k] or [r.., k], cotangent [r.., c, n],
//                              choice [r.., c], first []? -> [e, k, n], or [e, n, k] with
//                              int transpose_weight; bf16, f32 or f64, for bf16 also f32. Rows of
//                              an expert are added up in their order; no rows, zeros
//   expert_linear_weight_grad_add  input, cotangent, choice, first []?, addend -> the same plus the
//                              addend, which has the result's type, f32 or f64; the result may be
//                              in its place, where experts without rows are not touched
//
// With `first` (i64) and int `experts` the weight is the piece [first, first + e) of that many
// experts: a choice of another piece gives zeros, and adds nothing.
#ifndef ORIEL_KERNELS_EXPERTS_EXPERTS_H_
#define ORIEL_KERNELS_EXPERTS_EXPERTS_H_

#include "kernels/common/piece.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// The extents of a launch: `choices` rows, each multiplied with one of `experts` matrices of
// `depth` rows and `columns` columns.
struct ExpertShape {
  int64_t choices = 0;
  int64_t per_row = 1;  // choices that have one row of the input
  int64_t experts = 0;  // of the piece
  int64_t depth = 0, columns = 0;
  bool transposed = false;   // the weight is stored as [e, columns, depth]
  bool accumulates = false;  // the last operand is added
  Piece piece{};
  DType factors = DType::kF32, result = DType::kF32, index = DType::kI64;

  // InvalidArgument where shapes or types don't fit.
  static absl::StatusOr<ExpertShape> OfLinear(const KernelSpec& spec);
  static absl::StatusOr<ExpertShape> OfWeightGrad(const KernelSpec& spec);
  static absl::StatusOr<ExpertShape> OfWeightGradAdd(const KernelSpec& spec);

  // Of an expert's rows are so many multiplied at a time: the most tiles that there can be,
  // whatever the rows choose.
  int64_t MostTiles(int64_t tile_rows) const;
};

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_EXPERTS_EXPERTS_H_
