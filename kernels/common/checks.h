// What every kernel factory checks, and how it refuses.
#ifndef ORIEL_KERNELS_COMMON_CHECKS_H_
#define ORIEL_KERNELS_COMMON_CHECKS_H_

#include <string>

#include "absl/status/status.h"
#include "kernels/common/bfloat16.h"
#include "kernels/kernel.h"
#include "runtime/base/status.h"

namespace oriel::kernels {

// InvalidArgument: the plan is wrong. The message names the kernel.
absl::Status Malformed(const KernelSpec& spec, const std::string& what);
// Unimplemented: this implementation does not take the launch.
absl::Status Unsupported(const KernelSpec& spec, const std::string& why);

// Malformed unless the launch has so many operands (min..max) and results.
absl::Status CheckArity(const KernelSpec& spec, size_t min_operands, size_t max_operands,
                        size_t results);
inline absl::Status CheckArity(const KernelSpec& spec, size_t operands, size_t results) {
  return CheckArity(spec, operands, operands, results);
}
// Malformed unless operand or result `index` has this type and shape.
absl::Status CheckOperand(const KernelSpec& spec, size_t index, DType dtype, const Shape& shape);
absl::Status CheckResult(const KernelSpec& spec, size_t index, DType dtype, const Shape& shape);

// `dim` as an index below `rank`, or Malformed.
absl::StatusOr<int64_t> DimAttribute(const KernelSpec& spec, const std::string& name, int64_t rank);
// A boolean attribute; `fallback` where it is absent.
absl::StatusOr<bool> FlagOr(const KernelSpec& spec, const std::string& name, bool fallback);
// Numbers that may be absent.
absl::StatusOr<double> FloatOr(const KernelSpec& spec, const std::string& name, double fallback);
absl::StatusOr<int64_t> IntOr(const KernelSpec& spec, const std::string& name, int64_t fallback);

// Product of the sizes of dimensions [begin, end).
int64_t SizeOf(const Shape& shape, int64_t begin, int64_t end);

// A result of the factory template for a float type, chosen by `dtype`:
//   return DispatchFloat<MakeThing>(spec, spec.operands[0].dtype);
// where MakeThing is a struct with `template <typename T> static StatusOr<KernelFn> Make(spec)`.
template <typename Factory>
absl::StatusOr<KernelFn> DispatchFloat(const KernelSpec& spec, DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return Factory::template Make<float>(spec);
    case DType::kF64:
      return Factory::template Make<double>(spec);
    default:
      return Unsupported(spec, "takes f32 and f64, not " + std::string(runtime::DTypeName(dtype)));
  }
}

// What statistics and other small tensors are beside large ones of `dtype`: f32 for bf16.
inline DType ComputeDType(DType dtype) { return dtype == DType::kBF16 ? DType::kF32 : dtype; }

// The same for kernels that also take bf16 themselves: MakeThing::Make<BFloat16>.
template <typename Factory>
absl::StatusOr<KernelFn> DispatchStored(const KernelSpec& spec, DType dtype) {
  if (dtype == DType::kBF16) return Factory::template Make<BFloat16>(spec);
  return DispatchFloat<Factory>(spec, dtype);
}

}  // namespace oriel::kernels

#endif  // ORIEL_KERNELS_COMMON_CHECKS_H_
