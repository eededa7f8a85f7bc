#include "passes/cost/op_time.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/view.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/fused.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/cost/cluster_attribute.h"

namespace oriel {

namespace {

double elementBytes(mlir::Type type) {
  if (!type) return 0;
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max(element.getIntOrFloatBitWidth() / 8., 1.) : 0;
}

// Bytes for an element of a product's result: its own, and those of what is written or read as far
// as the result goes, a summand or the product before an activation.
double bytesAtResult(mlir::Operation* op) {
  mlir::Type result = op->getResult(0).getType();
  double bytes = elementBytes(result);
  auto add = [&](mlir::Type type) {
    if (succeeded(mlir::verifyCompatibleShape(type, result))) bytes += elementBytes(type);
  };
  for (mlir::Type type : llvm::drop_begin(op->getResultTypes())) add(type);
  for (mlir::Type type : llvm::drop_begin(op->getOperandTypes(), 2)) add(type);
  return bytes;
}

// Whether the list that makes what the op casts does that, too (oriel-form-lists).
bool isDoneByList(mlir::Operation* op) {
  auto cast = llvm::dyn_cast<ir::CastOp>(op);
  if (!cast) return false;
  auto listed = llvm::dyn_cast_if_present<ir::ListedOpInterface>(cast.getInput().getDefiningOp());
  return listed && ir::roundingOf(listed) == cast;
}

MatrixProduct productOf(const ir::MatrixProduct& product, mlir::Type operandType,
                        mlir::Operation* op) {
  MatrixProduct result;
  result.count = product.count;
  result.rows = product.rows;
  result.columns = product.columns;
  result.depth = product.depth;
  result.operandBytes = elementBytes(operandType);
  result.wide = result.operandBytes > 2;
  result.resultBytes = bytesAtResult(op);
  return result;
}

AttentionWork attentionOf(const ir::AttentionWork& attention, mlir::Type operandType) {
  AttentionWork work;
  work.batch = attention.batch;
  work.heads = attention.heads;
  work.keyHeads = attention.groups;
  work.queries = attention.queries;
  // With a window, a query sees no more keys than that.
  work.keys = attention.window > 0 ? std::min(attention.keys, attention.window) : attention.keys;
  work.depth = attention.depth;
  work.valueDepth = attention.valueDepth;
  work.causal = attention.isCausal && attention.queries == work.keys;
  work.backward = attention.isGradient;
  work.elementBytes = elementBytes(operandType);
  work.wide = work.elementBytes > 2;
  return work;
}

}  // namespace

OpTimes::OpTimes(mlir::Operation* inside)
    : rates_(deviceRatesOf(inside)),
      efficiency_(efficiencyOf(inside)),
      stack_(softwareStackOf(inside)) {}

double OpTimes::seconds(mlir::Operation* op) const {
  auto cost = llvm::dyn_cast<ir::CostOpInterface>(op);
  if (!cost || ir::isView(op) || op->hasTrait<mlir::OpTrait::ConstantLike>()) return 0;
  if (auto worker = llvm::dyn_cast<ir::WorkOpInterface>(op)) {
    ir::Work work = worker.getWork();
    if (!work.operandType && op->getNumOperands() > 0) {
      work.operandType = mlir::getElementTypeOrSelf(op->getOperand(0).getType());
    }
    double seconds = 0;
    for (const ir::MatrixProduct& product : work.products) {
      seconds += productSeconds(efficiency_, rates_, productOf(product, work.operandType, op));
    }
    if (work.attention) {
      seconds +=
          stack_.attention *
          attentionSeconds(efficiency_, rates_, attentionOf(*work.attention, work.operandType));
    }
    return std::max(seconds, launchSeconds());
  }
  const bool isOfList = isDoneByList(op);
  const double bytes = (isOfList ? 0 : static_cast<double>(cost.getBytesRead())) +
                       static_cast<double>(cost.getBytesWritten());
  // Ops that become lists are launched together.
  if (isOfList || llvm::isa<ir::ListedOpInterface>(op)) {
    return std::max(memorySecondsOf(bytes) - efficiency_.memoryRamp, 0.);
  }
  return secondsOfBytes(bytes);
}

double OpTimes::secondsOfBytes(double bytes) const {
  return std::max(memorySecondsOf(bytes), launchSeconds());
}

double OpTimes::memorySecondsOf(double bytes) const {
  return memorySeconds(efficiency_, rates_, stack_.pointwise * bytes);
}

double OpTimes::launchSeconds() const {
  return std::max(efficiency_.kernelFloor, stack_.kernelOverhead);
}

}  // namespace oriel
