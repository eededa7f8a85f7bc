#include "passes/raise/attention_operands.h"

namespace oriel {

using mlir::Value;

AttentionOperand::AttentionOperand(Value value)
    : source(value), shape(llvm::to_vector(tensorType(value).getShape())) {
  for (;;) {
    if (auto scaled = matchScaled(source)) {
      source = scaled->first;
      scale *= scaled->second;
    } else if (Value inner = matchTransposed(source)) {
      source = inner;
      transposed = !transposed;
      std::swap(shape[shape.size() - 2], shape.back());
    } else {
      return;
    }
  }
}

AttentionOperand AttentionOperand::asIs(Value value) {
  AttentionOperand operand;
  operand.source = value;
  operand.shape = llvm::to_vector(tensorType(value).getShape());
  return operand;
}

void AttentionOperand::swapLastTwo() {
  swapped = true;
  transposed = !transposed;
  std::swap(shape[shape.size() - 2], shape.back());
}

AttentionOperand AttentionOperand::withoutRepeatedHeads() const {
  Value repeated = source;
  if (auto merge = repeated.getDefiningOp<ir::ReshapeOp>()) repeated = merge.getInput();
  auto repeat = repeated.getDefiningOp<ir::BroadcastOp>();
  if (!repeat || swapped || shape.size() != 4) return *this;
  llvm::SmallVector<int64_t> one = llvm::to_vector(tensorType(repeat.getInput()).getShape());
  llvm::SmallVector<int64_t> many = llvm::to_vector(repeat.getType().getShape());
  // A single head that is repeated is a group of its own.
  for (auto* sizes : {&one, &many}) {
    if (sizes->size() == 4) sizes->insert(sizes->begin() + 1, 1);
  }
  if (one.size() != 5 || many.size() != 5 || one[2] != 1) return *this;
  llvm::SmallVector<int64_t> onlyRepeats = one;
  onlyRepeats[2] = many[2];
  llvm::SmallVector<int64_t> merged = {one[0], one[1] * many[2], one[3], one[4]};
  if (many != onlyRepeats || shape != merged) return *this;
  AttentionOperand result = *this;
  result.source = repeat.getInput();
  if (auto split = result.source.getDefiningOp<ir::ReshapeOp>()) result.source = split.getInput();
  result.shape = {one[0], one[1], one[3], one[4]};
  return result;
}

Value AttentionOperand::materialize(mlir::PatternRewriter& rewriter, mlir::Location loc) const {
  Value result = source;
  if (swapped) {
    llvm::SmallVector<int64_t> permutation =
        llvm::to_vector(llvm::seq<int64_t>(tensorType(source).getRank()));
    std::swap(permutation[permutation.size() - 2], permutation.back());
    result = ir::TransposeOp::create(rewriter, loc, source, permutation);
  }
  if (tensorType(result).getShape() == llvm::ArrayRef<int64_t>(shape)) return result;
  return ir::ReshapeOp::create(rewriter, loc, tensorType(result).clone(shape), result);
}

}  // namespace oriel
