#include "passes/stage/op_time.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/view.h"
#include "mlir/IR/TypeUtilities.h"
#include "passes/strategize/cluster_attribute.h"

namespace oriel {

namespace {

// What training reaches of a device's peak rates, about.
constexpr double kFlopsReached = 0.4;
constexpr double kBytesReached = 0.75;

// Without a cluster, an accelerator of the class of an H100; f32 as TF32.
constexpr DeviceRates kDefault = {1e15, 5e14, 10e12 / 3};

bool readsF32(mlir::Operation* op) {
  return llvm::any_of(op->getOperandTypes(),
                      [](mlir::Type type) { return mlir::getElementTypeOrSelf(type).isF32(); });
}

}  // namespace

double predictedSeconds(mlir::Operation* op) {
  auto cost = llvm::dyn_cast<ir::CostOpInterface>(op);
  if (!cost || ir::isView(op)) return 0;
  const double bytes =
      static_cast<double>(cost.getBytesRead()) + static_cast<double>(cost.getBytesWritten());
  const DeviceRates rates = deviceRatesOf(op).value_or(kDefault);
  const double flops = static_cast<double>(cost.getFlops());
  return std::max(flops / (kFlopsReached * (readsF32(op) ? rates.floatFlops : rates.halfFlops)),
                  bytes / (kBytesReached * rates.bytes));
}

}  // namespace oriel
