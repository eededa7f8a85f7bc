#include "passes/train/isolate.h"

#include "ir/interfaces/view.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel {

bool isFreeToRecompute(Operation* op) {
  if (!isPure(op) || op->getNumRegions() != 0) return false;
  if (op->getNumOperands() == 0 || ir::isView(op)) return true;
  // Only a conversion has other elements in the places of its one operand's.
  return op->hasTrait<ir::Pointwise>() && op->getNumOperands() == 1 && op->getNumResults() == 1 &&
         ir::typeBytes(op->getOperand(0).getType()) < ir::typeBytes(op->getResult(0).getType());
}

void isolateBlock(Block& block, llvm::function_ref<Value(Value)> import) {
  IRMapping inside;
  std::function<Value(Value, OpBuilder&)> bring = [&](Value value, OpBuilder& builder) {
    if (Value known = inside.lookupOrNull(value)) return known;
    Operation* producer = value.getDefiningOp();
    if (producer && isFreeToRecompute(producer)) {
      for (Value operand : producer->getOperands()) bring(operand, builder);
      builder.clone(*producer, inside);  // maps the results
    } else {
      inside.map(value, import(value));
    }
    return inside.lookup(value);
  };
  for (Operation& op : llvm::make_early_inc_range(block)) {
    for (OpOperand& operand : op.getOpOperands()) {
      if (operand.get().getParentBlock() == &block) continue;
      OpBuilder builder(&op);
      operand.set(bring(operand.get(), builder));
    }
  }
}

void eraseDeadOps(Block& block, ValueRange kept) {
  SmallPtrSet<Operation*, 16> live;
  for (Value value : kept) live.insert(value.getDefiningOp());
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (isOpTriviallyDead(&op) && !live.contains(&op)) op.erase();
  }
}

}  // namespace oriel
