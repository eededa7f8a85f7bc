// Arithmetic, comparisons, logic and casts.
#include <limits>

#include "frontend/graph.h"
#include "frontend/node_importer.h"
#include "frontend/op_registry.h"
#include "frontend/ops/ops.h"
#include "frontend/tensor_data.h"

namespace oriel {
namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::Value;

template <typename OpTy>
LogicalResult importUnary(NodeImporter& n) {
  return n.replace(n.createLike<OpTy>(n.operand(0)));
}

template <typename OpTy>
LogicalResult importBinary(NodeImporter& n) {
  return n.replace(n.create<OpTy>(n.operand(0), n.operand(1)));
}

// One operand or more, combined from the left.
template <typename OpTy>
Value combineAll(NodeImporter& n) {
  Value result = n.operand(0);
  for (unsigned i = 1; i < n.numOperands(); ++i) {
    result = n.create<OpTy>(result, n.operand(i));
  }
  return result;
}

template <typename OpTy>
LogicalResult importVariadic(NodeImporter& n) {
  return n.replace(combineAll<OpTy>(n));
}

LogicalResult importMean(NodeImporter& n) {
  Value sum = combineAll<ir::AddOp>(n);
  return n.replace(n.create<ir::MulOp>(sum, n.scalarLike(sum, 1.0 / n.numOperands())));
}

// No op of ONNX; tf2onnx leaves TensorFlow's.
LogicalResult importErfc(NodeImporter& n) {
  Value erf = n.create<ir::ErfOp>(n.operand(0));
  return n.replace(n.create<ir::SubOp>(n.scalarLike(erf, 1), erf));
}

// The exponent may have a type of its own; the result has the base's.
LogicalResult importPow(NodeImporter& n) {
  Value base = n.operand(0), exponent = n.operand(1);
  if (!base || !exponent) {
    return failure();
  }
  return n.replace(n.create<ir::PowOp>(base, n.cast(exponent, elementOf(base))));
}

// The remainder has the divisor's sign, or with fmod the dividend's: that of the absolute values,
// where there is but one sign.
LogicalResult importMod(NodeImporter& n) {
  if (n.attrInt("fmod", 0) == 0) {
    return importBinary<ir::ModOp>(n);
  }
  Value dividend = n.operand(0);
  Value remainder =
      n.create<ir::ModOp>(n.createLike<ir::AbsOp>(dividend), n.createLike<ir::AbsOp>(n.operand(1)));
  Value isNegative = n.create<ir::LessOp>(dividend, n.scalarLike(dividend, 0));
  return n.replace(
      n.create<ir::SelectOp>(isNegative, n.createLike<ir::NegOp>(remainder), remainder));
}

LogicalResult importClip(NodeImporter& n) {
  Value result = n.operand(0);
  if (Value low = n.optionalOperand(1)) {
    result = n.create<ir::MaxOp>(result, low);
  }
  if (Value high = n.optionalOperand(2)) {
    result = n.create<ir::MinOp>(result, high);
  }
  return n.replace(result);
}

LogicalResult importWhere(NodeImporter& n) {
  return n.replace(n.create<ir::SelectOp>(n.operand(0), n.operand(1), n.operand(2)));
}

LogicalResult importCast(NodeImporter& n) {
  mlir::Type element = n.attrType("to", "casts to");
  return n.replace(element ? n.cast(n.operand(0), element) : Value());
}

LogicalResult importCastLike(NodeImporter& n) {
  Value like = n.operand(1);
  return n.replace(like ? n.cast(n.operand(0), elementOf(like)) : Value());
}

// Only NaN differs from itself.
LogicalResult importIsNaN(NodeImporter& n) {
  Value x = n.operand(0);
  return n.replace(n.createLike<ir::NotOp>(n.create<ir::EqualOp>(x, x)));
}

LogicalResult importIsInf(NodeImporter& n) {
  Value x = n.operand(0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  bool positive = n.attrInt("detect_positive", 1) != 0;
  bool negative = n.attrInt("detect_negative", 1) != 0;
  if (positive && negative) {
    x = n.createLike<ir::AbsOp>(x);
  } else if (negative) {
    x = n.createLike<ir::NegOp>(x);
  }
  // Nothing equals NaN.
  double sought = positive || negative ? kInfinity : std::numeric_limits<double>::quiet_NaN();
  return n.replace(n.create<ir::EqualOp>(x, n.scalarLike(x, sought)));
}

}  // namespace

void registerElementwiseOps(OpRegistry& registry) {
  registry.add("Neg", 13, importUnary<ir::NegOp>);
  registry.add("Abs", 13, importUnary<ir::AbsOp>);
  registry.add("Exp", 13, importUnary<ir::ExpOp>);
  registry.add("Log", 13, importUnary<ir::LogOp>);
  registry.add("Sqrt", 13, importUnary<ir::SqrtOp>);
  registry.add("Reciprocal", 13, importUnary<ir::ReciprocalOp>);
  registry.add("Sin", 13, importUnary<ir::SinOp>);
  registry.add("Cos", 13, importUnary<ir::CosOp>);
  registry.add("Tan", 7, importUnary<ir::TanOp>);
  registry.add("Asin", 7, importUnary<ir::AsinOp>);
  registry.add("Acos", 7, importUnary<ir::AcosOp>);
  registry.add("Atan", 7, importUnary<ir::AtanOp>);
  registry.add("Sinh", 9, importUnary<ir::SinhOp>);
  registry.add("Cosh", 9, importUnary<ir::CoshOp>);
  registry.add("Asinh", 9, importUnary<ir::AsinhOp>);
  registry.add("Acosh", 9, importUnary<ir::AcoshOp>);
  registry.add("Atanh", 9, importUnary<ir::AtanhOp>);
  registry.add("Tanh", 13, importUnary<ir::TanhOp>);
  registry.add("Sigmoid", 13, importUnary<ir::SigmoidOp>);
  registry.add("Erf", 13, importUnary<ir::ErfOp>);
  registry.add("Erfc", 1, importErfc);
  registry.add("Relu", 13, importUnary<ir::ReluOp>);
  registry.add("Sign", 13, importUnary<ir::SignOp>);
  registry.add("Floor", 13, importUnary<ir::FloorOp>);
  registry.add("Ceil", 13, importUnary<ir::CeilOp>);
  registry.add("Round", 11, importUnary<ir::RoundOp>);
  registry.add("StopGradient", 1, importUnary<ir::StopGradientOp>, kPublicDomain);
  registry.add("Not", 13, importUnary<ir::NotOp>);
  registry.add("IsNaN", 13, importIsNaN);
  registry.add("IsInf", 10, importIsInf);

  registry.add("Add", 13, importBinary<ir::AddOp>);
  registry.add("Sub", 13, importBinary<ir::SubOp>);
  registry.add("Mul", 13, importBinary<ir::MulOp>);
  registry.add("Div", 13, importBinary<ir::DivOp>);
  registry.add("Pow", 13, importPow);
  registry.add("Mod", 13, importMod);
  registry.add("And", 13, importBinary<ir::AndOp>);
  registry.add("Or", 13, importBinary<ir::OrOp>);
  registry.add("Xor", 13, importBinary<ir::XorOp>);
  registry.add("Equal", 13, importBinary<ir::EqualOp>);
  registry.add("Less", 13, importBinary<ir::LessOp>);
  registry.add("LessOrEqual", 13, importBinary<ir::LessEqualOp>);
  registry.add("Greater", 13, importBinary<ir::GreaterOp>);
  registry.add("GreaterOrEqual", 13, importBinary<ir::GreaterEqualOp>);

  registry.add("Max", 13, importVariadic<ir::MaxOp>);
  registry.add("Min", 13, importVariadic<ir::MinOp>);
  registry.add("Sum", 13, importVariadic<ir::AddOp>);
  registry.add("Mean", 13, importMean);
  registry.add("Clip", 13, importClip);
  registry.addConstantOperands("Clip", {1, 2});
  registry.add("Where", 13, importWhere);
  registry.add("Cast", 13, importCast);
  registry.add("CastLike", 15, importCastLike);
}

}  // namespace oriel
