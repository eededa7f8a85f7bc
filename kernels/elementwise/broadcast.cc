#include "kernels/elementwise/broadcast.h"

#include "kernels/common/checks.h"

namespace oriel::kernels {

absl::StatusOr<BroadcastPlan> BroadcastPlan::Make(const KernelSpec& spec,
                                                  const std::vector<Shape>& operands,
                                                  const Shape& result) {
  const int64_t rank = static_cast<int64_t>(result.size());
  std::vector<int64_t> sizes;
  std::vector<Offsets> strides;
  // From the innermost dimension outwards, merging as we go.
  std::vector<int64_t> running(operands.size(), 1);
  for (int64_t d = rank - 1; d >= 0; --d) {
    Offsets stride{};
    for (size_t i = 0; i < operands.size(); ++i) {
      const Shape& shape = operands[i];
      const int64_t own = d - rank + static_cast<int64_t>(shape.size());
      const int64_t size = own < 0 ? 1 : shape[own];
      if (size != 1 && size != result[d]) {
        return Malformed(spec, runtime::ShapeToString(shape) + " does not broadcast to " +
                                   runtime::ShapeToString(result));
      }
      stride[i] = size == 1 ? 0 : running[i];
      running[i] *= size;
    }
    if (result[d] == 1) continue;
    bool merges = !sizes.empty();
    for (size_t i = 0; merges && i < operands.size(); ++i) {
      merges = stride[i] == strides.back()[i] * sizes.back();
    }
    if (merges) {
      sizes.back() *= result[d];
    } else {
      sizes.push_back(result[d]);
      strides.push_back(stride);
    }
  }
  for (const Shape& shape : operands) {
    if (static_cast<int64_t>(shape.size()) > rank) {
      return Malformed(spec, runtime::ShapeToString(shape) + " does not broadcast to " +
                                 runtime::ShapeToString(result));
    }
  }
  BroadcastPlan plan;
  if (!sizes.empty()) {
    plan.inner = sizes[0];
    for (size_t i = 0; i < operands.size(); ++i) plan.varies[i] = strides[0][i] != 0;
    plan.outer.assign(sizes.rbegin(), sizes.rend() - 1);
    plan.strides.assign(strides.rbegin(), strides.rend() - 1);
  }
  for (int64_t size : plan.outer) plan.rows *= size;
  if (plan.outer.size() > 16) return Unsupported(spec, "more than 16 dimensions");
  return plan;
}

}  // namespace oriel::kernels
