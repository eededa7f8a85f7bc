// What the dimensions of a matrix product's operands are.
#ifndef ORIEL_IR_ORIEL_MATMUL_DIMS_H_
#define ORIEL_IR_ORIEL_MATMUL_DIMS_H_

#include <optional>

#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

// Sizes, in the order in which the operands have them.
struct MatmulDims {
  llvm::ArrayRef<int64_t> batch, rows, columns;
  llvm::ArrayRef<int64_t> sum, sumOfRhs;  // equal, if the op is valid

  // Nothing where ranks or leading dimensions don't fit.
  template <typename OpOrAdaptor>
  static std::optional<MatmulDims> of(OpOrAdaptor op) {
    llvm::ArrayRef<int64_t> lhs = shapeOf(op.getLhs()), rhs = shapeOf(op.getRhs());
    // Not added up before each is known to be small.
    auto fits = [&](int64_t count, llvm::ArrayRef<int64_t> shape) {
      return count >= 1 && count <= static_cast<int64_t>(shape.size());
    };
    const int64_t rows = op.getRowDims(), sum = op.getSumDims(), columns = op.getColumnDims();
    if (!fits(rows, lhs) || !fits(sum, lhs) || !fits(columns, rhs) || !fits(sum, rhs)) return {};
    const int64_t batch = static_cast<int64_t>(lhs.size()) - rows - sum;
    if (batch < 0 || batch + sum + columns != static_cast<int64_t>(rhs.size()) ||
        lhs.take_front(batch) != rhs.take_front(batch)) {
      return {};
    }
    MatmulDims dims;
    dims.batch = lhs.take_front(batch);
    dims.rows = op.getTransposeLhs() ? lhs.take_back(rows) : lhs.slice(batch, rows);
    dims.sum = op.getTransposeLhs() ? lhs.slice(batch, sum) : lhs.take_back(sum);
    dims.columns = op.getTransposeRhs() ? rhs.slice(batch, columns) : rhs.take_back(columns);
    dims.sumOfRhs = op.getTransposeRhs() ? rhs.take_back(sum) : rhs.slice(batch, sum);
    return dims;
  }
};

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_MATMUL_DIMS_H_
