#include "passes/train/precision_rules.h"

#include "passes/train/suggest.h"

namespace oriel {

using mlir::LogicalResult;
using mlir::success;

LogicalResult PrecisionRules::check(mlir::ModuleOp module) const {
  std::vector<std::string> names;
  for (mlir::RegisteredOperationName op : module.getContext()->getRegisteredOperations()) {
    if (op.hasInterface<ir::PrecisionOpInterface>() &&
        op.hasInterface<ir::DifferentiableOpInterface>()) {
      names.push_back(ir::shortName(op).str());
    }
  }
  for (const Recipe::Precision::OpRule& rule : precision_.ops) {
    if (llvm::any_of(names,
                     [&](const std::string& name) { return matchesGlob(rule.match, name); })) {
      continue;
    }
    return module.emitError("the recipe's 'precision.ops' pattern '")
           << rule.match << "' matches no op with a derivative" << suggestion(rule.match, names);
  }
  return success();
}

ir::Precision PrecisionRules::of(mlir::Operation* op) const {
  auto precise = llvm::dyn_cast<ir::PrecisionOpInterface>(op);
  if (!precise) return ir::Precision::kWide;
  if (std::optional<bool> narrow = precision_.isNarrow(ir::shortName(op->getName()).str())) {
    return *narrow ? ir::Precision::kNarrow : ir::Precision::kWide;
  }
  return precise.getPrecision();
}

}  // namespace oriel
