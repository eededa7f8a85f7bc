#include "kernels/attention/attention.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<AttentionShape> AttentionShape::MakeFrom(const KernelSpec& spec, size_t first,
                                                        size_t optional) {
  const TensorSpec& query = spec.operands[first];
  const TensorSpec& key = spec.operands[first + 1];
  const TensorSpec& value = spec.operands[first + 2];
  if (query.rank() != 4 || key.rank() != 4 || value.rank() != 4) {
    return Malformed(spec, "query, key and value need rank 4");
  }
  AttentionShape shape{};
  ORIEL_ASSIGN_OR_RETURN(shape.sequence_first, FlagOr(spec, "sequence_first", false));
  const int head = shape.sequence_first ? 2 : 1, row = 3 - head;
  shape.batch = query.shape[0];
  shape.heads = query.shape[head];
  shape.queries = query.shape[row];
  shape.depth = query.shape[3];
  shape.groups = key.shape[head];
  shape.keys = key.shape[row];
  shape.value_depth = value.shape[3];
  if (shape.groups == 0 || shape.heads % shape.groups != 0) {
    return Malformed(spec, "the key heads don't divide the query heads");
  }
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, first + 1, query.dtype,
                                     shape.OperandShape(shape.groups, shape.keys, shape.depth)));
  ORIEL_RETURN_IF_ERROR(
      CheckOperand(spec, first + 2, query.dtype,
                   shape.OperandShape(shape.groups, shape.keys, shape.value_depth)));
  ORIEL_ASSIGN_OR_RETURN(shape.scale, spec.Float("scale"));
  ORIEL_ASSIGN_OR_RETURN(shape.causal, FlagOr(spec, "causal", false));
  ORIEL_ASSIGN_OR_RETURN(shape.softcap, FloatOr(spec, "softcap", 0));
  ORIEL_ASSIGN_OR_RETURN(shape.window, IntOr(spec, "window", 0));
  if (shape.window < 0 || !(shape.softcap >= 0)) {
    return Malformed(spec, "a window or softcap below 0");
  }
  size_t next = optional;
  if (next < spec.operands.size() && spec.operands[next].rank() != 1) {
    shape.mask_operand = static_cast<int>(next);
    ORIEL_RETURN_IF_ERROR(shape.TakeMask(spec, spec.operands[next++], query.dtype));
  }
  if (next < spec.operands.size()) {
    shape.sink_operand = static_cast<int>(next);
    const DType dtype = spec.operands[next].dtype;
    shape.narrow_sink = dtype == DType::kBF16;
    if (dtype != query.dtype && dtype != ComputeDType(query.dtype)) {
      return Unsupported(spec, "the sink is not of the query's type");
    }
    ORIEL_RETURN_IF_ERROR(CheckOperand(spec, next++, dtype, {shape.heads}));
  }
  if (next < spec.operands.size()) return Malformed(spec, "a mask comes before a sink");
  return shape;
}

absl::Status AttentionShape::TakeMask(const KernelSpec& spec, const TensorSpec& given,
                                      DType dtype) {
  if (given.dtype == DType::kBool) {
    mask = Mask::kBool;
  } else if (given.dtype == DType::kBF16 && dtype == DType::kBF16) {
    mask = Mask::kBFloat16;
  } else if (given.dtype == ComputeDType(dtype)) {
    mask = Mask::kFloat;
  } else {
    return Unsupported(spec, "the mask is neither boolean nor of the query's type");
  }
  const Shape full = {batch, heads, queries, keys};
  if (given.rank() != 4) return Malformed(spec, "the mask needs rank 4");
  int64_t stride = 1;
  for (int d = 3; d >= 0; --d) {
    if (given.shape[d] != 1 && given.shape[d] != full[d]) {
      return Malformed(spec,
                       given.ToString() + " does not broadcast to " + runtime::ShapeToString(full));
    }
    mask_strides[d] = given.shape[d] == 1 ? 0 : stride;
    stride *= given.shape[d];
  }
  return absl::OkStatus();
}

absl::StatusOr<AttentionShape> AttentionShape::Make(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 3, 5, 2));
  ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, MakeFrom(spec, 0, 3));
  const DType dtype = spec.operands[0].dtype;
  ORIEL_RETURN_IF_ERROR(
      CheckResult(spec, 0, dtype, s.OperandShape(s.heads, s.queries, s.value_depth)));
  ORIEL_RETURN_IF_ERROR(CheckResult(spec, 1, ComputeDType(dtype), {s.batch, s.heads, s.queries}));
  return s;
}

absl::StatusOr<AttentionShape> AttentionShape::MakeGrad(const KernelSpec& spec) {
  ORIEL_RETURN_IF_ERROR(CheckArity(spec, 6, 8, 3));
  ORIEL_ASSIGN_OR_RETURN(const AttentionShape s, MakeFrom(spec, 1, 6));
  const DType dtype = spec.operands[1].dtype;
  const Shape output = s.OperandShape(s.heads, s.queries, s.value_depth);
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 0, dtype, output));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 4, dtype, output));
  ORIEL_RETURN_IF_ERROR(CheckOperand(spec, 5, ComputeDType(dtype), {s.batch, s.heads, s.queries}));
  for (size_t i = 0; i < 3; ++i) {
    ORIEL_RETURN_IF_ERROR(CheckResult(spec, i, dtype, spec.operands[i + 1].shape));
  }
  return s;
}

}  // namespace oriel::kernels
