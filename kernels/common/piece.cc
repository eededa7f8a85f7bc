#include "kernels/common/piece.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<Piece> Piece::Make(const KernelSpec& spec, size_t operand, const char* attribute,
                                  int64_t size) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, operand, operand + 1, spec.results.size()));
  if (spec.operands.size() == operand) return Piece{size, size, -1};
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, operand, DType::kI64, {}));
  ORIEL_ASSIGN_OR_RETURN(const int64_t whole, spec.Int(attribute));
  if (whole < size) {
    return Malformed(spec,
                     absl::StrCat(attribute, " is ", whole, ", less than the piece's ", size));
  }
  return Piece{size, whole, static_cast<int>(operand)};
}

absl::StatusOr<int64_t> Piece::First(const KernelArgs& args) const {
  if (operand < 0) return 0;
  const int64_t first = *args.operand<int64_t>(operand);
  if (first < 0 || first > whole - size) {
    return absl::InvalidArgumentError(
        absl::StrCat("a piece of ", size, " that begins at ", first, " is not within ", whole));
  }
  return first;
}

}  // namespace oriel::kernels
