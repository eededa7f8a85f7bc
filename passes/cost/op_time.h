// How long an op takes on a device of the module's cluster (passes/cost/cluster_attribute.h).
#ifndef ORIEL_PASSES_COST_OP_TIME_H_
#define ORIEL_PASSES_COST_OP_TIME_H_

#include "mlir/IR/Operation.h"
#include "passes/cost/efficiency.h"
#include "passes/cost/software_stack.h"

namespace oriel {

// What the module of an op says of its device and its software, read once.
class OpTimes {
 public:
  explicit OpTimes(mlir::Operation* inside);

  // Products and attention by their shapes, other ops by the bytes that they read and write, at
  // what the device reaches (passes/cost/efficiency.h); no less than the launch of a kernel.
  // 0 for views, for constants and for ops without a cost.
  double seconds(mlir::Operation* op) const;

  // Of an op that reads and writes that many bytes.
  double secondsOfBytes(double bytes) const;

 private:
  double memorySecondsOf(double bytes) const;
  double launchSeconds() const;

  DeviceRates rates_;
  Efficiency efficiency_;
  SoftwareStack stack_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_OP_TIME_H_
