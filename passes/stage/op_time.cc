#include "passes/stage/op_time.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/view.h"
#include "mlir/IR/TypeUtilities.h"

namespace oriel {

namespace {

// About what training reaches on an accelerator of the class of an H100: 40 % of the 989e12 in
// bfloat16 of its data sheet, and half of that where an operand is f32 (as TF32).
constexpr double kFlopsPerSecond = 4e14;
constexpr double kBytesPerSecond = 2.5e12;

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
  const double flops = static_cast<double>(cost.getFlops()) * (readsF32(op) ? 2 : 1);
  return std::max(flops / kFlopsPerSecond, bytes / kBytesPerSecond);
}

}  // namespace oriel
