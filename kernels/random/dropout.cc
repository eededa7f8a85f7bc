#include "kernels/random/dropout.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "runtime/base/status.h"

namespace oriel::kernels {
namespace {

absl::StatusOr<std::vector<int64_t>> IntsOrNone(const KernelSpec& spec, const std::string& name) {
  return spec.attributes.count(name) > 0 ? spec.Ints(name) : std::vector<int64_t>();
}

// Cuts the piece of a sample into runs. Dimensions that follow one another in both are one.
void FindRuns(const Shape& piece, const Shape& whole, DropoutArgs& args) {
  std::vector<int64_t> sizes, strides;  // innermost first
  int64_t stride = 1;
  for (size_t d = piece.size(); d-- > 0;) {
    if (!sizes.empty() && strides.back() * sizes.back() == stride) {
      sizes.back() *= piece[d];
    } else {
      sizes.push_back(piece[d]);
      strides.push_back(stride);
    }
    stride *= whole[d];
  }
  args.inner = sizes.front();
  args.runs = 1;
  args.dims = static_cast<int32_t>(sizes.size()) - 1;
  for (int d = 0; d < args.dims; ++d) {
    args.sizes[args.dims - 1 - d] = sizes[d + 1];
    args.strides[args.dims - 1 - d] = strides[d + 1];
    args.runs *= sizes[d + 1];
  }
}

}  // namespace

absl::StatusOr<DropoutArgs> DropoutOf(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> cut, IntsOrNone(spec, "cut"));
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 2 + cut.size(), 1));
  const TensorSpec &x = spec.operands[0], &bits = spec.operands[1];
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, x.dtype, x.shape));
  const int64_t rank = x.rank();
  if (rank < 1 || rank > DropoutArgs::kDims || bits.dtype != DType::kI64 || bits.rank() != 1 ||
      bits.shape[0] < 1 || x.shape[0] % bits.shape[0] != 0) {
    return Malformed(spec, absl::StrCat("rows of ", x.ToString(), " are not those of samples ",
                                        bits.ToString()));
  }
  DropoutArgs args;
  args.samples = bits.shape[0];
  Shape piece = x.shape;
  piece[0] /= args.samples;
  Shape whole = piece;
  if (!cut.empty()) {
    ORIEL_ASSIGN_OR_RETURN(whole, spec.Ints("whole"));
    if (static_cast<int64_t>(whole.size()) != rank) {
      return Malformed(spec, "whole has another rank than its piece");
    }
    whole[0] = piece[0];  // samples are cut between them alone
  }
  for (int64_t d = 1; d < rank; ++d) {
    if (piece[d] > whole[d]) return Malformed(spec, "a piece is larger than the whole");
  }
  for (const int64_t dim : cut) {
    const size_t operand = 2 + args.cuts;
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, operand, DType::kI64, {}));
    if (dim < 1 || dim >= rank) return Malformed(spec, "cut names no dimension behind the first");
    args.cut_strides[args.cuts++] = SizeOf(whole, dim + 1, rank);
  }
  if (runtime::NumElements(piece) > std::numeric_limits<uint32_t>::max()) {
    return Malformed(spec, "a sample has more than 2^32 elements");
  }
  FindRuns(piece, whole, args);
  ORIEL_ASSIGN_OR_RETURN(const double ratio, spec.Float("ratio"));
  if (!(ratio >= 0 && ratio < 1)) return Malformed(spec, "ratio is not in [0, 1)");
  ORIEL_ASSIGN_OR_RETURN(const int64_t site, spec.Int("site"));
  args.site = static_cast<uint64_t>(site);
  args.dropped_below = static_cast<uint32_t>(std::lround(ratio * (1 << 24)));
  args.scale = 1 / (1 - ratio);
  return args;
}

}  // namespace oriel::kernels
