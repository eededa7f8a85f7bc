#include "passes/strategize/segment_values.h"

#include "ir/oriel/segment.h"
#include "mlir/IR/SymbolTable.h"

namespace oriel {

SegmentValues readValues(mlir::func::FuncOp segment) {
  SegmentValues values;
  mlir::SymbolTable symbols(segment->getParentOp());
  for (mlir::BlockArgument argument : segment.getArguments()) {
    mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
    if (failed(role)) continue;
    const bool isStash = role->kind == ir::ValueKind::kStash;
    const bool isParameter = role->kind == ir::ValueKind::kParameter;
    if (isStash || role->kind == ir::ValueKind::kInput) values.fromInputs.insert(argument);
    if (isStash || isParameter) values.fromParameters.insert(argument);
    if (!isParameter) continue;
    if (auto parameter = symbols.lookup<ir::ParameterOp>(role->ref)) {
      values.parameters[argument] = parameter;
    }
  }
  for (mlir::Operation& op : segment.getBody().front()) {
    const bool isReceived = llvm::isa<ir::ReceiveOp>(op);
    for (llvm::DenseSet<mlir::Value>* set : {&values.fromInputs, &values.fromParameters}) {
      auto isIn = [&](mlir::Value operand) { return set->contains(operand); };
      if (isReceived || llvm::any_of(op.getOperands(), isIn)) {
        set->insert(op.result_begin(), op.result_end());
      }
    }
  }
  return values;
}

}  // namespace oriel
