#include "kernels/experts/experts.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"

namespace oriel::kernels {
namespace {

// What all launches have: operand 0 is the input, operand 2 has the choices.
absl::StatusOr<ExpertShape> RowsOf(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 4, 1));
  const TensorSpec &input = spec.operands[0], &rows = spec.operands[2];
  ExpertShape shape;
  shape.factors = input.dtype;
  shape.index = rows.dtype;
  if (rows.dtype != DType::kI64 && rows.dtype != DType::kI32) {
    return Unsupported(spec, "takes choices of i64 and i32");
  }
  if (rows.rank() < 1 || input.rank() < 1) return Malformed(spec, "ranks don't fit");
  const Shape before(input.shape.begin(), input.shape.end() - 1);
  const bool shared = input.rank() == rows.rank();
  const Shape expected(rows.shape.begin(), rows.shape.end() - (shared ? 1 : 0));
  if (before != expected) {
    return Malformed(spec,
                     absl::StrCat(input.ToString(), " does not fit choices ", rows.ToString()));
  }
  shape.per_row = shared ? rows.shape.back() : 1;
  shape.choices = rows.num_elements();
  shape.depth = input.shape.back();
  ORIEL_ASSIGN_OR_RETURN(shape.transposed, FlagOr(spec, "transpose_weight", false));
  return shape;
}

// The weight, or its cotangent.
absl::Status FitWeight(const KernelSpec& spec, const TensorSpec& weight, int64_t columns,
                       ExpertShape& shape) {
  shape.columns = columns;
  shape.experts = weight.rank() == 3 ? weight.shape[0] : 0;
  Shape expected = {shape.experts, shape.depth, columns};
  if (shape.transposed) std::swap(expected[1], expected[2]);
  if (weight.shape != expected) {
    return Malformed(spec, absl::StrCat("a weight ", weight.ToString(), " does not fit ",
                                        shape.depth, " x ", columns));
  }
  ORIEL_ASSIGN_OR_RETURN(shape.piece, Piece::Make(spec, 3, "experts", shape.experts));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ExpertShape> ExpertShape::OfLinear(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(ExpertShape shape, RowsOf(spec));
  const TensorSpec &weight = spec.operands[1], &result = spec.results[0];
  if (weight.rank() != 3 || weight.dtype != shape.factors) {
    return Malformed(spec, absl::StrCat("a weight ", weight.ToString(), " does not fit"));
  }
  ORIEL_RETURN_IF_ERROR(FitWeight(spec, weight, weight.shape[shape.transposed ? 1 : 2], shape));
  Shape expected = spec.operands[2].shape;
  expected.push_back(shape.columns);
  shape.result = shape.factors;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, result.dtype, expected));
  if (result.dtype != shape.factors) return Malformed(spec, "input and result differ in type");
  return shape;
}

absl::StatusOr<ExpertShape> ExpertShape::OfWeightGradAdd(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 4, 5, 1));
  KernelSpec product = spec;
  product.operands.pop_back();
  ORIEL_ASSIGN_OR_RETURN(ExpertShape shape, OfWeightGrad(product));
  const TensorSpec& result = spec.results[0];
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, spec.operands.size() - 1, result.dtype, result.shape));
  if (result.dtype != ComputeDType(shape.factors)) {
    return Malformed(spec, "the sum is narrower than f32");
  }
  shape.accumulates = true;
  return shape;
}

absl::StatusOr<ExpertShape> ExpertShape::OfWeightGrad(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(ExpertShape shape, RowsOf(spec));
  const TensorSpec& cotangent = spec.operands[1];
  if (cotangent.rank() < 1) return Malformed(spec, "ranks don't fit");
  Shape expected = spec.operands[2].shape;
  expected.push_back(cotangent.shape.back());
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, shape.factors, expected));
  ORIEL_RETURN_IF_ERROR(FitWeight(spec, spec.results[0], expected.back(), shape));
  shape.result = spec.results[0].dtype;
  if (shape.result != shape.factors && shape.result != ComputeDType(shape.factors)) {
    return Malformed(spec, "cotangent and result differ in type");
  }
  return shape;
}

int64_t ExpertShape::MostTiles(int64_t tile_rows) const {
  // All but one row of each expert may be in full tiles.
  return choices / tile_rows + std::min(choices, experts);
}

}  // namespace oriel::kernels
