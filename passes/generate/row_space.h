// Rows: what a chain with reductions over its last dimensions goes along.
#ifndef ORIEL_PASSES_GENERATE_ROW_SPACE_H_
#define ORIEL_PASSES_GENERATE_ROW_SPACE_H_

#include <cstdint>
#include <optional>

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/Operation.h"

namespace oriel {

// A row is as long as a block of CUDA can be expected to take, and no shorter than two.
inline constexpr int64_t kMaxRow = 16384;

// Elements of the shape `full`; a row is those that differ in dimensions from `rank` on only.
struct RowSpace {
  llvm::SmallVector<int64_t> full;
  int64_t rank = 0;

  int64_t rows() const;
  int64_t columns() const;
  // A value for each row, of full rank: 1 in each dimension of a row.
  bool isKept(llvm::ArrayRef<int64_t> shape) const;
  // The same without these dimensions.
  bool isDropped(llvm::ArrayRef<int64_t> shape) const;
};

// The rows of an op that reduces; nullopt if it is none, or not over its last dimensions, or
// over too few or too many elements.
std::optional<RowSpace> rowSpaceOf(mlir::Operation* op);

// Of the first that reduces; nullopt if none does.
std::optional<RowSpace> rowSpaceOf(llvm::ArrayRef<mlir::Operation*> ops);

// Whether the ops go along the same rows: reductions of whole rows, values of full shape, and one
// value for each row, which has full rank where one of the ops takes it.
bool fitRows(llvm::ArrayRef<mlir::Operation*> ops, const RowSpace& space);

// Accumulators of a row, a power of two: element i goes to i modulo these, in order; then the
// second half is combined with the first, until one is left. The same on every target.
int64_t lanesOf(int64_t columns);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_ROW_SPACE_H_
