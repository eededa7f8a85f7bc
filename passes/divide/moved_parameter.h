// Parameters that a model reshapes and transposes before it multiplies with them, as einsums do.
#ifndef ORIEL_PASSES_DIVIDE_MOVED_PARAMETER_H_
#define ORIEL_PASSES_DIVIDE_MOVED_PARAMETER_H_

#include <optional>
#include <utility>

#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"

namespace oriel {

// What reshapes and transposes, that nothing else reads, make of a parameter, and where one of its
// dimensions is in it: an index of that is so many elements side by side.
//
//   [3, n, d, h] → [d, 3, n, h] → [d, 3 n h]: dimension 0 is in dimension 1, n h elements each
struct MovedParameter {
  mlir::Value parameter;
  int64_t dim;
  int64_t width;
  // From the parameter on, with the dimension where it is in each result.
  llvm::SmallVector<std::pair<mlir::Operation*, int64_t>> steps;

  // The elements [begin, end) along dimension `dim` of the parameter, moved alike.
  mlir::Value slice(mlir::OpBuilder& builder, int64_t begin, int64_t end) const;
};

// The value as one of which dimension `dim` begins with a dimension of the parameter; nothing where
// there is none. `isParameter` says what may be moved.
std::optional<MovedParameter> matchMovedParameter(
    mlir::Value value, int64_t dim, llvm::function_ref<bool(mlir::Value)> isParameter);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_MOVED_PARAMETER_H_
