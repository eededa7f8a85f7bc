// The linalg form of a generated kernel: the same for every target.
#ifndef ORIEL_PASSES_GENERATE_LINALG_FORM_H_
#define ORIEL_PASSES_GENERATE_LINALG_FORM_H_

#include <cstdint>
#include <string>

#include "ir/exec/exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

// The sizes that a kernel loops over, outermost first, at least one: those of its results, where
// dimensions along which every operand goes on or every one repeats alike are one.
llvm::SmallVector<int64_t> loopSizes(exec::KernelOp kernel);

// Puts a function `name` into `module` that computes what the kernel does, in one linalg.generic:
// operands and results are its arguments, in memory, bf16 as its bits and a boolean as a byte. Each
// value is rounded to its own type. Fails with a diagnostic at the kernel.
mlir::FailureOr<mlir::func::FuncOp> buildLinalgForm(exec::KernelOp kernel, llvm::StringRef name,
                                                    mlir::ModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_LINALG_FORM_H_
