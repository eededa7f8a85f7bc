// What the compiler asks the op: types, cost, and its derivative.
#include "snake.h"

#include "ir/oriel/inference.h"
#include "ir/oriel/rule_builder.h"
#include "snake_dialect.cc.inc"

#define GET_OP_CLASSES
#include "snake_ops.cc.inc"

namespace acme {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using oriel::ir::InferenceContext;

// Shapes come from a user's file: what does not fit is refused, never asserted.
LogicalResult checkOperands(const InferenceContext& context, Value input, Value alpha) {
  llvm::ArrayRef<int64_t> shape = oriel::ir::shapeOf(input);
  if (shape.empty()) return context.refuse("expects an input with channels, got a scalar");
  if (failed(context.expectShape("alpha", alpha, {shape.back()}))) return failure();
  return context.expectElementType("alpha", alpha, oriel::ir::elementOf(input));
}

}  // namespace

void AcmeDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "snake_ops.cc.inc"
      >();
}

LogicalResult SnakeOp::inferReturnTypes(mlir::MLIRContext*, std::optional<mlir::Location> location,
                                        Adaptor adaptor,
                                        llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  if (failed(checkOperands(context, adaptor.getInput(), adaptor.getAlpha()))) return failure();
  results.push_back(adaptor.getInput().getType());
  return success();
}

// Two products, a sine, a quotient and a sum.
int64_t SnakeOp::getFlops() {
  return oriel::ir::boundedProduct({5, oriel::ir::elementCount(getType().getShape())});
}

// The kernel reads an element of the input before it writes the same element of the result.
bool SnakeOp::mayOverwrite(unsigned, unsigned operand) { return operand == 0; }

LogicalResult SnakeOp::buildVjp(mlir::OpBuilder& builder, llvm::ArrayRef<Value> resultCotangents,
                                llvm::ArrayRef<bool> needed,
                                llvm::SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(2, Value());
  if (!resultCotangents[0] || (!needed[0] && !needed[1])) return success();
  auto grad = SnakeGradOp::create(builder, getLoc(), resultCotangents[0], getInput(), getAlpha());
  if (needed[0]) operandCotangents[0] = grad.getInputGrad();
  if (needed[1]) operandCotangents[1] = grad.getAlphaGrad();
  return success();
}

LogicalResult SnakeGradOp::inferReturnTypes(mlir::MLIRContext*,
                                            std::optional<mlir::Location> location, Adaptor adaptor,
                                            llvm::SmallVectorImpl<mlir::Type>& results) {
  InferenceContext context(location, getOperationName());
  mlir::Type type = adaptor.getInput().getType();
  if (failed(checkOperands(context, adaptor.getInput(), adaptor.getAlpha())) ||
      failed(context.expectType("a cotangent", adaptor.getCotangent(), type))) {
    return failure();
  }
  results.append({type, adaptor.getAlpha().getType()});
  return success();
}

// Rows and channels split. A rank that has some of the rows has a summand of the α's cotangents.
oriel::ir::ShardingRule SnakeGradOp::getShardingRule() {
  oriel::ir::RuleBuilder rule(*this);
  llvm::ArrayRef<int64_t> shape = oriel::ir::shapeOf(getInput());
  const oriel::ir::Dims rows = rule.sum(shape.drop_back());
  const int channel = rule.parallel(shape.back());
  rule.operand(0, rows + channel);
  rule.operand(1, rows + channel);
  rule.operand(2, {channel});
  rule.result(0, rows + channel);
  rule.result(1, {channel});
  rule.linearIn({0});
  return rule.take();
}

}  // namespace acme
