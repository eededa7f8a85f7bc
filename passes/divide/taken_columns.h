// Slices of a value's columns, which reshapes and transposes have moved before.
#ifndef ORIEL_PASSES_DIVIDE_TAKEN_COLUMNS_H_
#define ORIEL_PASSES_DIVIDE_TAKEN_COLUMNS_H_

#include <map>
#include <optional>
#include <utility>

#include "ir/oriel/oriel.h"

namespace oriel {

using Columns = std::pair<int64_t, int64_t>;  // of a dimension of the value: from, to

// Where the columns are in what reshapes and transposes make of the value: in this dimension, an
// index of which is so many columns side by side.
struct ColumnPlace {
  int64_t dim;
  int64_t columns;
};

// Columns that a slice takes out of what reshapes and transposes have made of the value.
struct TakenColumns {
  ir::SliceOp slice;
  // With the places of the results.
  llvm::SmallVector<std::pair<mlir::Operation*, ColumnPlace>> path;
  Columns columns;
};

// All that is made of the value, whose columns are its dimension `dim`; nothing if that is anything
// but slices of columns.
std::optional<llvm::SmallVector<TakenColumns>> findTaken(mlir::Value value, int64_t dim);

// The columns of `width` that slices take, in order; none if they don't make them up.
llvm::SmallVector<Columns> piecesOf(llvm::ArrayRef<TakenColumns> taken, int64_t width);

// The operands of a concatenation that make up these of its columns; none where one reaches beyond.
llvm::SmallVector<mlir::Value> operandsOf(ir::ConcatOp concat, Columns columns);

// Puts what was made of the columns in the place of slices.
void takeFrom(mlir::OpBuilder& builder, llvm::ArrayRef<TakenColumns> taken,
              const std::map<Columns, mlir::Value>& made);

// Erases an op with all that reads it, which only leads to slices that are gone.
void eraseUnused(mlir::Operation* op);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_TAKEN_COLUMNS_H_
