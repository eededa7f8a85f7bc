#include "kernels/solve/solve.h"

#include "kernels/common/checks.h"
#include "runtime/base/status.h"

namespace oriel::kernels {

absl::StatusOr<TriangularSystems> SystemsOf(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const TensorSpec &matrix = spec.operands[0], &rhs = spec.operands[1];
  const int64_t rank = matrix.rank();
  if (rank < 2 || rhs.rank() != rank) {
    return Malformed(spec, "the operands are no matrices of the same rank");
  }
  ORIEL_ASSIGN_OR_RETURN(const bool upper, FlagOr(spec, "upper", false));
  ORIEL_ASSIGN_OR_RETURN(const bool transpose, FlagOr(spec, "transpose", false));
  TriangularSystems s{};
  ORIEL_ASSIGN_OR_RETURN(s.unit_diagonal, FlagOr(spec, "unit_diagonal", false));
  s.systems = SizeOf(matrix.shape, 0, rank - 2);
  s.n = matrix.shape[rank - 1];
  s.m = rhs.shape[rank - 1];
  Shape shape = matrix.shape;
  shape[rank - 2] = s.n;
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, matrix.dtype, shape));
  shape[rank - 1] = s.m;
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, matrix.dtype, shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, matrix.dtype, shape));
  s.row = transpose ? 1 : s.n;
  s.column = transpose ? s.n : 1;
  s.row_step = s.m;
  if (upper != transpose && s.n > 0) {  // from the last row to the first
    s.first = s.n * s.n - 1;
    s.row = -s.row;
    s.column = -s.column;
    s.first_row = (s.n - 1) * s.m;
    s.row_step = -s.m;
  }
  return s;
}

}  // namespace oriel::kernels
