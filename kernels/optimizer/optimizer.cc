#include "kernels/optimizer/optimizer.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<StepShape> StepShape::Make(const KernelSpec& spec, int own, int scalars) {
  const int operands = static_cast<int>(spec.operands.size()) - scalars;
  const int results = static_cast<int>(spec.results.size());
  const int news = own - 1;  // the gradient has no new value
  const int count = operands / own;
  const bool rounded = results == (news + 1) * count;
  if (operands <= 0 || operands % own != 0 || (results != news * count && !rounded)) {
    return Malformed(spec, "operands and results are not those of a list of parameters");
  }
  const StepShape shape{count, spec.operands[0].dtype, spec.operands[count].dtype, rounded};
  if (shape.gradient != shape.dtype &&
      (shape.dtype != DType::kF32 || shape.gradient != DType::kBF16)) {
    return Malformed(spec, "parameter and gradient differ in type");
  }
  if (rounded && shape.dtype != DType::kF32) {
    return Unsupported(spec, "rounds parameters of f32");
  }
  for (int i = 0; i < count; ++i) {
    const Shape& dims = spec.operands[i].shape;
    for (int group = 0; group < own; ++group) {
      ORIEL_RETURN_IF_ERROR(
          CheckOperand(spec, group * count + i, group == 1 ? shape.gradient : shape.dtype, dims));
    }
    for (int group = 0; group < news; ++group) {
      ORIEL_RETURN_IF_ERROR(CheckResult(spec, group * count + i, shape.dtype, dims));
    }
    if (rounded) ORIEL_RETURN_IF_ERROR(CheckResult(spec, news * count + i, DType::kBF16, dims));
  }
  for (int i = 0; i < scalars; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, operands + i, shape.dtype, {}));
  }
  return shape;
}

}  // namespace oriel::kernels
