#include "passes/simulate/fold_blocks.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/config/glob.h"
#include "passes/stage/parameter_reader.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

template <typename T>
int64_t indexOf(const T* element, const std::vector<T>& all) {
  return element ? element - all.data() : -1;
}

// What recipe and strategy say of a parameter.
std::string treatmentOf(ir::ParameterOp parameter, const Recipe& recipe, const Strategy& strategy) {
  const std::string name = parameter.getOnnxName().str();
  return absl::StrCat(recipe.isTrainable(name), ",", recipe.learningRateOf(name), ",",
                      recipe.weightDecayOf(name), ",",
                      indexOf(moduleOf(strategy, name), strategy.modules), ",",
                      indexOf(shardingOf(strategy, name), strategy.shardings), ";");
}

std::vector<Operation*> unconverted(std::vector<Operation*> ops) {
  llvm::erase_if(ops, isConversion);
  return ops;
}

void eraseDeadOps(mlir::Block& block) {
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(block))) {
    if (mlir::isOpTriviallyDead(&op)) op.erase();
  }
}

// Arguments that stand for a parameter and that nobody reads, with the parameter.
void eraseUnreadParameters(mlir::func::FuncOp main) {
  const SegmentValues values = readValues(main);
  llvm::BitVector unread(main.getNumArguments());
  for (mlir::BlockArgument argument : main.getArguments()) {
    auto parameter = values.parameters.find(argument);
    if (parameter == values.parameters.end() || !argument.use_empty()) continue;
    unread.set(argument.getArgNumber());
    ir::ParameterOp(parameter->second).erase();
  }
  (void)main.eraseArguments(unread);
}

std::vector<std::string> namesOf(mlir::ModuleOp module, const std::vector<std::string>& patterns) {
  std::vector<std::string> names;
  for (auto parameter : module.getOps<ir::ParameterOp>()) {
    std::string name = parameter.getOnnxName().str();
    if (llvm::any_of(patterns, [&](const std::string& p) { return matchesGlob(p, name); })) {
      names.push_back(std::move(name));
    }
  }
  return names;
}

// `value` in the element type of `like`, which has the same shape.
Value inPrecisionOf(Value like, Value value) {
  if (like.getType() == value.getType()) return value;
  mlir::OpBuilder builder(like.getContext());
  builder.setInsertionPointAfterValue(value);
  return ir::CastOp::create(builder, value.getLoc(), like.getType(), value);
}

// Of a model with blocks.
ParameterReader readerOf(const ModelParts& model) {
  return {model.blockOps.front().front()->getParentOfType<mlir::func::FuncOp>(), model};
}

}  // namespace

std::vector<int> blockKinds(const ModelParts& model, const Recipe& recipe,
                            const Strategy& strategy) {
  std::vector<int> kinds;
  if (model.blockOps.empty()) return kinds;
  const ParameterReader reader = readerOf(model);
  std::map<std::pair<std::vector<uintptr_t>, std::string>, int> known;
  for (auto [block, ops] : llvm::enumerate(model.blockOps)) {
    std::vector<uintptr_t> attributes = {static_cast<uintptr_t>(model.towerOf[block])};
    std::string treatment;
    for (Operation* op : ops) {
      // Conversions may differ from block to block, other ops in attributes and precision alone.
      auto add = [&](const void* part) { attributes.push_back(reinterpret_cast<uintptr_t>(part)); };
      add(op->getName().getAsOpaquePointer());
      for (mlir::Type type : op->getResultTypes()) add(type.getAsOpaquePointer());
      add(op->getAttrDictionary().getAsOpaquePointer());
      for (Value operand : op->getOperands()) {
        for (ir::ParameterOp parameter : reader.read(operand)) {
          treatment += treatmentOf(parameter, recipe, strategy);
        }
      }
    }
    kinds.push_back(known
                        .try_emplace({std::move(attributes), std::move(treatment)},
                                     static_cast<int>(known.size()))
                        .first->second);
  }
  return kinds;
}

std::vector<double> blockParameters(const ModelParts& model, const Recipe& recipe) {
  std::vector<double> parameters;
  if (model.blockOps.empty()) return parameters;
  const ParameterReader reader = readerOf(model);
  for (const std::vector<Operation*>& ops : model.blockOps) {
    std::set<Operation*> known;
    double all = 0, trained = 0;
    for (Operation* op : ops) {
      for (Value operand : op->getOperands()) {
        for (ir::ParameterOp parameter : reader.read(operand)) {
          if (!known.insert(parameter).second) continue;
          const auto elements = static_cast<double>(parameter.getTensorType().getNumElements());
          all += elements;
          if (recipe.isTrainable(parameter.getOnnxName().str())) trained += elements;
        }
      }
    }
    parameters.push_back(trained > 0 ? trained : all);
  }
  return parameters;
}

void dropBlocks(mlir::func::FuncOp main, const ModelParts& model,
                const std::set<int64_t>& dropped) {
  std::map<int, int64_t> last;  // that stays, by tower
  for (auto [block, ops] : llvm::enumerate(model.blockOps)) {
    const int tower = model.towerOf[block];
    if (dropped.count(static_cast<int64_t>(block)) == 0) {
      last[tower] = static_cast<int64_t>(block);
      continue;
    }
    // Its conversions stay where something outside reads them.
    for (auto [op, kept] :
         llvm::zip_equal(unconverted(ops), unconverted(model.blockOps[last.at(tower)]))) {
      for (auto [gone, result] : llvm::zip_equal(op->getResults(), kept->getResults())) {
        gone.replaceAllUsesWith(inPrecisionOf(gone, result));
      }
    }
  }
  mlir::Block& body = main.getBody().front();
  // What reads a block now may stand in front of it: layers need not follow each other.
  mlir::sortTopologically(&body);
  eraseDeadOps(body);
  eraseUnreadParameters(main);
}

Recipe withNamesOf(mlir::ModuleOp module, Recipe recipe) {
  std::vector<std::string> trainable;
  for (const std::string& name : namesOf(module, recipe.trainable)) {
    if (recipe.isTrainable(name)) trainable.push_back(name);
  }
  recipe.trainable = std::move(trainable);
  recipe.frozen.clear();
  recipe.optimizer.noDecay = namesOf(module, recipe.optimizer.noDecay);
  for (Recipe::OptimizerGroup& group : recipe.optimizer.groups) {
    group.match = namesOf(module, group.match);
  }
  recipe.init.rules.clear();
  return recipe;
}

Strategy withNamesOf(mlir::ModuleOp module, Strategy strategy) {
  for (Strategy::Module& own : strategy.modules) own.parameters = namesOf(module, own.parameters);
  for (Strategy::Sharding& sharding : strategy.shardings) {
    sharding.parameters = namesOf(module, sharding.parameters);
  }
  llvm::erase_if(strategy.shardings, [](const auto& own) { return own.parameters.empty(); });
  return strategy;
}

}  // namespace oriel
