// Normalisations, softmax and their derivatives as ops whose own rules split the dimension that is
// normalised: means of rows are scaled sums over ranks.
#include <numeric>

#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
#include "ir/oriel/oriel.h"

namespace oriel::ir {

namespace {

using mlir::RankedTensorType;
using mlir::Value;

// Builds ops in the type of the statistics, on rows along the last dimension.
class RowSteps {
 public:
  RowSteps(mlir::OpBuilder& builder, mlir::Operation* op, mlir::Type statistics, int64_t origin)
      : builder_(builder), loc_(op->getLoc()), element_(statistics), origin_(origin) {}

  Value add(Value a, Value b) { return AddOp::create(builder_, loc_, a, b, origin_); }
  Value sub(Value a, Value b) { return SubOp::create(builder_, loc_, a, b, origin_); }
  Value mul(Value a, Value b) { return MulOp::create(builder_, loc_, a, b, origin_); }
  Value div(Value a, Value b) { return DivOp::create(builder_, loc_, a, b, origin_); }
  Value exp(Value a) { return ExpOp::create(builder_, loc_, a, origin_); }
  Value plus(Value a, double b) { return add(a, scalarConstant(builder_, loc_, b, a, origin_)); }

  Value cast(Value value, mlir::Type element) {
    auto type = tensorType(value);
    if (type.getElementType() == element) return value;
    return CastOp::create(builder_, loc_, type.clone(element), value, origin_);
  }
  Value wide(Value value) { return cast(value, element_); }
  // With the element type of `like`.
  Value as(Value value, Value like) { return cast(value, elementOf(like)); }

  // Over a dimension, which stays with size 1.
  Value sum(Value value, int64_t dim) {
    return ReduceSumOp::create(builder_, loc_, value, {dim}, /*keep_dims=*/true, origin_);
  }
  Value max(Value value, int64_t dim) {
    return ReduceMaxOp::create(builder_, loc_, value, {dim}, /*keep_dims=*/true, origin_);
  }
  // [rows.., n] -> [rows.., 1]
  Value mean(Value value) {
    llvm::ArrayRef<int64_t> shape = shapeOf(value);
    const double share = 1.0 / static_cast<double>(shape.back());
    Value total = sum(value, static_cast<int64_t>(shape.size()) - 1);
    return mul(total, scalarConstant(builder_, loc_, share, total, origin_));
  }
  // 1 / √(mean of squares + epsilon), of rows
  Value inverseRoot(Value value, double epsilon) {
    return RsqrtOp::create(builder_, loc_, plus(mean(mul(value, value)), epsilon), origin_);
  }
  // [rows.., n] -> [n]
  Value sumOfRows(Value value) {
    llvm::SmallVector<int64_t> rows(shapeOf(value).size() - 1);
    if (rows.empty()) return value;
    std::iota(rows.begin(), rows.end(), 0);
    return ReduceSumOp::create(builder_, loc_, value, rows, /*keep_dims=*/false, origin_);
  }
  // [rows..] -> [rows.., 1], and back
  Value column(Value statistics) {
    llvm::SmallVector<int64_t> shape(shapeOf(statistics));
    shape.push_back(1);
    return reshape(statistics, shape);
  }
  Value statistics(Value column) { return reshape(column, shapeOf(column).drop_back()); }

  // g - normed · mean(g · normed), of rows: the part of a cotangent across what was normed.
  Value across(Value g, Value normed) { return sub(g, mul(normed, mean(mul(g, normed)))); }

 private:
  Value reshape(Value value, llvm::ArrayRef<int64_t> shape) {
    auto type = tensorType(value).clone(shape);
    return ReshapeOp::create(builder_, loc_, type, value, origin_);
  }

  mlir::OpBuilder& builder_;
  mlir::Location loc_;
  mlir::Type element_;
  int64_t origin_;
};

// What the normed values are multiplied by.
template <typename Op>
Value rmsWeight(Op op, RowSteps& steps) {
  const double offset = op.getWeightOffset();
  Value weight = steps.wide(op.getWeight());
  return offset == 0 ? weight : steps.plus(weight, offset);
}

}  // namespace

llvm::SmallVector<Value> RmsNormOp::decompose(mlir::OpBuilder& builder) {
  RowSteps steps(builder, *this, elementOf(getInvRms()), getOrigin());
  Value x = steps.wide(getInput());
  Value inverse = steps.inverseRoot(x, getEpsilon());
  Value result = steps.mul(steps.mul(x, inverse), rmsWeight(*this, steps));
  return {steps.as(result, getResult()), steps.statistics(inverse)};
}

llvm::SmallVector<Value> RmsNormGradOp::decompose(mlir::OpBuilder& builder) {
  RowSteps steps(builder, *this, elementOf(getInvRms()), getOrigin());
  Value inverse = steps.column(getInvRms());
  Value cotangent = steps.wide(getCotangent());
  Value normed = steps.mul(steps.wide(getInput()), inverse);
  Value g = steps.mul(cotangent, rmsWeight(*this, steps));
  return {steps.as(steps.mul(inverse, steps.across(g, normed)), getInputGrad()),
          steps.as(steps.sumOfRows(steps.mul(cotangent, normed)), getWeightGrad())};
}

llvm::SmallVector<Value> LayerNormOp::decompose(mlir::OpBuilder& builder) {
  RowSteps steps(builder, *this, elementOf(getMean()), getOrigin());
  Value x = steps.wide(getInput());
  Value mean = steps.mean(x);
  Value centered = steps.sub(x, mean);
  Value inverse = steps.inverseRoot(centered, getEpsilon());
  Value result = steps.mul(steps.mul(centered, inverse), steps.wide(getWeight()));
  if (getBias()) result = steps.add(result, steps.wide(getBias()));
  return {steps.as(result, getResult()), steps.statistics(mean), steps.statistics(inverse)};
}

llvm::SmallVector<Value> LayerNormGradOp::decompose(mlir::OpBuilder& builder) {
  RowSteps steps(builder, *this, elementOf(getMean()), getOrigin());
  Value inverse = steps.column(getInvStd());
  Value cotangent = steps.wide(getCotangent());
  Value centered = steps.sub(steps.wide(getInput()), steps.column(getMean()));
  Value normed = steps.mul(centered, inverse);
  Value g = steps.mul(cotangent, steps.wide(getWeight()));
  Value across = steps.sub(steps.across(g, normed), steps.mean(g));
  return {steps.as(steps.mul(inverse, across), getInputGrad()),
          steps.as(steps.sumOfRows(steps.mul(cotangent, normed)), getWeightGrad()),
          steps.as(steps.sumOfRows(cotangent), getBiasGrad())};
}

llvm::SmallVector<Value> SoftmaxOp::decompose(mlir::OpBuilder& builder) {
  RowSteps steps(builder, *this, wideType(elementOf(getInput())), getOrigin());
  const auto dim = static_cast<int64_t>(getDim());
  Value x = steps.wide(getInput());
  Value exp = steps.exp(steps.sub(x, steps.max(x, dim)));
  return {steps.as(steps.div(exp, steps.sum(exp, dim)), getResult())};
}

llvm::SmallVector<Value> SoftmaxGradOp::decompose(mlir::OpBuilder& builder) {
  RowSteps steps(builder, *this, wideType(elementOf(getOutput())), getOrigin());
  Value g = steps.wide(getCotangent()), y = steps.wide(getOutput());
  Value along = steps.sum(steps.mul(g, y), static_cast<int64_t>(getDim()));
  return {steps.as(steps.mul(y, steps.sub(g, along)), getResult())};
}

}  // namespace oriel::ir
