// How long an op takes, as far as stages need to know: only times relative to each other count.
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
