#include "passes/divide/output_layer.h"

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::OpOperand;
using mlir::RankedTensorType;
using mlir::Value;

std::optional<OutputLayer> outputLayerOf(Value logits) {
  OutputLayer layer;
  Value value = logits;
  for (Operation* op = value.getDefiningOp(); op && !llvm::isa<ir::LinearOp>(op);
       op = value.getDefiningOp()) {
    OpOperand* operand = classesOf(op);
    if (!operand) return std::nullopt;
    layer.behind.insert(layer.behind.begin(), op);
    value = operand->get();
  }
  layer.linear = value.getDefiningOp<ir::LinearOp>();
  return layer.linear ? std::optional(std::move(layer)) : std::nullopt;
}

}  // namespace

OpOperand* classesOf(Operation* op) {
  if (op->getNumResults() != 1 || op->getNumOperands() == 0) return nullptr;
  RankedTensorType type = ir::tensorType(op->getResult(0));
  if (type.getRank() == 0) return nullptr;
  const int64_t size = type.getShape().back();
  auto hasClasses = [&](Value value) {
    RankedTensorType own = ir::tensorType(value);
    return own.getRank() > 0 && own.getShape().back() == size;
  };
  if (auto slice = llvm::dyn_cast<ir::SliceOp>(op)) {
    return hasClasses(slice.getInput()) ? &op->getOpOperand(0) : nullptr;
  }
  if (llvm::isa<ir::ReshapeOp>(op)) {
    return hasClasses(op->getOperand(0)) ? &op->getOpOperand(0) : nullptr;
  }
  if (!op->hasTrait<ir::Pointwise>()) return nullptr;
  OpOperand* found = nullptr;
  for (OpOperand& operand : op->getOpOperands()) {
    if (!hasClasses(operand.get())) continue;
    if (found) return nullptr;
    found = &operand;
  }
  return found;
}

std::vector<OutputLayer> outputLayersOf(mlir::func::FuncOp main, llvm::StringRef output) {
  std::vector<OutputLayer> layers;
  auto add = [&](Value logits) {
    if (std::optional<OutputLayer> layer = outputLayerOf(logits)) {
      layers.push_back(*std::move(layer));
    }
  };
  mlir::Operation* terminator = main.getBody().front().getTerminator();
  for (unsigned i = 0; i < main.getNumResults(); ++i) {
    mlir::FailureOr<ir::ValueRole> role = ir::resultRole(main, i);
    if (succeeded(role) && role->ref == output) add(terminator->getOperand(i));
  }
  for (auto loss : main.getOps<ir::CrossEntropyOp>()) add(loss.getLogits());
  for (auto loss : main.getOps<ir::TokenLossesOp>()) add(loss.getLogits());
  return layers;
}

}  // namespace oriel
