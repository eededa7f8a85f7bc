// rope; see attention.h.
#include "kernels/common/checks.h"
#include "kernels/elementwise/broadcast.h"

namespace oriel::kernels {
namespace {

// One row. `step` is 0 where cos and sin have one column.
template <typename T>
void RopeRow(const T* x, const T* cos, int64_t cos_step, const T* sin, int64_t sin_step,
             int64_t half, bool inverse, T* y) {
  const T* x1 = x;
  const T* x2 = x + half;
  if (inverse) {
#pragma omp simd
    for (int64_t i = 0; i < half; ++i) {
      const int64_t j = half + i;
      y[i] = x1[i] * cos[i * cos_step] + x2[i] * sin[j * sin_step];
      y[j] = x2[i] * cos[j * cos_step] - x1[i] * sin[i * sin_step];
    }
  } else {
#pragma omp simd
    for (int64_t i = 0; i < half; ++i) {
      const int64_t j = half + i;
      y[i] = x1[i] * cos[i * cos_step] - x2[i] * sin[i * sin_step];
      y[j] = x2[i] * cos[j * cos_step] + x1[i] * sin[j * sin_step];
    }
  }
}

struct Rope {
  template <typename T>
  static absl::StatusOr<KernelFn> Make(const KernelSpec& spec) {
    const TensorSpec& x = spec.operands[0];
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
    if (x.rank() < 1 || x.shape.back() % 2 != 0) {
      return Malformed(spec, "the last dimension is not even");
    }
    const int64_t n = x.shape.back();
    // Rows are broadcast by the plan, columns here.
    std::vector<Shape> rows;
    int64_t steps[3];
    for (size_t i = 0; i < 3; ++i) {
      const TensorSpec& operand = spec.operands[i];
      if (operand.rank() != x.rank() || operand.dtype != x.dtype ||
          (operand.shape.back() != n && operand.shape.back() != 1)) {
        return Malformed(spec, "cos or sin does not fit the input");
      }
      rows.emplace_back(operand.shape.begin(), operand.shape.end() - 1);
      steps[i] = operand.shape.back() == 1 ? 0 : 1;
    }
    ORIEL_ASSIGN_OR_RETURN(const BroadcastPlan plan, BroadcastPlan::Make(spec, rows, rows[0]));
    ORIEL_ASSIGN_OR_RETURN(const bool inverse, FlagOr(spec, "inverse", false));
    const int threads = spec.num_threads;
    const int64_t cos_step = steps[1];
    const int64_t sin_step = steps[2];
    const int64_t cos_row = cos_step == 0 ? 1 : n;
    const int64_t sin_row = sin_step == 0 ? 1 : n;
    return KernelFn([=](const KernelArgs& args) {
      const T* input = args.operand<T>(0);
      const T* cos = args.operand<T>(1);
      const T* sin = args.operand<T>(2);
      T* result = args.result<T>(0);
      ForEachPiece(
          plan, threads,
          [&](const BroadcastPlan::Offsets& offsets, int64_t out, int64_t count) {
            for (int64_t i = 0; i < count; ++i) {
              const T* c = cos + (offsets[1] + (plan.varies[1] ? i : 0)) * cos_row;
              const T* s = sin + (offsets[2] + (plan.varies[2] ? i : 0)) * sin_row;
              const T* row = input + (offsets[0] + i) * n;
              T* to = result + (out + i) * n;
              // Strides known to the compiler make vector code.
              if (cos_step == 1 && sin_step == 1) {
                RopeRow(row, c, 1, s, 1, n / 2, inverse, to);
              } else {
                RopeRow(row, c, cos_step, s, sin_step, n / 2, inverse, to);
              }
            }
          },
          /*weight=*/n);
      return absl::OkStatus();
    });
  }
};

absl::StatusOr<KernelFn> MakeRope(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  return DispatchFloat<Rope>(spec, spec.operands[0].dtype);
}

ORIEL_REGISTER_HOST_KERNEL("rope", 0, MakeRope);

}  // namespace
}  // namespace oriel::kernels
