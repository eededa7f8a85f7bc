// select; see elementwise.h. Copies elements by size, so it takes every type.
#include "kernels/elementwise/elementwise.h"

namespace oriel::kernels {
namespace {

template <typename T>
absl::StatusOr<KernelFn> MakeSized(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(
      const BroadcastPlan plan,
      BroadcastPlan::Make(spec,
                          {spec.operands[0].shape, spec.operands[1].shape, spec.operands[2].shape},
                          spec.results[0].shape));
  const int threads = spec.num_threads;
  return KernelFn([plan, threads](const KernelArgs& args) {
    const uint8_t* condition = args.operand<uint8_t>(0);
    const T* on_true = args.operand<T>(1);
    const T* on_false = args.operand<T>(2);
    T* result = args.result<T>(0);
    ForEachPiece(plan, threads,
                 [&](const BroadcastPlan::Offsets& offsets, int64_t out, int64_t count) {
                   const uint8_t* c = condition + offsets[0];
                   const T* a = on_true + offsets[1];
                   const T* b = on_false + offsets[2];
                   T* y = result + out;
                   const int64_t da = plan.varies[1];
                   const int64_t db = plan.varies[2];
                   if (!plan.varies[0]) {
                     const T* from = c[0] ? a : b;
                     const int64_t step = c[0] ? da : db;
#pragma omp simd
                     for (int64_t i = 0; i < count; ++i) y[i] = from[i * step];
                   } else if (da && db) {
#pragma omp simd
                     for (int64_t i = 0; i < count; ++i) y[i] = c[i] ? a[i] : b[i];
                   } else if (da) {
                     const T other = b[0];
#pragma omp simd
                     for (int64_t i = 0; i < count; ++i) y[i] = c[i] ? a[i] : other;
                   } else {
                     const T value = a[0];
#pragma omp simd
                     for (int64_t i = 0; i < count; ++i) y[i] = c[i] ? value : b[i * db];
                   }
                 });
    return absl::OkStatus();
  });
}

absl::StatusOr<KernelFn> MakeSelect(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  const DType dtype = spec.operands[1].dtype;
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, DType::kBool, spec.operands[0].shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, dtype, spec.operands[2].shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, dtype, spec.results[0].shape));
  switch (runtime::DTypeBytes(dtype)) {
    case 8:
      return MakeSized<uint64_t>(spec);
    case 4:
      return MakeSized<uint32_t>(spec);
    case 2:
      return MakeSized<uint16_t>(spec);
    default:
      return MakeSized<uint8_t>(spec);
  }
}

ORIEL_REGISTER_HOST_KERNEL("select", 0, MakeSelect);

}  // namespace
}  // namespace oriel::kernels
