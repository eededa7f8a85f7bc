// The pieces of a value in one, and the ops that bring them together and take them apart.
#ifndef ORIEL_PASSES_RAISE_STACK_H_
#define ORIEL_PASSES_RAISE_STACK_H_

#include <vector>

#include "ir/oriel/oriel.h"
#include "mlir/IR/PatternMatch.h"
#include "passes/raise/stacked_shape.h"

namespace oriel {

struct Stack {
  mlir::Value value;  // of any shape
  StackedShape shape;
};

// Makes ops at the rewriter's insertion point, and can take them back.
class StackBuilder {
 public:
  explicit StackBuilder(mlir::RewriterBase& rewriter) : rewriter_(rewriter) {}

  mlir::RewriterBase& rewriter() { return rewriter_; }

  // With the pieces at a place to which `restack` knows a way.
  mlir::Value present(const Stack& stack, StackingPlace place);
  // Nothing where no reshape can tell the pieces from the dimensions.
  std::optional<Stack> transpose(const Stack& stack, llvm::ArrayRef<int64_t> permutation);
  // `count` times as much along a dimension.
  mlir::Value repeat(mlir::Value value, int64_t count, StackingPlace place);
  mlir::Value stretchOf(mlir::Value value, int64_t dim, int64_t start, int64_t size);
  // [count, piece..], to be folded.
  mlir::Value stackConstants(llvm::ArrayRef<mlir::Value> constants);
  mlir::Value reshape(mlir::Value value, llvm::ArrayRef<int64_t> shape);

  // For an op that the caller has made.
  mlir::Operation* track(mlir::Operation* op);
  // What has been made since `made().size()` was that.
  void undo(size_t begin);
  llvm::ArrayRef<mlir::Operation*> made() const { return made_; }

 private:
  mlir::Value track(mlir::Value value);
  mlir::Value move(mlir::Value value, const Restacking& way);

  mlir::RewriterBase& rewriter_;
  std::vector<mlir::Operation*> made_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_STACK_H_
