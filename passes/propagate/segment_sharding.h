// How the arguments of segments are kept and used, by their roles.
#ifndef ORIEL_PASSES_PROPAGATE_SEGMENT_SHARDING_H_
#define ORIEL_PASSES_PROPAGATE_SEGMENT_SHARDING_H_

#include <optional>

#include "ir/oriel/segment.h"
#include "mlir/IR/SymbolTable.h"
#include "passes/strategize/sharding.h"

namespace oriel {

// The update works on what is stored, the other segments use the parameters.
// Sums over the microbatches, that the update completes.
bool isSum(const ir::ValueRole& role);

// What the names in a segment mean, for parameterOf() and viewOf().
inline mlir::SymbolTable symbolsOf(mlir::func::FuncOp segment) {
  return mlir::SymbolTable(segment->getParentOp());
}
// The parameter that a role names. Fails with a diagnostic at the segment.
mlir::FailureOr<ir::ParameterOp> parameterOf(const mlir::SymbolTable& symbols,
                                             mlir::func::FuncOp segment, const ir::ValueRole& role);
// The sharding that a parameter's attribute gives (use, storage, ..), replicated for none. Fails
// with a diagnostic if the attribute does not fit the grid or the parameter.
mlir::FailureOr<Sharding> shardingOf(ir::ParameterOp parameter,
                                     std::optional<ir::ShardingAttr> attribute,
                                     const AxisSizes& sizes);

// The sharding in which the segment uses an argument, where that is not the one in which it is
// kept: a parameter is brought from its storage to its use; in the update, gradients to the
// sharding of the optimizer state, and other sums to their totals.
mlir::FailureOr<std::optional<Sharding>> viewOf(const mlir::SymbolTable& symbols,
                                                mlir::func::FuncOp segment,
                                                mlir::BlockArgument argument,
                                                const ir::ValueRole& role, const AxisSizes& sizes);

// The sharding in which a result is made, to be returned in this one: zeros need no rank to be
// the summand of pending sums. Fails with a diagnostic where the value can't become that.
mlir::FailureOr<Sharding> madeFor(mlir::Value result, const Sharding& from, const Sharding& to);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_SEGMENT_SHARDING_H_
