// Ops that only give another shape to the bytes of their operand.
#ifndef ORIEL_IR_INTERFACES_VIEW_H_
#define ORIEL_IR_INTERFACES_VIEW_H_

#include "mlir/IR/Operation.h"

namespace oriel::ir {

// Whether it has a kernel that is a view (KernelOpInterface::isView): no instruction is made for
// the op, and its result lies where its first operand does.
bool isView(mlir::Operation* op);

}  // namespace oriel::ir

#endif  // ORIEL_IR_INTERFACES_VIEW_H_
