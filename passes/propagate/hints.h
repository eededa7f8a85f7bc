// What values of a segment are to become, where ops behind them say so.
#ifndef ORIEL_PASSES_PROPAGATE_HINTS_H_
#define ORIEL_PASSES_PROPAGATE_HINTS_H_

#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/propagate/modules.h"
#include "passes/strategize/sharding.h"

namespace oriel {

using ShardingOfValue = llvm::DenseMap<mlir::Value, Sharding>;

// Of values and of what they are made of by ops that keep all elements.
struct Hints {
  // The gradient of a parameter becomes what is used of the parameter.
  ShardingOfValue becomes;
  // What the host reads in pieces can be cut by rows over the axes of tensor parallelism: an op
  // that needs all columns (logits cut off a padded vocabulary) need not gather them on each rank.
  ShardingOfValue rows;
};

mlir::FailureOr<Hints> findHints(mlir::func::FuncOp segment, const ModuleMap& modules,
                                 const AxisSizes& sizes);

// Whether the host joins the pieces that ranks have, however a value is cut: of numbers, that it
// writes to a file. It looks at its own samples' predictions.
bool isReadInPieces(const ir::ValueRole& role, mlir::Value value);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_HINTS_H_
