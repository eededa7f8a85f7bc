// What a launch of rope asks for, for every device; attention.h has its contract.
#ifndef ORIEL_KERNELS_ATTENTION_ROPE_H_
#define ORIEL_KERNELS_ATTENTION_ROPE_H_

#include <array>
#include <cstdint>

#include "absl/status/statusor.h"
#include "kernels/elementwise/broadcast.h"
#include "kernels/kernel.h"

namespace oriel::kernels {

// Where the two elements of a pair lie in a row: those of pair i at i * step and second + i * step.
struct RopePairs {
  int64_t step, second;
};

struct RopeSpec {
  int64_t columns;     // of a row of x
  int64_t rotary_dim;  // of them are rotated
  bool interleaved;
  bool inverse;
  BroadcastPlan rows;                    // of x, cos, sin
  std::array<RopePairs, 3> pairs;        // of the same
  std::array<int64_t, 3> table_columns;  // of a row of each
};

// Operands x [.., n], cos and sin [.., rotary_dim, half of it, or 1]; the result is as x. Angles
// are of x's dtype, or of what that is computed in.
absl::StatusOr<RopeSpec> AnalyzeRope(const KernelSpec& spec);

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_ATTENTION_ROPE_H_
