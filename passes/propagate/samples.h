// Which values have a dimension of samples, though they are made of none.
#ifndef ORIEL_PASSES_PROPAGATE_SAMPLES_H_
#define ORIEL_PASSES_PROPAGATE_SAMPLES_H_

#include <optional>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategize/sharding.h"

namespace oriel {

// The dimensions of samples of values that are computed of constants and parameters alone, such as
// positions' embeddings that a model repeats for each image: ops take them beside values of
// samples, element by element. Each rank needs those of its own samples. `known` gives the
// dimension of an argument of the segment, or of what it receives, if it has one.
class SamplesOfNone {
 public:
  SamplesOfNone() = default;  // of no value
  SamplesOfNone(mlir::func::FuncOp segment,
                llvm::function_ref<std::optional<int64_t>(mlir::Value)> known);

  // The result's `positions`, if it has some, and its samples cut over the data axes; `positions`
  // where it is none of these, or they don't divide.
  std::optional<Sharding> cut(mlir::OpResult result, std::optional<Sharding> positions,
                              const AxisList& data, const AxisSizes& sizes) const;
  // Of an op that goes.
  void forget(mlir::Operation* op);

 private:
  llvm::DenseMap<mlir::Value, int64_t> dims_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_SAMPLES_H_
