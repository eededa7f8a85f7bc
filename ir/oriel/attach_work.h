// What the dialect calls for the work of its ops (ir/interfaces/work.h), which it is not compiled
// with.
#ifndef ORIEL_IR_ORIEL_ATTACH_WORK_H_
#define ORIEL_IR_ORIEL_ATTACH_WORK_H_

#include "mlir/IR/Dialect.h"

namespace oriel::ir {

// Lets ops of the dialect implement WorkOpInterface. They are registered.
void attachWork(mlir::Dialect& dialect);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_ATTACH_WORK_H_
