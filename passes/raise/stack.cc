#include "passes/raise/stack.h"

#include "ir/oriel/builders.h"
#include "passes/raise/match.h"

namespace oriel {

using mlir::Operation;
using mlir::Value;

Value StackBuilder::present(const Stack& stack, StackingPlace place) {
  return move(stack.value, *restack(stack.shape, place));
}

std::optional<Stack> StackBuilder::transpose(const Stack& stack,
                                             llvm::ArrayRef<int64_t> permutation) {
  Stack result = stack;
  std::optional<Restacking> way = transposeStacked(result.shape, permutation);
  if (!way) return std::nullopt;
  result.value = move(stack.value, *way);
  return result;
}

Value StackBuilder::repeat(Value value, int64_t count, StackingPlace place) {
  Shape shape(shapeOf(value));
  const Shape whole = StackedShape{shape, count, 1}.at(place);
  shape[place.dim] /= place.within;
  shape.insert(shape.begin() + place.dim, {place.within, 1});
  Value split = reshape(value, shape);
  shape[place.dim + 1] = count;
  mlir::RankedTensorType type = tensorType(value).clone(shape);
  return reshape(track(ir::BroadcastOp::create(rewriter_, value.getLoc(), type, split).getResult()),
                 whole);
}

Value StackBuilder::stretchOf(Value value, int64_t dim, int64_t start, int64_t size) {
  // Not folded: what is made may have to be taken back.
  Value stretch = ir::sliceDim(rewriter_, value.getLoc(), value, dim, start, size);
  return stretch == value ? value : track(stretch);
}

Value StackBuilder::stackConstants(llvm::ArrayRef<Value> constants) {
  Shape shape(shapeOf(constants.front()));
  shape.insert(shape.begin(), 1);
  llvm::SmallVector<Value> rows;
  for (Value constant : constants) {
    rows.push_back(reshape(track(rewriter_.clone(*constant.getDefiningOp()))->getResult(0), shape));
  }
  return track(ir::ConcatOp::create(rewriter_, constants.front().getLoc(), rows, 0).getResult());
}

Value StackBuilder::reshape(Value value, llvm::ArrayRef<int64_t> shape) {
  mlir::RankedTensorType type = tensorType(value).clone(shape);
  if (type == value.getType()) return value;
  return track(ir::ReshapeOp::create(rewriter_, value.getLoc(), type, value).getResult());
}

Operation* StackBuilder::track(Operation* op) {
  made_.push_back(op);
  return op;
}

Value StackBuilder::track(Value value) {
  track(value.getDefiningOp());
  return value;
}

void StackBuilder::undo(size_t begin) {
  for (; made_.size() > begin; made_.pop_back()) rewriter_.eraseOp(made_.back());
}

Value StackBuilder::move(Value value, const Restacking& way) {
  if (!way.split.empty()) {
    Value split = reshape(value, way.split);
    value = track(
        ir::TransposeOp::create(rewriter_, value.getLoc(), split, way.permutation).getResult());
  }
  return reshape(value, way.shape);
}

}  // namespace oriel
