// rope; see attention.h.
#include <algorithm>

#include "kernels/attention/rope.h"
#include "kernels/common/checks.h"

namespace oriel::kernels {
namespace {

template <typename S, typename C>
void RopeRow(const S* x, RopePairs x_at, const C* cos, RopePairs cos_at, const C* sin,
             RopePairs sin_at, int64_t pairs, bool inverse, S* y) {
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
    ORIEL_ASSIGN_OR_RETURN(const RopeSpec rope, AnalyzeRope(spec));
    // Rows are broadcast by the plan, columns here.
    const BroadcastPlan plan = rope.rows;
    const int64_t n = rope.columns, rotary_dim = rope.rotary_dim;
    const bool inverse = rope.inverse;
    const int threads = spec.num_threads;
    const int64_t cos_columns = rope.table_columns[1], sin_columns = rope.table_columns[2];
    const RopePairs x_at = rope.pairs[0], cos_at = rope.pairs[1], sin_at = rope.pairs[2];
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
