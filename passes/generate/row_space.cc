#include "passes/generate/row_space.h"

#include <algorithm>

#include "ir/interfaces/tensor_type.h"
#include "ir/scalar/scalar.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/BuiltinTypes.h"
#include "passes/generate/code.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

}  // namespace

int64_t RowSpace::rows() const {
  return mlir::computeProduct(llvm::ArrayRef(full).take_front(rank));
}
int64_t RowSpace::columns() const {
  return mlir::computeProduct(llvm::ArrayRef(full).drop_front(rank));
}

bool RowSpace::isKept(llvm::ArrayRef<int64_t> shape) const {
  return shape.size() == full.size() &&
         shape.take_front(rank) == llvm::ArrayRef(full).take_front(rank) &&
         llvm::all_of(shape.drop_front(rank), [](int64_t size) { return size == 1; });
}
bool RowSpace::isDropped(llvm::ArrayRef<int64_t> shape) const {
  return shape == llvm::ArrayRef(full).take_front(rank);
}

std::optional<RowSpace> rowSpaceOf(Operation* op) {
  auto reduction = llvm::dyn_cast<ir::RowReductionOpInterface>(op);
  if (!reduction) return std::nullopt;
  llvm::ArrayRef<int64_t> full = ir::shapeOf(op->getOperand(0)), dims = reduction.getReducedDims();
  RowSpace space{llvm::SmallVector<int64_t>(full),
                 static_cast<int64_t>(full.size()) - static_cast<int64_t>(dims.size())};
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (dim != space.rank + static_cast<int64_t>(index)) return std::nullopt;
  }
  if (mlir::ShapedType::isDynamicShape(full) || space.rows() < 1) return std::nullopt;
  if (space.columns() < 2 || space.columns() > kMaxRow) return std::nullopt;
  return space;
}

std::optional<RowSpace> rowSpaceOf(llvm::ArrayRef<Operation*> ops) {
  for (Operation* op : ops) {
    if (llvm::isa<ir::RowReductionOpInterface>(op)) return rowSpaceOf(op);
  }
  return std::nullopt;
}

bool fitRows(llvm::ArrayRef<Operation*> ops, const RowSpace& space) {
  llvm::ArrayRef<int64_t> full = space.full;
  for (Operation* op : ops) {
    if (llvm::isa<ir::RowReductionOpInterface>(op)) {
      std::optional<RowSpace> own = rowSpaceOf(op);
      if (!own || own->full != space.full || own->rank != space.rank) return false;
      continue;
    }
    for (Value result : op->getResults()) {
      if (ir::shapeOf(result) != full && !space.isKept(ir::shapeOf(result))) return false;
    }
    // A value without the dimensions of a row would go along other dimensions here.
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (producer && llvm::is_contained(ops, producer) &&
          ir::shapeOf(operand).size() != full.size()) {
        return false;
      }
    }
  }
  return true;
}

int64_t lanesOf(int64_t columns) {
  return std::min<int64_t>(kThreadsOfBlock, llvm::PowerOf2Ceil(columns));
}

}  // namespace oriel
