// One rank's share of an op: into how many pieces each factor of the rule is cut, and where the
// rank's own piece begins.
//
//   LocalPieces pieces(counts, [&](OpBuilder& builder, Location loc, int factor) { .. });
//   op.buildLocal(builder, operands, pieces);
#ifndef ORIEL_IR_INTERFACES_LOCAL_PIECES_H_
#define ORIEL_IR_INTERFACES_LOCAL_PIECES_H_

#include <functional>
#include <utility>

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace oriel::ir {

class LocalPieces {
 public:
  // Makes a value of type tensor<i64>: the index, along the factor, of the first element of the
  // rank's piece. Ranks run one program, so it is a value and no number.
  using MakeFirst = std::function<mlir::Value(mlir::OpBuilder&, mlir::Location, int factor)>;

  // `counts` has an entry per factor of the rule; each divides the factor's size.
  LocalPieces(llvm::ArrayRef<int64_t> counts, MakeFirst first)
      : counts_(counts), first_(std::move(first)) {}

  int64_t operator[](int factor) const { return counts_[factor]; }
  llvm::ArrayRef<int64_t> counts() const { return counts_; }

  mlir::Value first(mlir::OpBuilder& builder, mlir::Location loc, int factor) const {
    return first_(builder, loc, factor);
  }

 private:
  llvm::SmallVector<int64_t> counts_;
  MakeFirst first_;
};

}  // namespace oriel::ir

#endif  // ORIEL_IR_INTERFACES_LOCAL_PIECES_H_
