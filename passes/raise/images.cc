#include "passes/raise/images.h"

#include "ir/oriel/segment.h"
#include "passes/config/suggest.h"

namespace oriel {

using mlir::failure;
using mlir::Value;

llvm::SmallPtrSet<Value, 8> argumentsBehind(llvm::ArrayRef<Value> roots) {
  llvm::SmallPtrSet<Value, 8> arguments;
  llvm::SmallPtrSet<Value, 32> seen;
  llvm::SmallVector<Value> work(roots);
  while (!work.empty()) {
    Value value = work.pop_back_val();
    if (!seen.insert(value).second) continue;
    mlir::Operation* op = value.getDefiningOp();
    if (!op) {
      arguments.insert(value);
    } else if (auto merge = llvm::dyn_cast<ir::MergeFeaturesOp>(op)) {
      work.push_back(merge.getInput());
      work.push_back(merge.getMask());
    } else {
      work.append(op->operand_begin(), op->operand_end());
    }
  }
  return arguments;
}

mlir::LogicalResult checkImages(mlir::func::FuncOp function, llvm::ArrayRef<std::string> inputs,
                                llvm::ArrayRef<llvm::ArrayRef<int64_t>> numbers) {
  for (llvm::ArrayRef<int64_t> list : numbers) {
    if (list.size() == inputs.size() && llvm::all_of(list, [](int64_t n) { return n >= 1; })) {
      continue;
    }
    return function.emitError("images of ")
           << inputs.size() << " inputs need as many numbers, of at least 1";
  }
  if (inputs.empty() || (inputs.size() == 1 && inputs.front() == kAnyInput)) {
    return mlir::success();
  }
  mlir::FailureOr<std::vector<std::string>> known = ir::inputNames(function);
  if (failed(known)) return failure();
  for (const std::string& input : inputs) {
    if (llvm::is_contained(*known, input)) continue;
    return function.emitError("the recipe's `images` names the input '")
           << input << "', which the model doesn't have" << suggestion(input, *known);
  }
  return mlir::success();
}

mlir::FailureOr<std::optional<size_t>> imagesOf(mlir::Operation* merge, Value features,
                                                llvm::ArrayRef<std::string> inputs) {
  std::optional<size_t> found;
  if (inputs.empty()) return found;
  if (inputs.size() == 1 && inputs.front() == kAnyInput) {
    found = 0;
    return found;
  }
  auto function = merge->getParentOfType<mlir::func::FuncOp>();
  llvm::SmallPtrSet<Value, 8> behind = argumentsBehind(features);
  for (mlir::BlockArgument argument : function.getArguments()) {
    if (!behind.contains(argument)) continue;
    mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(function, argument.getArgNumber());
    if (failed(role)) return failure();
    if (role->kind != ir::ValueKind::kInput) continue;
    const auto* input = llvm::find(inputs, role->ref);
    if (input == inputs.end()) continue;
    if (found) {
      return merge->emitError("the features that this merge puts into the text come from '")
             << inputs[*found] << "' and from '" << *input
             << "', which the recipe's `images` declares to hold images of different kinds; "
                "declare one of them only";
    }
    found = input - inputs.begin();
  }
  return found;
}

}  // namespace oriel
