#include "passes/train/parameters.h"

#include "passes/config/glob.h"
#include "passes/config/suggest.h"
#include "passes/train/autodiff.h"

using namespace mlir;

namespace oriel {
namespace {

// A table that the import does not take for a parameter, which the pattern matches; empty for none.
std::string matchingTable(ModuleOp module, const std::string& pattern) {
  auto tables = module->getAttrOfType<ArrayAttr>("oriel.tables");
  if (!tables) return "";
  for (auto name : tables.getAsRange<StringAttr>()) {
    if (matchesGlob(pattern, name.str())) return name.str();
  }
  return "";
}

// A pattern that matches nothing is a typo: what it was meant for would silently be trained,
// frozen or decayed. Tables are frozen anyway.
LogicalResult checkPatterns(ModuleOp module, StringRef key, ArrayRef<std::string> patterns,
                            const std::vector<std::string>& names) {
  for (const std::string& pattern : patterns) {
    if (llvm::any_of(names, [&](const std::string& name) { return matchesGlob(pattern, name); })) {
      continue;
    }
    const std::string table = matchingTable(module, pattern);
    if (!table.empty() && key == "parameters.frozen") continue;
    if (!table.empty()) {
      return module.emitError("the recipe's '")
             << key << "' pattern '" << pattern << "' matches no parameter but '" << table
             << "', which is a table by its use and values: it is not trained";
    }
    return module.emitError("the recipe's '")
           << key << "' pattern '" << pattern << "' matches no parameter"
           << (names.empty() ? ": the model has none; its weights must be initializers, of floats"
                             : suggestion(pattern, names));
  }
  return success();
}

// A group that comes behind a more general one, or is of frozen parameters.
void warnOfIdleGroups(ModuleOp module, const Recipe& recipe, ArrayRef<ir::ParameterOp> trainable) {
  for (auto [index, group] : llvm::enumerate(recipe.optimizer.groups)) {
    const bool decides = llvm::any_of(trainable, [&, &own = group](ir::ParameterOp parameter) {
      return recipe.groupOf(parameter.getOnnxName().str()) == &own;
    });
    if (decides) continue;
    module.emitWarning("the recipe's 'optimizer.groups[")
        << index
        << "]' decides for no parameter: all that match are frozen, or in a group before it";
  }
}

}  // namespace

FailureOr<SmallVector<ir::ParameterOp>> selectTrainable(ModuleOp module, const Recipe& recipe) {
  std::vector<std::string> names;
  for (auto parameter : module.getOps<ir::ParameterOp>()) {
    names.push_back(parameter.getOnnxName().str());
  }
  if (failed(checkPatterns(module, "parameters.trainable", recipe.trainable, names)) ||
      failed(checkPatterns(module, "parameters.frozen", recipe.frozen, names)) ||
      failed(checkPatterns(module, "optimizer.no_decay", recipe.optimizer.noDecay, names))) {
    return failure();
  }
  for (auto [index, rule] : llvm::enumerate(recipe.init.rules)) {
    std::string key = "init.rules[" + std::to_string(index) + "].match";
    if (failed(checkPatterns(module, key, rule.match, names))) return failure();
  }
  for (auto [index, group] : llvm::enumerate(recipe.optimizer.groups)) {
    std::string key = "optimizer.groups[" + std::to_string(index) + "].match";
    if (failed(checkPatterns(module, key, group.match, names))) return failure();
  }
  SmallVector<ir::ParameterOp> trainable;
  for (auto parameter : module.getOps<ir::ParameterOp>()) {
    bool selected =
        hasCotangent(parameter.getType()) && recipe.isTrainable(parameter.getOnnxName().str());
    parameter.setTrainable(selected);
    if (!selected) continue;
    Type element = parameter.getTensorType().getElementType();
    const bool mixed = recipe.precision.mixed;
    if (!element.isF32() && !(mixed && element.isBF16())) {
      return parameter.emitError("the parameter '")
             << parameter.getOnnxName() << "' is " << element << ", but the recipe's precision "
             << (mixed ? "bf16 trains f32 and bf16" : "f32 trains f32")
             << " parameters only: export the model in f32 (in PyTorch, module.float()), or freeze "
                "it";
    }
    trainable.push_back(parameter);
  }
  warnOfIdleGroups(module, recipe, trainable);
  if (trainable.empty()) {
    return module.emitError("the recipe leaves no parameter trainable: the model has ")
           << names.size() << ", and all are frozen";
  }
  return trainable;
}

}  // namespace oriel
