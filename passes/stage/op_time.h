// How long an op takes on a device of the module's cluster (passes/strategize/cluster_attribute.h).
#ifndef ORIEL_PASSES_STAGE_OP_TIME_H_
#define ORIEL_PASSES_STAGE_OP_TIME_H_

#include "mlir/IR/Operation.h"

namespace oriel {

// A roofline (Williams et al. 2009): the longer of the time for its floating-point operations and
// that for the bytes that it reads and writes, on one device. 0 for views and for ops without a
// cost.
double predictedSeconds(mlir::Operation* op);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_OP_TIME_H_
