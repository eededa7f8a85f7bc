// Where square matrices are 0 by constant masks, whatever the data.
//
//   ConstantZeros zeros(64);
//   zeros.of(value);  // of select(mask, x, 0), its negative, its product with anything, ..
#ifndef ORIEL_PASSES_RAISE_CONSTANT_ZEROS_H_
#define ORIEL_PASSES_RAISE_CONSTANT_ZEROS_H_

#include <vector>

#include "passes/raise/match.h"

namespace oriel {

class ConstantZeros {
 public:
  explicit ConstantZeros(int64_t rows) : rows_(rows) {}

  // Where all matrices of a value [.., rows, rows] are 0, with no derivative: by row and column;
  // empty if nowhere, or of another shape. What it has found it keeps, while the value lives.
  std::vector<bool> of(mlir::Value value);

 private:
  std::vector<bool> find(mlir::Operation* op);
  std::vector<bool> ofConstant(ir::ConstantOp op) const;
  std::vector<bool> ofSelect(ir::SelectOp op);
  std::vector<bool> ofChosen(mlir::Value value);
  bool hasMatrices(mlir::Value value) const;

  const int64_t rows_;
  llvm::DenseMap<mlir::Value, std::vector<bool>> found_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_CONSTANT_ZEROS_H_
