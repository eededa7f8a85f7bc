#include "kernels/shape/shape.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "runtime/base/float16.h"

namespace oriel::kernels {

uint64_t ElementBits(DType dtype, double value) {
  switch (dtype) {
    case DType::kF64:
      return __builtin_bit_cast(uint64_t, value);
    case DType::kF32:
      return __builtin_bit_cast(uint32_t, static_cast<float>(value));
    case DType::kF16:
      return runtime::FloatToHalf(static_cast<float>(value));
    case DType::kBF16:
      return runtime::FloatToBFloat16(static_cast<float>(value));
    case DType::kBool:
      return value != 0;
    default:
      // Two's complement: the low bytes are right for every width.
      return static_cast<uint64_t>(static_cast<int64_t>(value));
  }
}

std::vector<int64_t> RowMajorStrides(const std::vector<int64_t>& shape) {
  std::vector<int64_t> strides(shape.size());
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = stride;
    stride *= shape[i];
  }
  return strides;
}

std::vector<StridedCopy::Dim> StridedCopy::Merge(std::vector<Dim> dims) {
  dims.erase(std::remove_if(dims.begin(), dims.end(), [](const Dim& d) { return d.size == 1; }),
             dims.end());
  // In the order of the target's memory, so that writes are sequential.
  std::stable_sort(dims.begin(), dims.end(),
                   [](const Dim& a, const Dim& b) { return a.target > b.target; });
  std::vector<Dim> merged;
  for (const Dim& dim : dims) {
    if (!merged.empty() && merged.back().source == dim.source * dim.size &&
        merged.back().target == dim.target * dim.size) {
      merged.back() = {merged.back().size * dim.size, dim.source, dim.target};
    } else {
      merged.push_back(dim);
    }
  }
  return merged;
}

absl::StatusOr<IotaShape> IotaShape::Make(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 0, 1));
  const TensorSpec& result = spec.results[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", result.rank()));
  return IotaShape{SizeOf(result.shape, 0, dim), result.shape[dim],
                   SizeOf(result.shape, dim + 1, result.rank())};
}

absl::Status CheckReshape(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  if (spec.operands[0].dtype != spec.results[0].dtype ||
      spec.operands[0].bytes() != spec.results[0].bytes()) {
    return Malformed(spec, "operand and result differ in type or number of elements");
  }
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> FillBits(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 0, 1));
  ORIEL_ASSIGN_OR_RETURN(const double value, spec.Float("value"));
  return ElementBits(spec.results[0].dtype, value);
}

absl::StatusOr<uint64_t> PadBits(const KernelSpec& spec) {
  ORIEL_ASSIGN_OR_RETURN(const double value, FloatOr(spec, "value", 0));
  return ElementBits(spec.results[0].dtype, value);
}

namespace {

using Dims = std::vector<StridedCopy::Dim>;

// The checks that the copying kernels share: one result, the first operand's type, few dimensions.
absl::Status CheckCopy(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 1, 1));
  if (spec.operands[0].dtype != spec.results[0].dtype) {
    return Malformed(spec, "operand and result differ in type");
  }
  if (spec.results[0].rank() > 16) return Unsupported(spec, "more than 16 dimensions");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CopyBox> TransposeBox(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> permutation, spec.Ints("permutation"));
  std::vector<bool> seen(input.rank(), false);
  Shape expected;
  for (int64_t dim : permutation) {
    if (dim < 0 || dim >= input.rank() || seen[dim]) return Malformed(spec, "no permutation");
    seen[dim] = true;
    expected.push_back(input.shape[dim]);
  }
  if (static_cast<int64_t>(expected.size()) != input.rank())
    return Malformed(spec, "no permutation");
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, input.dtype, expected));
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(expected);
  Dims dims;
  for (size_t i = 0; i < permutation.size(); ++i) {
    dims.push_back({expected[i], source[permutation[i]], target[i]});
  }
  return CopyBox{dims, 0, 0};
}

absl::StatusOr<CopyBox> BroadcastBox(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  const TensorSpec& result = spec.results[0];
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(result.shape);
  const int64_t added = result.rank() - input.rank();
  if (added < 0) return Malformed(spec, "the result has a lower rank");
  Dims dims;
  for (int64_t i = 0; i < result.rank(); ++i) {
    const int64_t size = i < added ? 1 : input.shape[i - added];
    if (size != 1 && size != result.shape[i]) {
      return Malformed(
          spec, absl::StrCat(input.ToString(), " does not broadcast to ", result.ToString()));
    }
    dims.push_back({result.shape[i], size == 1 ? 0 : source[i - added], target[i]});
  }
  return CopyBox{dims, 0, 0};
}

absl::StatusOr<CopyBox> SliceBox(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> starts, spec.Ints("starts"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> limits, spec.Ints("limits"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, spec.Ints("strides"));
  const size_t rank = input.shape.size();
  if (starts.size() != rank || limits.size() != rank || strides.size() != rank) {
    return Malformed(spec, "starts, limits and strides need one entry per dimension");
  }
  Shape expected;
  for (size_t i = 0; i < rank; ++i) {
    if (starts[i] < 0 || starts[i] > limits[i] || limits[i] > input.shape[i] || strides[i] < 1) {
      return Malformed(spec, absl::StrCat("the box leaves the input in dimension ", i));
    }
    expected.push_back((limits[i] - starts[i] + strides[i] - 1) / strides[i]);
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, input.dtype, expected));
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(expected);
  Dims dims;
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    offset += starts[i] * source[i];
    dims.push_back({expected[i], source[i] * strides[i], target[i]});
  }
  return CopyBox{dims, offset, 0};
}

absl::StatusOr<CopyBox> PadBox(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckCopy(spec));
  const TensorSpec& input = spec.operands[0];
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> low, spec.Ints("low"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> high, spec.Ints("high"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> interior, spec.Ints("interior"));
  const size_t rank = input.shape.size();
  if (low.size() != rank || high.size() != rank || interior.size() != rank ||
      spec.results[0].shape.size() != rank) {
    return Malformed(spec, "low, high, interior and the result need one entry per dimension");
  }
  Shape expected;
  for (size_t i = 0; i < rank; ++i) {
    if (low[i] < 0 || high[i] < 0 || interior[i] < 0) return Malformed(spec, "negative padding");
    const int64_t gaps = input.shape[i] > 0 ? input.shape[i] - 1 : 0;
    // Before the sum below, which must not overflow.
    const int64_t limit = spec.results[0].shape[i];
    if (low[i] > limit || high[i] > limit || (gaps > 0 && interior[i] > limit / gaps)) {
      return Malformed(spec, absl::StrCat("dimension ", i, " of the result has no room"));
    }
    expected.push_back(low[i] + input.shape[i] + gaps * interior[i] + high[i]);
  }
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 0, input.dtype, expected));
  const std::vector<int64_t> source = RowMajorStrides(input.shape);
  const std::vector<int64_t> target = RowMajorStrides(expected);
  Dims dims;
  int64_t offset = 0;
  for (size_t i = 0; i < rank; ++i) {
    offset += low[i] * target[i];
    dims.push_back({input.shape[i], source[i], target[i] * (interior[i] + 1)});
  }
  return CopyBox{dims, 0, offset};
}

absl::StatusOr<std::vector<CopyBox>> ConcatBoxes(const KernelSpec& spec) {
  if (spec.operands.empty() || spec.results.size() != 1) {
    return Malformed(spec, "needs an operand and one result");
  }
  const TensorSpec& result = spec.results[0];
  ORIEL_ASSIGN_OR_RETURN(const int64_t dim, DimAttribute(spec, "dim", result.rank()));
  const int64_t inner = SizeOf(result.shape, dim + 1, result.rank());
  const int64_t outer = SizeOf(result.shape, 0, dim);
  std::vector<CopyBox> boxes;
  int64_t place = 0;
  for (size_t i = 0; i < spec.operands.size(); ++i) {
    if (spec.operands[i].rank() != result.rank()) return Malformed(spec, "operands differ in rank");
    const int64_t size = spec.operands[i].shape[dim];
    Shape expected = result.shape;
    expected[dim] = size;
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, result.dtype, expected));
    const Dims dims = {{outer, size * inner, result.shape[dim] * inner}, {size * inner, 1, 1}};
    boxes.push_back({dims, 0, place * inner});
    place += size;
  }
  if (place != result.shape[dim]) return Malformed(spec, "sizes don't add up to the result's");
  return boxes;
}

}  // namespace oriel::kernels
