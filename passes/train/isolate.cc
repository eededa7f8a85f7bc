#include "passes/train/isolate.h"

#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel {

bool isFreeToRecompute(Operation* op) {
  if (!isPure(op) || op->getNumRegions() != 0) return false;
  if (op->getNumOperands() == 0) return true;
  auto kernel = dyn_cast<ir::KernelOpInterface>(op);
  return kernel && kernel.isView();
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
