// What is computed of several pieces alike, computed of all of them at once.
//
// A model that takes images of any size loops over them: exported, each op of the loop is there
// once for each image, on slices of what holds the patches of all, and the results are
// concatenated.
#ifndef ORIEL_PASSES_RAISE_PIECEWISE_H_
#define ORIEL_PASSES_RAISE_PIECEWISE_H_

#include <vector>

#include "passes/raise/series.h"
#include "passes/raise/stack.h"

namespace oriel {

class Piecewise {
 public:
  explicit Piecewise(mlir::RewriterBase& rewriter) : builder_(rewriter) {}
  ~Piecewise();

  // Computes operands of the concatenation, each run of those that are computed alike, at once.
  // Where something else uses what is computed in between, it gets slices. The concatenation goes,
  // with the ops that are not needed any more. Fails, and changes nothing, where no run is computed
  // so with fewer launches; products may cost transposes, which the layout takes away.
  mlir::LogicalResult computeAtOnce(ir::ConcatOp concat);

 private:
  // The op is erased at last, so that no other takes its address while that is remembered.
  void take(mlir::Operation* op);

  StackBuilder builder_;
  SeriesSearch search_;
  std::vector<mlir::Operation*> taken_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_PIECEWISE_H_
