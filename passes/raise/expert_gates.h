// Gates of a mixture of experts: what each row weighs each expert with, zero for all that it does
// not choose.
#ifndef ORIEL_PASSES_RAISE_EXPERT_GATES_H_
#define ORIEL_PASSES_RAISE_EXPERT_GATES_H_

#include <optional>

#include "passes/raise/match.h"

namespace oriel {

// What a dimension of a tensor in a mixture of experts is: the number of a dimension of the rows
// (batch, position), the experts, or anything else.
inline constexpr int kExpertDim = -1, kFeatureDim = -2;
using DimRoles = llvm::SmallVector<int>;

// Σ_j weight[r.., j] [choice[r.., j] = e], where the choices of a row are the largest of all
// experts' scores, none twice.
struct ExpertGates {
  mlir::Value value;
  DimRoles roles;
  llvm::SmallVector<int64_t> rows;  // sizes of r..
  int64_t choices = 0;              // of a row
  int64_t experts = 0;
  // What has the elements [r.., k] in order, of type i64, and of floats; no weight: 1.
  mlir::Value choice, weight;
};

// The value as gates: a sum over choices of one-hot rows, or weights that are scattered to the
// choices' places.
std::optional<ExpertGates> matchExpertGates(mlir::Value value);
// Gates, of which `value` has these roles, behind a reshape of it that merges rows or splits them.
std::optional<ExpertGates> regroupRows(const ExpertGates& gates, const DimRoles& roles,
                                       ir::ReshapeOp reshape);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_EXPERT_GATES_H_
