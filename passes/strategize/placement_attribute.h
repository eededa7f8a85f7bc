// The places of a module's ranks, as the attribute `oriel.placement`; without it each rank has the
// device of its number.
#ifndef ORIEL_PASSES_STRATEGIZE_PLACEMENT_ATTRIBUTE_H_
#define ORIEL_PASSES_STRATEGIZE_PLACEMENT_ATTRIBUTE_H_

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/strategy/placement.h"

namespace oriel {

// {grids = 2, ranks = 4, block = 2}, as RankPlaces has them.
inline constexpr llvm::StringLiteral kPlacementAttr("oriel.placement");

// Nothing where each rank has the device of its number.
void setRankPlaces(mlir::ModuleOp module, const RankPlaces& places);
// Of the module that an op is in, or of one around that.
RankPlaces rankPlacesOf(mlir::Operation* op);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PLACEMENT_ATTRIBUTE_H_
