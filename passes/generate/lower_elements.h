// Kernels of pointwise ops: from the linalg form to threads of CUDA.
#ifndef ORIEL_PASSES_GENERATE_LOWER_ELEMENTS_H_
#define ORIEL_PASSES_GENERATE_LOWER_ELEMENTS_H_

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"

namespace oriel {

// How many neighbours along the innermost loop, of `size` runs, a thread computes: as many as are
// 16 bytes of the smallest element that it moves, up to 8, and a power of two that divides the
// loop. `types` are those of memory that goes along with the loop.
int64_t threadElementsOf(int64_t size, llvm::ArrayRef<mlir::Type> types);

// An attribute of functions (i64): what threadElementsOf gives; 1 without it.
inline constexpr char kThreadElements[] = "oriel.thread_elements";

// The function, whose body is `body`, becomes a kernel of `module`. A thread loads all that it
// reads, as vectors where memory goes along with the innermost loop, before it stores what it has
// computed: a result may lie in an operand's place. Memory is aligned to 16 bytes, and
// kThreadElements divides the innermost loop.
void elementsToKernel(mlir::func::FuncOp function, mlir::linalg::GenericOp body,
                      mlir::gpu::GPUModuleOp module);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_LOWER_ELEMENTS_H_
