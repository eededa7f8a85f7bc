// A plugin of ops with mistakes (wrong_ops.td), as one would write it outside of this repository.
#include "driver/plugin.h"
#include "ir/interfaces/interfaces.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/rule_builder.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpImplementation.h"
#include "tests/lit/plugin/wrong_dialect.h.inc"

#define GET_OP_CLASSES
#include "tests/lit/plugin/wrong_dialect.cc.inc"
#include "tests/lit/plugin/wrong_ops.h.inc"

#define GET_OP_CLASSES
#include "tests/lit/plugin/wrong_ops.cc.inc"

namespace wrong {

using oriel::ir::RuleBuilder;
using oriel::ir::shapeOf;
using oriel::ir::ShardingRule;

void WrongDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "tests/lit/plugin/wrong_ops.cc.inc"
      >();
}

mlir::LogicalResult DerivativeOp::buildVjp(mlir::OpBuilder& builder,
                                           llvm::ArrayRef<mlir::Value> resultCotangents,
                                           llvm::ArrayRef<bool> needed,
                                           llvm::SmallVectorImpl<mlir::Value>& operandCotangents) {
  for (unsigned i : {0U, 1U}) {
    mlir::Value cotangent;
    if (resultCotangents[0] && needed[i]) {
      cotangent = oriel::ir::MulOp::create(builder, getLoc(), resultCotangents[0], getOperand(i));
    }
    operandCotangents.push_back(cotangent);
  }
  return mlir::success();
}

ShardingRule LinearOp::getShardingRule() {
  RuleBuilder rule(*this);
  const oriel::ir::Dims dims = rule.parallel(shapeOf(getResult()));
  rule.operand(0, dims);
  rule.operand(1, dims);
  rule.result(0, dims);
  rule.linearIn({0, 1});
  return rule.take();
}

ShardingRule KindOp::getShardingRule() {
  RuleBuilder rule(*this);
  const int row = rule.parallel(shapeOf(getInput())[0]);
  const int inner = rule.add(shapeOf(getInput())[1], oriel::ir::FactorKind::kMax);
  const int column = rule.parallel(shapeOf(getWeight())[1]);
  rule.operand(0, {row, inner});
  rule.operand(1, {inner, column});
  rule.result(0, {row, column});
  return rule.take();
}

ShardingRule SplitOp::getShardingRule() {
  RuleBuilder rule(*this);
  const oriel::ir::Dims dims = rule.parallel(shapeOf(getInput()));
  rule.operand(0, dims);
  rule.result(0, dims);
  return rule.take();
}

}  // namespace wrong

ORIEL_COMPILER_PLUGIN(registry) { registry.dialects.insert<wrong::WrongDialect>(); }
