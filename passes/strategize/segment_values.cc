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
    if (role->kind == ir::ValueKind::kInput || role->kind == ir::ValueKind::kStash)
      values.fromInputs.insert(argument);
    if (role->kind != ir::ValueKind::kParameter) continue;
    if (auto parameter = symbols.lookup<ir::ParameterOp>(role->ref)) {
      values.parameters[argument] = parameter;
    }
  }
  for (mlir::Operation& op : segment.getBody().front()) {
    if (llvm::isa<ir::ReceiveOp>(op) || llvm::any_of(op.getOperands(), [&](mlir::Value v) {
          return values.fromInputs.contains(v);
        })) {
      values.fromInputs.insert(op.result_begin(), op.result_end());
    }
  }
  return values;
}

}  // namespace oriel
