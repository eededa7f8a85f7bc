#include "kernels/reduce/reduce.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<ReducePlan> ReducePlan::Make(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> dims, spec.Ints("dims"));
  ORIEL_ASSIGN_OR_RETURN(const bool keep, FlagOr(spec, "keep_dims", false));
  std::vector<bool> reduced(input.rank(), false);
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= input.rank()) return Malformed(spec, "dims leave the operand");
    reduced[dim] = true;
  }
  ReducePlan plan;
  Shape result;
  for (int64_t i = 0; i < input.rank(); ++i) {
    const int64_t size = input.shape[i];
    if (!reduced[i]) result.push_back(size);
    if (reduced[i] && keep) result.push_back(1);
    (reduced[i] ? plan.reduced_elements : plan.results) *= size;
    if (size == 1) continue;
    if (!plan.dims.empty() && plan.dims.back().reduced == reduced[i]) {
      plan.dims.back().size *= size;
    } else {
      plan.dims.push_back({size, reduced[i]});
    }
  }
  const bool widens = spec.results[0].dtype == ComputeDType(input.dtype);
  ORIEL_RETURN_IF_ERROR(
      CheckResult(spec, 0, widens ? ComputeDType(input.dtype) : input.dtype, result));
  return plan;
}

absl::StatusOr<RowsWithValue> RowsWithValue::Make(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 3, 1));
  const TensorSpec& x = spec.operands[0];
  if (x.rank() < 1) return Malformed(spec, "the input has rank 0");
  const Shape rows(x.shape.begin(), x.shape.end() - 1);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, x.dtype, rows));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, DType::kI64, rows));
  ORIEL_ASSIGN_OR_RETURN(const Piece elements, Piece::Make(spec, 2, "size", x.shape.back()));
  return RowsWithValue{runtime::NumElements(rows), elements};
}

}  // namespace oriel::kernels
