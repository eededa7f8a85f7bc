#include "kernels/attention/rope.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {
namespace {

RopePairs PairsOf(int64_t columns, int64_t rotary_dim, bool interleaved) {
  if (columns == 1) return {0, 0};
  if (columns != rotary_dim) return {1, 0};  // one angle for both
  return interleaved ? RopePairs{2, 1} : RopePairs{1, rotary_dim / 2};
}

}  // namespace

absl::StatusOr<RopeSpec> AnalyzeRope(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  const TensorSpec& x = spec.operands[0];
  const DType angles = spec.operands[1].dtype;
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  if (x.rank() < 1) return Malformed(spec, "the input has no dimension");
  const int64_t n = x.shape.back();
  ORIEL_ASSIGN_OR_RETURN(int64_t rotary_dim, IntOr(spec, "rotary_dim", 0));
  if (rotary_dim == 0) rotary_dim = n;
  if (rotary_dim < 0 || rotary_dim > n || rotary_dim % 2 != 0) {
    return Malformed(spec, "rotates no even part of the last dimension");
  }
  ORIEL_ASSIGN_OR_RETURN(const bool interleaved, FlagOr(spec, "interleaved", false));
  ORIEL_ASSIGN_OR_RETURN(const bool inverse, FlagOr(spec, "inverse", false));
  if (angles != x.dtype && angles != ComputeDType(x.dtype)) {
    return Malformed(spec, "cos or sin does not fit the input");
  }
  std::vector<Shape> rows;
  std::array<RopePairs, 3> pairs;
  std::array<int64_t, 3> table_columns;
  for (size_t i = 0; i < 3; ++i) {
    const TensorSpec& operand = spec.operands[i];
    const bool is_input = i == 0;
    const int64_t columns = operand.rank() == x.rank() ? operand.shape.back() : 0;
    if (operand.dtype != (is_input ? x.dtype : angles) ||
        (!is_input && columns != rotary_dim && columns != rotary_dim / 2 && columns != 1)) {
      return Malformed(spec, "cos or sin does not fit the input");
    }
    rows.emplace_back(operand.shape.begin(), operand.shape.end() - 1);
    pairs[i] = PairsOf(is_input ? rotary_dim : columns, rotary_dim, interleaved);
    table_columns[i] = columns;
  }
  ORIEL_ASSIGN_OR_RETURN(BroadcastPlan plan, BroadcastPlan::Make(spec, rows, rows[0]));
  return RopeSpec{n, rotary_dim, interleaved, inverse, std::move(plan), pairs, table_columns};
}

}  // namespace oriel::kernels
