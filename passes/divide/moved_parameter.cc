#include "passes/divide/moved_parameter.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "ir/oriel/oriel.h"

namespace oriel {
namespace {

using mlir::Operation;
using mlir::Value;

// Where a dimension of the op's operand, of which `count` indices are told apart, is in its result:
// the dimension that begins where it does, if it holds them side by side.
std::optional<int64_t> dimBehind(Operation* op, int64_t dim, int64_t count) {
  if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(op)) {
    llvm::ArrayRef<int64_t> permutation = transpose.getPermutation();
    return llvm::find(permutation, dim) - permutation.begin();
  }
  llvm::ArrayRef<int64_t> from = ir::shapeOf(op->getOperand(0)), to = ir::shapeOf(op->getResult(0));
  int64_t before = 1, product = 1;
  for (int64_t size : from.take_front(dim)) before *= size;
  for (auto [place, size] : llvm::enumerate(to)) {
    if (product == before && size != 1) {
      return size % count == 0 ? std::optional<int64_t>(place) : std::nullopt;
    }
    product *= size;
  }
  return std::nullopt;
}

}  // namespace

std::optional<MovedParameter> matchMovedParameter(Value value, int64_t dim,
                                                  llvm::function_ref<bool(Value)> isParameter) {
  llvm::SmallVector<Operation*> steps;
  Value parameter = value;
  while (llvm::isa_and_nonnull<ir::ReshapeOp, ir::TransposeOp>(parameter.getDefiningOp())) {
    if (!parameter.hasOneUse()) return std::nullopt;
    steps.push_back(parameter.getDefiningOp());
    parameter = steps.back()->getOperand(0);
  }
  if (!isParameter(parameter)) return std::nullopt;
  for (auto [own, count] : llvm::enumerate(ir::shapeOf(parameter))) {
    if (count == 1) continue;
    MovedParameter moved{parameter, static_cast<int64_t>(own), 0, {}};
    std::optional<int64_t> place = moved.dim;
    for (Operation* step : llvm::reverse(steps)) {
      place = dimBehind(step, *place, count);
      if (!place) break;
      moved.steps.emplace_back(step, *place);
    }
    if (!place || *place != dim) continue;
    moved.width = ir::shapeOf(value)[dim] / count;
    return moved;
  }
  return std::nullopt;
}

Value MovedParameter::slice(mlir::OpBuilder& builder, int64_t begin, int64_t end) const {
  Value value = ir::sliceDim(builder, parameter.getLoc(), parameter, dim, begin, end - begin);
  for (auto [step, place] : steps) {
    if (auto transpose = llvm::dyn_cast<ir::TransposeOp>(step)) {
      value = ir::TransposeOp::create(builder, step->getLoc(), value, transpose.getPermutation());
      continue;
    }
    auto type = ir::tensorType(step->getResult(0));
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape[place] = shape[place] / ir::shapeOf(parameter)[dim] * (end - begin);
    value = ir::ReshapeOp::create(builder, step->getLoc(), type.clone(shape), value);
  }
  return value;
}

}  // namespace oriel
