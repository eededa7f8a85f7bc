#include "passes/stage/op_time.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"

namespace oriel {

namespace {

// About what training reaches on an accelerator of the class of an H100, in bfloat16.
constexpr double kFlopsPerSecond = 4e14;
constexpr double kBytesPerSecond = 2.5e12;

}  // namespace

double predictedSeconds(mlir::Operation* op) {
  auto cost = llvm::dyn_cast<ir::CostOpInterface>(op);
  auto kernel = llvm::dyn_cast<ir::KernelOpInterface>(op);
  if (!cost || (kernel && kernel.isView())) return 0;
  const double bytes =
      static_cast<double>(cost.getBytesRead()) + static_cast<double>(cost.getBytesWritten());
  return std::max(static_cast<double>(cost.getFlops()) / kFlopsPerSecond, bytes / kBytesPerSecond);
}

}  // namespace oriel
