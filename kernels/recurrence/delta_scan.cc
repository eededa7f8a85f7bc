#include "kernels/recurrence/delta_scan.h"

#include "kernels/common/checks.h"
#include "runtime/base/status.h"

namespace oriel::kernels {

absl::StatusOr<DeltaScan> DeltaScanOf(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 5, 6, 3));
  const TensorSpec &values = spec.operands[0], &keys = spec.operands[1];
  const int64_t rank = values.rank();
  if (rank < 3 || keys.rank() != rank || spec.operands[3].rank() != rank) {
    return Malformed(spec, "values, keys and decays are no chunks of matrices of the same rank");
  }
  DeltaScan s{};
  s.batch = SizeOf(values.shape, 0, rank - 3);
  s.chunks = values.shape[rank - 3];
  s.c = values.shape[rank - 2];
  s.v = values.shape[rank - 1];
  s.k = keys.shape[rank - 1];
  s.decays_rows = spec.operands[3].shape[rank - 2] != 1;
  s.adds = spec.operands.size() == 6;
  ORIEL_ASSIGN_OR_RETURN(s.reverse, FlagOr(spec, "reverse", false));
  const DType dtype = values.dtype, wide = ComputeDType(dtype);
  Shape of_keys = values.shape, decays = values.shape, states = values.shape;
  of_keys[rank - 1] = s.k;
  decays[rank - 2] = s.decays_rows ? s.k : 1;
  decays[rank - 1] = 1;
  states[rank - 2] = s.k;
  Shape state = states;
  state.erase(state.begin() + (rank - 3));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, dtype, of_keys));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, dtype, of_keys));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 3, wide, decays));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 4, wide, state));
  if (s.adds) ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 5, dtype, states));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, dtype, values.shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, dtype, states));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 2, wide, state));
  return s;
}

}  // namespace oriel::kernels
