#include "kernels/optimizer/optimizer.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<StepShape> StepShape::Make(const KernelSpec& spec, int own, int scalars) {
  const int operands = static_cast<int>(spec.operands.size()) - scalars;
  const int results = static_cast<int>(spec.results.size());
  const int news = own - 1;  // the gradient has no new value
  const bool remainders = !spec.operands.empty() && spec.operands[0].dtype == DType::kBF16;
  const int groups = own + (remainders ? 1 : 0);
  const int count = operands / groups;
  const bool more = results == (news + 1) * count;
  if (operands <= 0 || operands % groups != 0 ||
      !(more || (results == news * count && !remainders))) {
    return Malformed(spec, "operands and results are not those of a list of parameters");
  }
  const bool rounded = more && !remainders;
  const StepShape shape{count, ComputeDType(spec.operands[0].dtype), spec.operands[count].dtype,
                        rounded, remainders};
  if (shape.gradient != shape.dtype &&
      (shape.dtype != DType::kF32 || shape.gradient != DType::kBF16)) {
    return Malformed(spec, "parameter and gradient differ in type");
  }
  if (rounded && shape.dtype != DType::kF32) {
    return Unsupported(spec, "rounds parameters of f32");
  }
  for (int i = 0; i < count; ++i) {
    const Shape& dims = spec.operands[i].shape;
    const DType parameter = spec.operands[0].dtype;
    for (int group = 0; group < own; ++group) {
      const DType dtype = group == 0 ? parameter : group == 1 ? shape.gradient : shape.dtype;
      ORIEL_RETURN_IF_ERROR(CheckOperand(spec, group * count + i, dtype, dims));
    }
    for (int group = 0; group < news; ++group) {
      const DType dtype = group == 0 ? parameter : shape.dtype;
      ORIEL_RETURN_IF_ERROR(CheckResult(spec, group * count + i, dtype, dims));
    }
    if (remainders) {
      ORIEL_RETURN_IF_ERROR(CheckOperand(spec, own * count + i, DType::kI16, dims));
    }
    if (more) {
      ORIEL_RETURN_IF_ERROR(
          CheckResult(spec, news * count + i, rounded ? DType::kBF16 : DType::kI16, dims));
    }
  }
  for (int i = 0; i < scalars; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, operands + i, shape.dtype, {}));
  }
  return shape;
}

}  // namespace oriel::kernels
