// The linalg form of a generated kernel: the same for every target.
#ifndef ORIEL_PASSES_GENERATE_LINALG_FORM_H_
#define ORIEL_PASSES_GENERATE_LINALG_FORM_H_

#include <cstdint>
#include <string>

#include "ir/exec/exec.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

// What a launch computes at a time: all of its units, of which none depends on another one.
struct LaunchUnits {
  int64_t units = 0, elements = 0;  // of each one, of results of full shape
  int64_t blockUnits = 0;           // that a block of CUDA computes; 0: each thread some elements
  int64_t threadElements = 1;       // of a result, that it computes then (lower_elements.h)
};

// Without reductions, units are the kernel's outermost loop; else rows (row_space.h).
LaunchUnits unitsOf(exec::KernelOp kernel);

// Puts a function `name` into `module` that computes what the kernel does: operands and results are
// its arguments, in memory, bf16 as its bits and a boolean as a byte. Each value is rounded to its
// own type. Without reductions it is one linalg.generic on them. Else there is one for each
// reduction, into memory of its own that has been filled, with what goes before computed in it
// (again, where several take it); then one for the results of full shape, and one for those of a
// row. The function says how many elements a thread computes (kThreadElements, lower_elements.h).
// Fails with a diagnostic at the kernel.
mlir::FailureOr<mlir::func::FuncOp> buildLinalgForm(exec::KernelOp kernel, llvm::StringRef name,
                                                    mlir::ModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_LINALG_FORM_H_
