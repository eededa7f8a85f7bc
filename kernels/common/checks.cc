#include "kernels/common/checks.h"

#include "absl/strings/str_cat.h"

namespace oriel::kernels {

absl::Status Malformed(const KernelSpec& spec, const std::string& what) {
  return absl::InvalidArgumentError(absl::StrCat("kernel ", spec.kernel, ": ", what));
}

absl::Status Unsupported(const KernelSpec& spec, const std::string& why) {
  (void)spec;  // Prepare() names the kernel once for all refusals
  return absl::UnimplementedError(why);
}

absl::Status CheckArity(const KernelSpec& spec, size_t min_operands, size_t max_operands,
                        size_t results) {
  if (spec.operands.size() < min_operands || spec.operands.size() > max_operands) {
    return Malformed(spec, absl::StrCat("has ", spec.operands.size(), " operands, expected ",
                                        min_operands == max_operands
                                            ? absl::StrCat(min_operands)
                                            : absl::StrCat(min_operands, " to ", max_operands)));
  }
  if (spec.results.size() != results) {
    return Malformed(spec,
                     absl::StrCat("has ", spec.results.size(), " results, expected ", results));
  }
  return absl::OkStatus();
}

absl::Status CheckOperand(const KernelSpec& spec, size_t index, DType dtype, const Shape& shape) {
  const TensorSpec expected{dtype, shape};
  if (spec.operands[index] == expected) return absl::OkStatus();
  return Malformed(spec, absl::StrCat("operand ", index, " is ", spec.operands[index].ToString(),
                                      ", expected ", expected.ToString()));
}

absl::Status CheckResult(const KernelSpec& spec, size_t index, DType dtype, const Shape& shape) {
  const TensorSpec expected{dtype, shape};
  if (spec.results[index] == expected) return absl::OkStatus();
  return Malformed(spec, absl::StrCat("result ", index, " is ", spec.results[index].ToString(),
                                      ", expected ", expected.ToString()));
}

absl::StatusOr<int64_t> DimAttribute(const KernelSpec& spec, const std::string& name,
                                     int64_t rank) {
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, spec.Int(name));
  if (dim < 0 || dim >= rank) {
    return Malformed(spec, absl::StrCat(name, " = ", dim, " is no dimension of rank ", rank));
  }
  return dim;
}

absl::StatusOr<bool> FlagOr(const KernelSpec& spec, const std::string& name, bool fallback) {
  if (spec.attributes.count(name) == 0) return fallback;
  ORIEL_ASSIGN_OR_RETURN(const int64_t value, spec.Int(name));
  return value != 0;
}

absl::StatusOr<double> FloatOr(const KernelSpec& spec, const std::string& name, double fallback) {
  if (spec.attributes.count(name) == 0) return fallback;
  return spec.Float(name);
}

absl::StatusOr<int64_t> IntOr(const KernelSpec& spec, const std::string& name, int64_t fallback) {
  if (spec.attributes.count(name) == 0) return fallback;
  return spec.Int(name);
}

int64_t SizeOf(const Shape& shape, int64_t begin, int64_t end) {
  int64_t size = 1;
  for (int64_t i = begin; i < end; ++i) size *= shape[i];
  return size;
}

}  // namespace oriel::kernels
