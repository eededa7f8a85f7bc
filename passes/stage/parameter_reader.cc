#include "passes/stage/parameter_reader.h"

#include "passes/strategize/segment_values.h"

namespace oriel {

ParameterReader::ParameterReader(mlir::func::FuncOp main, const ModelParts& model) {
  const SegmentValues values = readValues(main);
  for (auto [value, parameter] : values.parameters) parametersOf_[value].insert(parameter);
  for (mlir::Operation& op : main.getBody().front()) {
    if (model.blockOf.contains(&op)) continue;
    llvm::SmallSetVector<ir::ParameterOp, 1> parameters;
    for (mlir::Value operand : op.getOperands()) {
      const llvm::ArrayRef<ir::ParameterOp> ofOperand = read(operand);
      parameters.insert(ofOperand.begin(), ofOperand.end());
    }
    if (parameters.empty()) continue;
    for (mlir::Value result : op.getResults()) {
      if (!values.fromInputs.contains(result)) parametersOf_[result] = parameters;
    }
  }
}

llvm::ArrayRef<ir::ParameterOp> ParameterReader::read(mlir::Value value) const {
  const auto found = parametersOf_.find(value);
  if (found == parametersOf_.end()) return {};
  return found->second.getArrayRef();
}

}  // namespace oriel
