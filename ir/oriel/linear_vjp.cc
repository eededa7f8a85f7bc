// Vector-Jacobian products of the contractions.
#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {

// With C = op(A) op(B): d op(A) = G op(B)ᵀ and d op(B) = op(A)ᵀ G. A stored transpose swaps
// the factors, so that no case needs a transpose of its own.
LogicalResult MatmulOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                 ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  bool ta = getTransposeLhs(), tb = getTransposeRhs();
  const int64_t rows = getRowDims(), sum = getSumDims(), columns = getColumnDims();
  auto product = [&](Value lhs, Value rhs, bool transposeLhs, bool transposeRhs, int64_t rowDims,
                     int64_t sumDims, int64_t columnDims) -> Value {
    return MatmulOp::create(builder, getLoc(), lhs, rhs, transposeLhs, transposeRhs, rowDims,
                            sumDims, columnDims);
  };
  if (needed[0]) {
    operandCotangents[0] = ta ? product(getRhs(), g, tb, true, sum, columns, rows)
                              : product(g, getRhs(), false, !tb, rows, columns, sum);
  }
  if (needed[1]) {
    operandCotangents[1] = tb ? product(g, getLhs(), true, ta, columns, rows, sum)
                              : product(getLhs(), g, !ta, false, sum, rows, columns);
  }
  return success();
}

LogicalResult LinearOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                 ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  if (needed[0]) {
    operandCotangents[0] = LinearOp::create(builder, getLoc(), g, getWeight(), /*bias=*/Value(),
                                            !getTransposeWeight());
  }
  if (needed[1]) {
    operandCotangents[1] =
        LinearWeightGradOp::create(builder, getLoc(), getInput(), g, getTransposeWeight());
  }
  if (getBias() && needed[2]) {
    operandCotangents[2] = sumToShape(builder, getLoc(), g, getBias().getType());
  }
  return success();
}

// With op(T) X = B: dB solves op(T)ᵀ dB = G, and d op(T) = -dB Xᵀ, of which T has its triangle
// (Giles 2008, "Collected matrix derivative results", 2.3.1).
LogicalResult TriangularSolveOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                          ArrayRef<bool> needed,
                                          SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  Value ofRhs = TriangularSolveOp::create(builder, getLoc(), getMatrix(), g, getUpper(),
                                          !getTranspose(), getUnitDiagonal());
  if (needed[1]) operandCotangents[1] = ofRhs;
  if (!needed[0]) return success();
  Value left = getTranspose() ? getResult() : ofRhs, right = getTranspose() ? ofRhs : getResult();
  Value product = MatmulOp::create(builder, getLoc(), left, right, /*transpose_lhs=*/false,
                                   /*transpose_rhs=*/true);
  Value negative = NegOp::create(builder, getLoc(), product);
  const int64_t size = shapeOf(getMatrix()).back();
  auto order = RankedTensorType::get({size, size}, builder.getI64Type());
  Value row = IotaOp::create(builder, getLoc(), order, /*dim=*/0);
  Value column = IotaOp::create(builder, getLoc(), order, /*dim=*/1);
  Value low = getUpper() ? row : column, high = getUpper() ? column : row;
  Value kept = getUnitDiagonal() ? LessOp::create(builder, getLoc(), low, high).getResult()
                                 : LessEqualOp::create(builder, getLoc(), low, high).getResult();
  operandCotangents[0] = SelectOp::create(builder, getLoc(), kept, negative,
                                          scalarConstant(builder, getLoc(), 0, negative));
  return success();
}

LogicalResult ConvOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                               ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  if (needed[0]) {
    operandCotangents[0] =
        ConvInputGradOp::create(builder, getLoc(), getInput().getType(), g, getWeight(),
                                getStrides(), getPads(), getDilations(), getGroup());
  }
  if (needed[1]) {
    operandCotangents[1] =
        ConvWeightGradOp::create(builder, getLoc(), getWeight().getType(), g, getInput(),
                                 getStrides(), getPads(), getDilations(), getGroup());
  }
  if (getBias() && needed[2]) {
    SmallVector<int64_t> allButChannel;
    for (int64_t dim = 0; dim < rankOf(g); ++dim) {
      if (dim != 1) allButChannel.push_back(dim);
    }
    operandCotangents[2] = ReduceSumOp::create(builder, getLoc(), g, allButChannel);
  }
  return success();
}

// Linear in both operands, as the convolution that it transposes.
LogicalResult ConvInputGradOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                        ArrayRef<bool> needed,
                                        SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  if (needed[0]) {
    operandCotangents[0] = ConvOp::create(builder, getLoc(), g, getWeight(), /*bias=*/Value(),
                                          getStrides(), getPads(), getDilations(), getGroup());
  }
  if (needed[1]) {
    operandCotangents[1] =
        ConvWeightGradOp::create(builder, getLoc(), getWeight().getType(), getCotangent(), g,
                                 getStrides(), getPads(), getDilations(), getGroup());
  }
  return success();
}

}  // namespace oriel::ir
