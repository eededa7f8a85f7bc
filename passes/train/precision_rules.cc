#include "passes/train/precision_rules.h"

#include "passes/config/glob.h"
#include "passes/config/suggest.h"

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
  for (size_t i = 0; i < precision_.ops.size(); ++i) {
    const std::string& pattern = precision_.ops[i].match;
    std::vector<std::string> matched;
    llvm::copy_if(names, std::back_inserter(matched),
                  [&](const std::string& name) { return matchesGlob(pattern, name); });
    if (matched.empty()) {
      return module.emitError("the recipe's 'precision.ops' pattern '")
             << pattern << "' matches no op with a derivative" << suggestion(pattern, names);
    }
    Recipe::Precision other = precision_;
    other.ops[i].narrow = !other.ops[i].narrow;
    if (llvm::none_of(matched, [&](const std::string& name) {
          return other.isNarrow(name) != precision_.isNarrow(name);
        })) {
      return module.emitError("the recipe's 'precision.ops' pattern '")
             << pattern << "' decides for no op: names come before patterns, and these in their "
             << "order; put the narrower one first";
    }
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
