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

}  // namespace oriel::kernels
