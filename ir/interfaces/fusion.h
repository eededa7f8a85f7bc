// Ops whose kernel can do what other ops do before or behind it: see fusion.td.
#ifndef ORIEL_IR_INTERFACES_FUSION_H_
#define ORIEL_IR_INTERFACES_FUSION_H_

#include "mlir/IR/Builders.h"
#include "mlir/IR/OpDefinition.h"

// The generated part needs what is included above. clang-format would sort it among that.
// clang-format off
#include "ir/interfaces/fusion.h.inc"
// clang-format on

#endif  // ORIEL_IR_INTERFACES_FUSION_H_
