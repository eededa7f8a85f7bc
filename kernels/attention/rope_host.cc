// rope; see attention.h.
#include <algorithm>

#include "kernels/common/checks.h"
#include "kernels/elementwise/broadcast.h"

namespace oriel::kernels {
namespace {

// Where the two elements of a pair lie in a row: those of pair i at i * step and second + i * step.
struct Pairs {
  int64_t step, second;
};

Pairs PairsOf(int64_t columns, int64_t rotary_dim, bool interleaved) {
  if (columns == 1) return {0, 0};
  if (columns != rotary_dim) return {1, 0};  // one angle for both
  return interleaved ? Pairs{2, 1} : Pairs{1, rotary_dim / 2};
}

template <typename S, typename C>
void RopeRow(const S* x, Pairs x_at, const C* cos, Pairs cos_at, const C* sin, Pairs sin_at,
             int64_t pairs, bool inverse, S* y) {
  using T = Compute<S>;
  // The transposed map has the sines of a pair exchanged and negated.
  const C* sin1 = sin + (inverse ? sin_at.second : 0);
  const C* sin2 = sin + (inverse ? 0 : sin_at.second);
  const T sign = inverse ? T(-1) : T(1);
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    const T x1 = x[i * x_at.step];
    const T x2 = x[x_at.second + i * x_at.step];
    const T cos1 = cos[i * cos_at.step], cos2 = cos[cos_at.second + i * cos_at.step];
    Assign(y + i * x_at.step, x1 * cos1 - x2 * (sign * sin1[i * sin_at.step]));
    Assign(y + x_at.second + i * x_at.step, x2 * cos2 + x1 * (sign * sin2[i * sin_at.step]));
  }
}

// Elements of S; cos and sin of C, the same or what they are computed in.
template <typename S, typename C>
struct RopeOf {
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const TensorSpec& x = spec.operands[0];
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
    // Rows are broadcast by the plan, columns here.
    std::vector<Shape> rows;
    for (const TensorSpec& operand : spec.operands) {
      const bool is_input = rows.empty();
      const int64_t columns = operand.rank() == x.rank() ? operand.shape.back() : 0;
      if (operand.dtype != (is_input ? x.dtype : spec.operands[1].dtype) ||
          (!is_input && columns != rotary_dim && columns != rotary_dim / 2 && columns != 1)) {
        return Malformed(spec, "cos or sin does not fit the input");
      }
      rows.emplace_back(operand.shape.begin(), operand.shape.end() - 1);
    }
    ORIEL_ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make(spec, rows, rows[0]));
    const int threads = spec.num_threads;
    const int64_t cos_columns = spec.operands[1].shape.back();
    const int64_t sin_columns = spec.operands[2].shape.back();
    const Pairs x_at = interleaved ? Pairs{2, 1} : Pairs{1, rotary_dim / 2};
    const Pairs cos_at = PairsOf(cos_columns, rotary_dim, interleaved);
    const Pairs sin_at = PairsOf(sin_columns, rotary_dim, interleaved);
    return KernelFn([=](const KernelArgs& args) {
      const S* input = args.operand<S>(0);
      const C* cos = args.operand<C>(1);
      const C* sin = args.operand<C>(2);
      S* result = args.result<S>(0);
      ForEachPiece(
          plan, threads,
          [&](const BroadcastPlan::Offsets& offsets, int64_t out, int64_t count) {
            for (int64_t i = 0; i < count; ++i) {
              const C* c = cos + (offsets[1] + (plan.varies[1] ? i : 0)) * cos_columns;
              const C* s = sin + (offsets[2] + (plan.varies[2] ? i : 0)) * sin_columns;
              const S* row = input + (offsets[0] + i) * n;
              S* to = result + (out + i) * n;
              // Strides known to the compiler make vector code.
              if (x_at.step == 1 && cos_at.step == 1 && sin_at.step == 1) {
                RopeRow(row, {1, x_at.second}, c, {1, cos_at.second}, s, {1, sin_at.second},
                        rotary_dim / 2, inverse, to);
              } else {
                RopeRow(row, x_at, c, cos_at, s, sin_at, rotary_dim / 2, inverse, to);
              }
              std::copy(row + rotary_dim, row + n, to + rotary_dim);
            }
          },
          /*weight=*/n);
      return absl::OkStatus();
    });
  }
};

struct Rope {
  template <typename S>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const DType angles = spec.operands[1].dtype;
    if (angles == spec.operands[0].dtype) return RopeOf<S, S>::Make(spec);
    if (angles == ComputeDType(spec.operands[0].dtype)) return RopeOf<S, Compute<S>>::Make(spec);
    return Malformed(spec, "cos or sin does not fit the input");
  }
};

absl::StatusOr<KernelFn> MakeRope(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  return DispatchStored<Rope>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("rope", 0, MakeRope);

}  // namespace
}  // namespace oriel::kernels
