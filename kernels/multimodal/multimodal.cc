#include "kernels/multimodal/multimodal.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"

namespace oriel::kernels {
namespace {

// `sequence` is [b, s, d], `features` [b, n, d].
absl::StatusOr<MergeShape> MakeShape(const KernelSpec& spec, const TensorSpec& sequence,
                                     const TensorSpec& features) {
  if (sequence.rank() != 3 || features.rank() != 3 || sequence.dtype != features.dtype ||
      sequence.shape[0] != features.shape[0] || sequence.shape[2] != features.shape[2]) {
    return Malformed(spec,
                     absl::StrCat(features.ToString(), " does not fit ", sequence.ToString()));
  }
  ORIEL_RETURN_IF_ERROR(
      CheckOperand(spec, 1, DType::kBool, {sequence.shape[0], sequence.shape[1]}));
  return MergeShape{sequence.shape[0], sequence.shape[1], features.shape[1],
                    sequence.shape[2] * runtime::DTypeBytes(sequence.dtype)};
}

}  // namespace

absl::StatusOr<MergeShape> MergeShape::Make(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.operands[0].dtype, spec.operands[0].shape));
  return MakeShape(spec, spec.operands[0], spec.operands[2]);
}

absl::StatusOr<MergeShape> MergeShape::MakeGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, spec.operands[0].dtype, spec.operands[0].shape));
  return MakeShape(spec, spec.operands[0], spec.results[1]);
}

std::string TooManyPositions(const std::string& kernel, int64_t sample,
                             const std::string& positions, const std::string& features) {
  return absl::StrCat(kernel, ": sample ", sample, " of the microbatch has ", positions,
                      " image positions, more than the ", features,
                      " image features that the recipe's `images` declares");
}

absl::Status CheckMaskedScatter(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 1));
  const TensorSpec& input = spec.operands[0];
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, DType::kBool, input.shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 2, input.dtype, spec.operands[2].shape));
  return CheckResult(spec, 0, input.dtype, input.shape);
}

absl::Status CheckMaskedScatterGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 2));
  const TensorSpec& cotangent = spec.operands[0];
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, DType::kBool, cotangent.shape));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, cotangent.dtype, cotangent.shape));
  return CheckResult(spec, 1, cotangent.dtype, spec.results[1].shape);
}

absl::StatusOr<int64_t> RowsPerImage(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2, 1));
  const TensorSpec& mask = spec.operands[0];
  if (mask.rank() != 2) return Malformed(spec, absl::StrCat("a mask ", mask.ToString()));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, DType::kBool, mask.shape));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 1, DType::kI64, {mask.shape[0]}));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, DType::kBool, mask.shape));
  ORIEL_ASSIGN_OR_RETURN(const int64_t rows, spec.Int("rows_per_image"));
  if (rows < 1) return Malformed(spec, absl::StrCat(rows, " rows per image"));
  return rows;
}

}  // namespace oriel::kernels
