#include "passes/raise/dim_roles.h"

#include "ir/oriel/inference.h"

namespace oriel {

std::optional<DimRoles> movedRoles(llvm::ArrayRef<int64_t> from, const DimRoles& roles,
                                   llvm::ArrayRef<int64_t> to) {
  DimRoles moved(to.size(), kFeatureDim);
  for (auto [i, role] : llvm::enumerate(roles)) {
    if (role == kFeatureDim || from[i] == 1) continue;
    const int64_t before = ir::elementCount(from.take_front(i));
    bool found = false;
    for (size_t j = 0; j < to.size() && !found; ++j) {
      found = to[j] == from[i] && ir::elementCount(to.take_front(j)) == before;
      if (found) moved[j] = role;
    }
    if (!found) return std::nullopt;
  }
  return moved;
}

std::optional<DimRoles> rolesBefore(ir::ReshapeOp op, const DimRoles& roles) {
  return movedRoles(op.getType().getShape(), roles, shapeOf(op.getInput()));
}
std::optional<DimRoles> rolesBehind(ir::ReshapeOp op, const DimRoles& roles) {
  return movedRoles(shapeOf(op.getInput()), roles, op.getType().getShape());
}

DimRoles alignedRoles(const DimRoles& result, int64_t rank) {
  return DimRoles(result.end() - rank, result.end());
}

}  // namespace oriel
