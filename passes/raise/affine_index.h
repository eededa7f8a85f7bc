// Integer values that are linear in their own indices, such as the positions that masks compare.
#ifndef ORIEL_PASSES_RAISE_AFFINE_INDEX_H_
#define ORIEL_PASSES_RAISE_AFFINE_INDEX_H_

#include <optional>
#include <utility>

#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Value.h"

namespace oriel {

// Element (i0, .., in) of a value is constant + Σ coefficients[d] * id. A dimension of size 1 has
// the coefficient 0.
struct AffineIndex {
  llvm::SmallVector<int64_t> coefficients;
  int64_t constant = 0;
};

// Follows `value` through index arithmetic to iotas and constants; nullopt if it is not linear.
std::optional<AffineIndex> matchAffineIndex(mlir::Value value);

// lhs - rhs, as a value of `rank` dimensions to which both broadcast.
std::optional<AffineIndex> matchAffineDifference(mlir::Value lhs, mlir::Value rhs, int64_t rank);

// The smallest and the largest element of a value of this shape, which has elements.
std::pair<int64_t, int64_t> rangeOf(const AffineIndex& index, llvm::ArrayRef<int64_t> shape);

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_AFFINE_INDEX_H_
