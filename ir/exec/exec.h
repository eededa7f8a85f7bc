// The exec dialect and its ops.
#ifndef ORIEL_IR_EXEC_EXEC_H_
#define ORIEL_IR_EXEC_EXEC_H_

#include "ir/oriel/oriel.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
// Behind what it needs.
#include "ir/exec/exec_dialect.h.inc"

namespace oriel::exec {

// The name of the kernel that runs code from the plan.
inline constexpr llvm::StringLiteral kGeneratedKernel("generated");

}  // namespace oriel::exec

#define GET_OP_CLASSES
#include "ir/exec/exec_ops.h.inc"

#endif  // ORIEL_IR_EXEC_EXEC_H_
