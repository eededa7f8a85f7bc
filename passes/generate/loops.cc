#include "passes/generate/loops.h"

#include "mlir/IR/BuiltinTypes.h"

namespace oriel {

Loops loopsOf(exec::KernelOp kernel, llvm::ArrayRef<int64_t> shape, size_t begin, size_t end) {
  mlir::Block& block = kernel.getBody().front();
  Loops loops;
  for (size_t dim = begin; dim < end; ++dim) {
    const int64_t size = shape[dim];
    if (size == 1) continue;
    llvm::SmallVector<bool> varies;
    for (mlir::Type type : block.getArgumentTypes()) {
      auto operand = llvm::cast<mlir::RankedTensorType>(type);
      const auto missing = static_cast<int64_t>(shape.size()) - operand.getRank();
      const int64_t own = static_cast<int64_t>(dim) - missing;
      varies.push_back(own >= 0 && operand.getDimSize(own) == size);
    }
    if (!loops.sizes.empty() && loops.varies.back() == varies) {
      loops.sizes.back() *= size;
    } else {
      loops.sizes.push_back(size);
      loops.varies.push_back(std::move(varies));
    }
  }
  if (loops.sizes.empty()) {
    loops.sizes.push_back(1);
    loops.varies.emplace_back(block.getNumArguments(), false);
  }
  return loops;
}

std::vector<mlir::Operation*> opsOf(exec::KernelOp kernel) {
  std::vector<mlir::Operation*> ops;
  for (mlir::Operation& op : kernel.getBody().front().without_terminator()) ops.push_back(&op);
  return ops;
}

}  // namespace oriel
