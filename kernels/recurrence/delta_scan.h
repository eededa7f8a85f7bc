// States of linear attention by the delta rule, chunk by chunk (oriel.delta_scan).
//
//   operands: values [b.., n, c, v], read_keys and write_keys [b.., n, c, k], decays [b.., n, d, 1]
//   with d = k or 1, initial [b.., k, v], optionally added [b.., n, k, v]
//   results: written [b.., n, c, v], states [b.., n, k, v], last [b.., k, v]
//   attributes: reverse, from the last of the n chunks to the first
//
//   S = initial; for each chunk: states = S, written = values + read_keys S,
//   S = decays ⊙ S + write_keysᵀ written + added; last = S
//
// f32, f64, and bf16 with f32 decays, initial and last. A state stays in the type that is computed
// in (f32 for bf16) from chunk to chunk, and so does what was written until it is added; sums of
// products are in it too, one by one over k, over c. Assigns; no result overlaps an operand.
#ifndef ORIEL_KERNELS_RECURRENCE_DELTA_SCAN_H_
#define ORIEL_KERNELS_RECURRENCE_DELTA_SCAN_H_

#include "absl/status/statusor.h"
#include "kernels/kernel.h"
#include "kernels/recurrence/delta_scan_args.h"

namespace oriel::kernels {

// Malformed if shapes, types or attributes do not fit each other.
absl::StatusOr<DeltaScan> DeltaScanOf(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_RECURRENCE_DELTA_SCAN_H_
