#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"

namespace oriel::ir {

using llvm::ArrayRef;
using llvm::SmallVector;
using llvm::SmallVectorImpl;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;

LogicalResult DropoutOp::verify() {
  const ArrayRef<int64_t> shape = shapeOf(getInput());
  if (getType() != getInput().getType()) {
    return emitOpError() << "has the result " << getType() << ", not of its input's type";
  }
  if (shape.empty()) return emitOpError("drops a scalar, which has no samples");
  const double ratio = getRatio();
  if (!(ratio >= 0 && ratio < 1)) {
    return emitOpError() << "has the ratio " << ratio << ", expected one from 0 to below 1";
  }
  Value samples = getSamples();
  if (!samples) {
    return getCut().empty() ? success() : emitOpError("has pieces, but no samples");
  }
  if (shapeOf(samples).size() != 1 || shapeOf(samples)[0] < 1 ||
      shape[0] % shapeOf(samples)[0] != 0) {
    return emitOpError() << "has samples " << samples.getType()
                         << ", which the first dimension of its input must be a multiple of";
  }
  if (getRest().size() != getCut().size() + 1) {
    return emitOpError() << "has " << getRest().size() - 1 << " beginnings for " << getCut().size()
                         << " dimensions that are cut";
  }
  if (!getCut().empty() && getWhole().size() != shape.size()) {
    return emitOpError("has a whole of another rank than its piece");
  }
  for (auto [dim, first] : llvm::zip_equal(getCut(), getRest().drop_front())) {
    if (dim < 1 || dim >= static_cast<int64_t>(shape.size()) || !shapeOf(first).empty()) {
      return emitOpError() << "has a beginning of dimension " << dim
                           << ", which is none behind the first, or no number";
    }
  }
  return success();
}

Precision DropoutOp::getPrecision() { return Precision::kFollow; }

bool DropoutOp::mayOverwrite(unsigned operand, unsigned) { return operand == 0; }

// Rows of a sample stay together.
ShardingRule DropoutOp::getShardingRule() {
  RuleBuilder rule(*this);
  const ArrayRef<int64_t> shape = shapeOf(getInput());
  rule.linearIn({0});
  if (!getSamples() || !getCut().empty()) return rule.take();
  const int samples = rule.parallel(shapeOf(getSamples())[0]);
  const Dims dims = Dims{samples} + rule.parallel(shape.drop_front());
  rule.operand(0, dims);
  rule.operand(1, {samples});
  rule.result(0, dims);
  return rule.take();
}

mlir::Operation* DropoutOp::buildLocal(mlir::OpBuilder& builder, mlir::ValueRange operands,
                                       const LocalPieces& pieces) {
  ShardingRule rule = getShardingRule();
  SmallVector<Value> withFirsts(operands);
  SmallVector<int64_t> cut;
  for (auto [dim, factors] : llvm::enumerate(rule.results[0])) {
    if (dim == 0 || factors.empty() || pieces[factors.front()] == 1) continue;
    withFirsts.push_back(pieces.first(builder, getLoc(), factors.front()));
    cut.push_back(static_cast<int64_t>(dim));
  }
  auto local = llvm::cast<DropoutOp>(cloneLocal(*this, builder, withFirsts, rule, pieces));
  if (!cut.empty()) {
    local.setCut(cut);
    local.setWhole(shapeOf(getInput()));
  }
  return local;
}

// Linear, and its own transpose: the same elements stay.
LogicalResult DropoutOp::buildVjp(mlir::OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                  ArrayRef<bool> needed,
                                  SmallVectorImpl<Value>& operandCotangents) {
  if (!getCut().empty()) {
    return emitOpError("of a piece has no derivative: differentiate the whole");
  }
  operandCotangents.assign(getNumOperands(), Value());
  if (needed[0] && resultCotangents[0]) {
    Value g = resultCotangents[0];
    operandCotangents[0] =
        DropoutOp::create(builder, getLoc(), g.getType(), g, getRest(), getRatio(), getSite());
  }
  return success();
}

}  // namespace oriel::ir
