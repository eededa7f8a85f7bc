// What the dimensions of a tensor are to an analysis that follows values through reshapes.
#ifndef ORIEL_PASSES_RAISE_DIM_ROLES_H_
#define ORIEL_PASSES_RAISE_DIM_ROLES_H_

#include "passes/raise/match.h"

namespace oriel {

// The role of each dimension: a number of the analysis's own, or kFeatureDim for what it does not
// tell apart.
using DimRoles = llvm::SmallVector<int>;
inline constexpr int kFeatureDim = -3;

// Roles before a reshape of those behind it, and the other way round; nothing where a dimension
// with a role is split or merged. Other dimensions are features.
std::optional<DimRoles> rolesBefore(ir::ReshapeOp op, const DimRoles& roles);
std::optional<DimRoles> rolesBehind(ir::ReshapeOp op, const DimRoles& roles);
// Roles of an operand that is aligned at the result's last dimension.
DimRoles alignedRoles(const DimRoles& result, int64_t rank);
// Roles of dimensions of sizes `to`, of those of `from` that are the same dimension: as many
// elements are before them.
std::optional<DimRoles> movedRoles(llvm::ArrayRef<int64_t> from, const DimRoles& roles,
                                   llvm::ArrayRef<int64_t> to);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_DIM_ROLES_H_
