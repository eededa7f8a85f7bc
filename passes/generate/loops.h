// What a generated kernel loops over.
#ifndef ORIEL_PASSES_GENERATE_LOOPS_H_
#define ORIEL_PASSES_GENERATE_LOOPS_H_

#include <vector>

#include "ir/exec/exec.h"

namespace oriel {

// Sizes, outermost first, at least one, and which of the kernel's operands each goes along with.
// Operands' last dimensions are those of the shape; where they have size 1 they repeat.
struct Loops {
  llvm::SmallVector<int64_t> sizes;
  std::vector<llvm::SmallVector<bool>> varies;  // by loop, by operand
};

// Over dimensions [begin, end) of the shape: those along which every operand goes on or every one
// repeats alike are one.
Loops loopsOf(exec::KernelOp kernel, llvm::ArrayRef<int64_t> shape, size_t begin, size_t end);

std::vector<mlir::Operation*> opsOf(exec::KernelOp kernel);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_LOOPS_H_
