// The vector-Jacobian product of a whole function, as a function.
#ifndef ORIEL_PASSES_TRAIN_VJP_FUNCTION_H_
#define ORIEL_PASSES_TRAIN_VJP_FUNCTION_H_

#include "llvm/ADT/SmallVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

struct VjpFunction {
  mlir::func::FuncOp function;
  // Values of the original function that it takes, in the order of its first arguments. Then
  // follow the cotangents of the original's float results.
  llvm::SmallVector<mlir::Value> captured;
};

// Numbers of the arguments that can have a cotangent.
llvm::SmallVector<unsigned> floatArguments(mlir::func::FuncOp function);

// Adds `@<function>_vjp` behind the function (of one block), and numbers the function's ops.
// The results are the cotangents of `arguments`, zeros where nothing depends on one. Fails, with
// a diagnostic, for an argument that is none or no float tensor, and where an op can't be
// differentiated.
mlir::FailureOr<VjpFunction> buildVjpFunction(mlir::func::FuncOp function,
                                              llvm::ArrayRef<unsigned> arguments);

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_VJP_FUNCTION_H_
