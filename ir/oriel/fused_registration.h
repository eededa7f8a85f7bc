// What the dialect calls for the ops of fused.h, which it is not compiled with.
#ifndef ORIEL_IR_ORIEL_FUSED_REGISTRATION_H_
#define ORIEL_IR_ORIEL_FUSED_REGISTRATION_H_

#include "mlir/IR/Dialect.h"

namespace oriel::ir {

// Registers them, and which ops implement ListedOpInterface and
// those of fusion.h.
void addFusedOps(mlir::Dialect& dialect);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_FUSED_REGISTRATION_H_
