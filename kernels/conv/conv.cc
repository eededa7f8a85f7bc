#include "kernels/conv/conv.h"

#include "absl/strings/str_cat.h"
#include "kernels/common/checks.h"
#include "kernels/linear/gemm.h"

namespace oriel::kernels {

absl::StatusOr<ConvShape> ConvShape::Make(const KernelSpec& spec, const TensorSpec& input,
                                          const TensorSpec& weight, const TensorSpec& output) {
  const int64_t spatial = input.rank() - 2;
  if (spatial < 1 || spatial > kSpatial) {
    return Unsupported(spec, absl::StrCat("takes one to three spatial dimensions, not ", spatial));
  }
  if (weight.rank() != input.rank() || output.rank() != input.rank()) {
    return Malformed(spec, "input, weight and output differ in rank");
  }
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> strides, spec.Ints("strides"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> pads, spec.Ints("pads"));
  ORIEL_ASSIGN_OR_RETURN(const std::vector<int64_t> dilations, spec.Ints("dilations"));
  ConvShape shape{};
  shape.group = 1;
  if (spec.attributes.count("group") != 0) {
    ORIEL_ASSIGN_OR_RETURN(shape.group, spec.Int("group"));
  }
  const size_t dims = static_cast<size_t>(spatial);
  if (strides.size() != dims || pads.size() != 2 * dims || dilations.size() != dims) {
    return Malformed(spec, "strides, pads or dilations don't fit the spatial dimensions");
  }
  shape.batch = input.shape[0];
  shape.channels = input.shape[1];
  shape.outputs = weight.shape[0];
  if (shape.group < 1 || shape.channels % shape.group != 0 || shape.outputs % shape.group != 0 ||
      weight.shape[1] != shape.channels / shape.group) {
    return Malformed(spec, "the channels don't fit the group");
  }
  shape.input = shape.kernel = shape.output = shape.strides = shape.dilations = {1, 1, 1};
  for (int64_t i = 0; i < spatial; ++i) {
    const int64_t d = kSpatial - spatial + i;
    shape.input[d] = input.shape[2 + i];
    shape.kernel[d] = weight.shape[2 + i];
    shape.output[d] = output.shape[2 + i];
    shape.strides[d] = strides[i];
    shape.lows[d] = pads[i];
    shape.dilations[d] = dilations[i];
    if (strides[i] < 1 || dilations[i] < 1 || pads[i] < 0 || pads[dims + i] < 0) {
      return Malformed(spec, "a stride or dilation is below 1, or a pad below 0");
    }
    const int64_t room =
        shape.input[d] + pads[i] + pads[dims + i] - ((shape.kernel[d] - 1) * dilations[i] + 1);
    const int64_t fits = room < 0 ? 0 : room / strides[i] + 1;
    if (fits != shape.output[d]) {
      return Malformed(spec, absl::StrCat("spatial dimension ", i, " of the output is ",
                                          shape.output[d], ", expected ", fits));
    }
  }
  if (output.shape[0] != shape.batch || output.shape[1] != shape.outputs) {
    return Malformed(spec, "the output's batch or channels don't fit");
  }
  return shape;
}

absl::Status CheckConvTypes(const KernelSpec& spec) {
  const DType dtype = spec.operands[0].dtype;
  for (size_t i = 1; i < spec.operands.size(); ++i) {
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, i, dtype, spec.operands[i].shape));
  }
  const TensorSpec& result = spec.results[0];
  return CheckResult(spec, 0, SumType(dtype, result.dtype), result.shape);
}

absl::Status CheckDepthwise(const KernelSpec& spec, const ConvShape& shape) {
  if (shape.group_channels() == 1 && shape.group_outputs() == 1) return CheckConvTypes(spec);
  return Unsupported(spec, "depthwise: channels are joined");
}

}  // namespace oriel::kernels
