// Vector-Jacobian products of the recurrences.
#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

using mlir::ArrayRef;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::SmallVector;
using mlir::SmallVectorImpl;
using mlir::success;
using mlir::Value;

// With G[i] the cotangent of the state behind chunk i, and X = written:
//
//   dX[i] = cotangent of X[i] + write_keys[i] G[i]
//   cotangent of states[i] before it = decays[i] ⊙ G[i] + read_keys[i]ᵀ dX[i] + that of states[i]
//
// which is the scan in the other direction, with the keys in each other's place; its states are G.
LogicalResult DeltaScanOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                    ArrayRef<bool> needed,
                                    SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(getNumOperands(), Value());
  auto isThere = [](Value cotangent) { return cotangent != nullptr; };
  if (llvm::none_of(resultCotangents, isThere) || !llvm::is_contained(needed, true)) {
    return success();
  }
  auto orZeros = [&](Value cotangent, Value like) -> Value {
    if (cotangent) return cotangent;
    Value zero = scalarConstant(builder, getLoc(), 0, like);
    return BroadcastOp::create(builder, getLoc(), like.getType(), zero);
  };
  auto scan = DeltaScanOp::create(
      builder, getLoc(), orZeros(resultCotangents[0], getWritten()), getWriteKeys(), getReadKeys(),
      getDecays(), orZeros(resultCotangents[2], getLast()), resultCotangents[1], !getReverse());
  auto product = [&](Value values, Value states) -> Value {
    return MatmulOp::create(builder, getLoc(), values, states, /*transpose_lhs=*/false,
                            /*transpose_rhs=*/true);
  };
  if (needed[0]) operandCotangents[0] = scan.getWritten();
  if (needed[1]) operandCotangents[1] = product(scan.getWritten(), getStates());
  if (needed[2]) operandCotangents[2] = product(getWritten(), scan.getStates());
  if (needed[3]) {
    auto type = tensorType(getStates()).clone(elementOf(getDecays()));
    auto cast = [&](Value states) -> Value {
      return states.getType() == type ? states
                                      : CastOp::create(builder, getLoc(), type, states).getResult();
    };
    Value products = MulOp::create(builder, getLoc(), cast(getStates()), cast(scan.getStates()));
    operandCotangents[3] = sumToShape(builder, getLoc(), products, getDecays().getType());
  }
  if (needed[4]) operandCotangents[4] = scan.getLast();
  if (getAdded() && needed[5]) operandCotangents[5] = scan.getStates();
  return success();
}

}  // namespace oriel::ir
