// Which values have a dimension of samples, though they are made of none.
#ifndef ORIEL_PASSES_PROPAGATE_SAMPLES_H_
#define ORIEL_PASSES_PROPAGATE_SAMPLES_H_

#include <optional>

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

using DimOfValue = llvm::DenseMap<mlir::Value, int64_t>;

// The dimensions of samples of values that are computed of constants and parameters alone, such as
// positions' embeddings that a model repeats for each image: ops take them beside values of
// samples, element by element. Each rank needs those of its own samples. `known` gives the
// dimension of an argument of the segment, or of what it receives, if it has one.
DimOfValue findSamplesOfNone(mlir::func::FuncOp segment,
                             llvm::function_ref<std::optional<int64_t>(mlir::Value)> known);

}  // namespace oriel

#endif  // ORIEL_PASSES_PROPAGATE_SAMPLES_H_
