#include "passes/stage/op_time.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/list.h"
#include "ir/interfaces/view.h"
#include "ir/interfaces/work.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/strategize/cluster_attribute.h"

namespace oriel {

namespace {

// Without a cluster, an accelerator of the class of an H100; f32 as TF32.
constexpr DeviceRates kDefault = {1e15, 5e14, 10e12 / 3};

double elementBytes(mlir::Type type) {
  mlir::Type element = mlir::getElementTypeOrSelf(type);
  return element.isIntOrFloat() ? std::max(element.getIntOrFloatBitWidth() / 8., 1.) : 0;
}

bool readsF32(mlir::Operation* op) {
  return llvm::any_of(op->getOperandTypes(),
                      [](mlir::Type type) { return mlir::getElementTypeOrSelf(type).isF32(); });
}

MatrixProduct productOf(const ir::MatrixProduct& product, mlir::Operation* op) {
  MatrixProduct result;
  result.count = product.count;
  result.rows = product.rows;
  result.columns = product.columns;
  result.depth = product.depth;
  result.wide = readsF32(op);
  result.operandBytes = elementBytes(op->getOperand(0).getType());
  result.resultBytes = elementBytes(op->getResult(0).getType());
  return result;
}

AttentionWork attentionOf(const ir::AttentionWork& attention, mlir::Operation* op) {
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
  work.elementBytes = elementBytes(op->getOperand(0).getType());
  work.wide = work.elementBytes > 2;
  return work;
}

}  // namespace

OpTimes::OpTimes(mlir::Operation* inside)
    : rates_(deviceRatesOf(inside).value_or(kDefault)),
      efficiency_(efficiencyOf(inside).value_or(Efficiency())),
      stack_(softwareStackOf(inside)) {}

double OpTimes::seconds(mlir::Operation* op) const {
  auto cost = llvm::dyn_cast<ir::CostOpInterface>(op);
  if (!cost || ir::isView(op)) return 0;
  const double launch = std::max(efficiency_.kernelFloor, stack_.kernelOverhead);
  if (auto worker = llvm::dyn_cast<ir::WorkOpInterface>(op)) {
    const ir::Work work = worker.getWork();
    double seconds = 0;
    for (const ir::MatrixProduct& product : work.products) {
      seconds += productSeconds(efficiency_, rates_, productOf(product, op));
    }
    if (work.attention) {
      seconds += stack_.attention *
                 attentionSeconds(efficiency_, rates_, attentionOf(*work.attention, op));
    }
    return std::max(seconds, launch);
  }
  const double bytes =
      static_cast<double>(cost.getBytesRead()) + static_cast<double>(cost.getBytesWritten());
  const double seconds = memorySeconds(efficiency_, rates_, stack_.pointwise * bytes);
  // Ops that become lists are launched together.
  if (llvm::isa<ir::ListedOpInterface>(op)) return std::max(seconds - efficiency_.memoryRamp, 0.);
  return std::max(seconds, launch);
}

double predictedSeconds(mlir::Operation* op) { return OpTimes(op).seconds(op); }

}  // namespace oriel
