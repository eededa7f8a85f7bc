// Ops of which several become one launch: see list.td.
#ifndef ORIEL_IR_INTERFACES_LIST_H_
#define ORIEL_IR_INTERFACES_LIST_H_

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

// The generated part needs what is included above. clang-format would sort it among that.
// clang-format off
#include "ir/interfaces/list.h.inc"
// clang-format on

#endif  // ORIEL_IR_INTERFACES_LIST_H_
