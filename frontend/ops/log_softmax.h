// Logarithms of a softmax.
#ifndef ORIEL_FRONTEND_OPS_LOG_SOFTMAX_H_
#define ORIEL_FRONTEND_OPS_LOG_SOFTMAX_H_

#include "frontend/value_builder.h"

namespace oriel {

// Along a dimension: (x - max) - log Σ exp(x - max).
mlir::Value logSoftmax(ValueBuilder& n, mlir::Value input, int64_t dim);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_OPS_LOG_SOFTMAX_H_
