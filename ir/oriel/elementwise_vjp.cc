// Vector-Jacobian products of the elementwise ops.
#include <cmath>

#include "ir/oriel/builders.h"
#include "ir/oriel/oriel.h"

using namespace mlir;

namespace oriel::ir {
namespace {

// Arithmetic on values at one location, to keep the formulas readable.
struct Formula {
  OpBuilder& builder;
  Location loc;

  Value add(Value a, Value b) { return AddOp::create(builder, loc, a, b); }
  Value sub(Value a, Value b) { return SubOp::create(builder, loc, a, b); }
  Value mul(Value a, Value b) { return MulOp::create(builder, loc, a, b); }
  Value mul(Value a, double b) { return mul(a, scalar(b, a)); }
  Value div(Value a, Value b) { return DivOp::create(builder, loc, a, b); }
  Value pow(Value a, Value b) { return PowOp::create(builder, loc, a, b); }
  Value rsqrt(Value a) { return RsqrtOp::create(builder, loc, a); }
  Value neg(Value a) { return NegOp::create(builder, loc, a); }
  Value select(Value condition, Value a, Value b) {
    return SelectOp::create(builder, loc, condition, a, b);
  }
  Value equal(Value a, Value b) { return EqualOp::create(builder, loc, a, b); }
  Value greater(Value a, Value b) { return GreaterOp::create(builder, loc, a, b); }
  Value scalar(double value, Value like) { return scalarConstant(builder, loc, value, like); }
  // What a slope of roots divides by, so that it is 0 where the root is. Roots rise without bound
  // there. A norm, a deviation, the magnitude of a complex number do not, and a file has them as
  // roots of sums: they have the subgradient 0, as in PyTorch.
  Value infiniteWhereZero(Value root, Value value) {
    return select(equal(root, scalar(0, root)), scalar(INFINITY, value), value);
  }
};

LogicalResult unaryVjp(Operation* op, OpBuilder& builder, ArrayRef<Value> resultCotangents,
                       ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents,
                       llvm::function_ref<Value(Formula, Value)> build) {
  operandCotangents.assign(1, Value());
  if (needed[0] && resultCotangents[0]) {
    operandCotangents[0] = build(Formula{builder, op->getLoc()}, resultCotangents[0]);
  }
  return success();
}

// `build` gives the cotangent of operand 0 or 1 before the sum over repeated dimensions.
LogicalResult binaryVjp(Operation* op, OpBuilder& builder, ArrayRef<Value> resultCotangents,
                        ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents,
                        llvm::function_ref<Value(Formula, Value, unsigned)> build) {
  operandCotangents.assign(2, Value());
  if (!resultCotangents[0]) return success();
  for (unsigned i = 0; i < 2; ++i) {
    if (!needed[i]) continue;
    Value cotangent = build(Formula{builder, op->getLoc()}, resultCotangents[0], i);
    operandCotangents[i] =
        sumToShape(builder, op->getLoc(), cotangent, op->getOperand(i).getType());
  }
  return success();
}

// The operand that won takes the cotangent; equal operands take half each.
Value chosenCotangent(Formula f, Value g, Value won, Value lhs, Value rhs) {
  Value tie = f.select(f.equal(lhs, rhs), f.mul(g, 0.5), f.scalar(0, g));
  return f.select(won, g, tie);
}

// The same, but that of equal operands the left one takes it, where the op says so.
Value chosenOfMax(MaxOp op, Formula f, Value g, unsigned operand) {
  Value a = op.getLhs(), b = op.getRhs();
  if (!op->hasAttr(kFirstOfEqualAttr)) {
    return operand == 0 ? chosenCotangent(f, g, f.greater(a, b), a, b)
                        : chosenCotangent(f, g, f.greater(b, a), a, b);
  }
  Value isRight = f.greater(b, a), zero = f.scalar(0, g);
  return operand == 0 ? f.select(isRight, zero, g) : f.select(isRight, g, zero);
}

}  // namespace

#define ORIEL_UNARY_VJP(OpT, formula)                                                             \
  LogicalResult OpT::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,               \
                              ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) { \
    return unaryVjp(*this, builder, resultCotangents, needed, operandCotangents,                  \
                    [&](Formula f, Value g) -> Value {                                            \
                      [[maybe_unused]] Value x = getInput(), y = getResult();                     \
                      return formula;                                                             \
                    });                                                                           \
  }

ORIEL_UNARY_VJP(NegOp, f.neg(g))
ORIEL_UNARY_VJP(AbsOp, f.mul(g, SignOp::create(f.builder, f.loc, x)))
ORIEL_UNARY_VJP(ExpOp, f.mul(g, y))
ORIEL_UNARY_VJP(LogOp, f.div(g, x))
ORIEL_UNARY_VJP(SqrtOp, f.div(f.mul(g, 0.5), f.infiniteWhereZero(y, y)))
ORIEL_UNARY_VJP(RsqrtOp, f.mul(f.mul(g, -0.5), f.mul(y, f.mul(y, y))))
ORIEL_UNARY_VJP(ReciprocalOp, f.neg(f.mul(g, f.mul(y, y))))
ORIEL_UNARY_VJP(SinOp, f.mul(g, CosOp::create(f.builder, f.loc, x)))
ORIEL_UNARY_VJP(CosOp, f.neg(f.mul(g, SinOp::create(f.builder, f.loc, x))))
ORIEL_UNARY_VJP(TanOp, f.mul(g, f.add(f.mul(y, y), f.scalar(1, y))))
ORIEL_UNARY_VJP(AsinOp, f.mul(g, f.rsqrt(f.sub(f.scalar(1, x), f.mul(x, x)))))
ORIEL_UNARY_VJP(AcosOp, f.neg(f.mul(g, f.rsqrt(f.sub(f.scalar(1, x), f.mul(x, x))))))
ORIEL_UNARY_VJP(AtanOp, f.div(g, f.add(f.mul(x, x), f.scalar(1, x))))
ORIEL_UNARY_VJP(SinhOp, f.mul(g, CoshOp::create(f.builder, f.loc, x)))
ORIEL_UNARY_VJP(CoshOp, f.mul(g, SinhOp::create(f.builder, f.loc, x)))
ORIEL_UNARY_VJP(AsinhOp, f.mul(g, f.rsqrt(f.add(f.mul(x, x), f.scalar(1, x)))))
ORIEL_UNARY_VJP(AcoshOp, f.mul(g, f.rsqrt(f.sub(f.mul(x, x), f.scalar(1, x)))))
ORIEL_UNARY_VJP(AtanhOp, f.div(g, f.sub(f.scalar(1, x), f.mul(x, x))))
ORIEL_UNARY_VJP(TanhOp, f.mul(g, f.sub(f.scalar(1, y), f.mul(y, y))))
ORIEL_UNARY_VJP(SigmoidOp, f.mul(g, f.mul(y, f.sub(f.scalar(1, y), y))))
// 2/√π exp(-x²)
ORIEL_UNARY_VJP(ErfOp,
                f.mul(g, f.mul(ExpOp::create(f.builder, f.loc, f.neg(f.mul(x, x))), M_2_SQRTPI)))
ORIEL_UNARY_VJP(ReluOp, f.select(f.greater(y, f.scalar(0, y)), g, f.scalar(0, g)))
// Nothing, which is 0: what only these read needs no backward.
ORIEL_UNARY_VJP(SignOp, Value())
ORIEL_UNARY_VJP(FloorOp, Value())
ORIEL_UNARY_VJP(CeilOp, Value())
ORIEL_UNARY_VJP(RoundOp, Value())
ORIEL_UNARY_VJP(StopGradientOp, Value())

#undef ORIEL_UNARY_VJP

#define ORIEL_BINARY_VJP(OpT, lhsFormula, rhsFormula)                                             \
  LogicalResult OpT::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,               \
                              ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) { \
    return binaryVjp(*this, builder, resultCotangents, needed, operandCotangents,                 \
                     [&](Formula f, Value g, unsigned operand) -> Value {                         \
                       [[maybe_unused]] Value a = getLhs(), b = getRhs(), y = getResult();        \
                       return operand == 0 ? lhsFormula : rhsFormula;                             \
                     });                                                                          \
  }

ORIEL_BINARY_VJP(AddOp, g, g)
ORIEL_BINARY_VJP(SubOp, g, f.neg(g))
ORIEL_BINARY_VJP(MulOp, f.mul(g, b), f.mul(g, a))
ORIEL_BINARY_VJP(DivOp, f.div(g, b), f.neg(f.div(f.mul(g, y), b)))
ORIEL_BINARY_VJP(MaxOp, chosenOfMax(*this, f, g, 0), chosenOfMax(*this, f, g, 1))
ORIEL_BINARY_VJP(MinOp, chosenCotangent(f, g, f.greater(b, a), a, b),
                 chosenCotangent(f, g, f.greater(a, b), a, b))

// a - floor(a / b) b
ORIEL_BINARY_VJP(ModOp, g, f.neg(f.mul(g, f.div(f.sub(a, y), b))))

#undef ORIEL_BINARY_VJP

LogicalResult PowOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                              ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  Value a = getLhs(), b = getRhs(), y = getResult();
  auto base = [&](Formula f, Value g) -> Value {
    // A constant exponent is the usual case, 2 the most usual one.
    SplatElementsAttr exponent;
    if (matchPattern(b, m_Constant(&exponent))) {
      double p = exponent.getSplatValue<APFloat>().convertToDouble();
      if (p == 0) return f.mul(g, 0.0);
      Value x = p > 0 && p < 1 ? f.infiniteWhereZero(y, a) : a;
      Value power = p == 2 ? a : f.pow(x, f.scalar(p - 1, a));
      return f.mul(g, f.mul(power, p));
    }
    // x^0 is 1 everywhere, 0 included, where x^-1 is not finite.
    Value slope = f.mul(b, f.pow(a, f.sub(b, f.scalar(1, b))));
    Value zero = f.scalar(0, b);
    return f.mul(g, f.select(f.equal(b, zero), zero, slope));
  };
  auto exponent = [&](Formula f, Value g) -> Value {
    // 0^b is 0 for all b > 0, although log 0 is not finite.
    Value zero = f.scalar(0, a);
    Value atZero = AndOp::create(builder, getLoc(), f.equal(a, zero),
                                 GreaterEqualOp::create(builder, getLoc(), b, zero));
    Value slope = f.mul(y, LogOp::create(builder, getLoc(), a));
    return f.mul(g, f.select(atZero, zero, slope));
  };
  return binaryVjp(*this, builder, resultCotangents, needed, operandCotangents,
                   [&](Formula f, Value g, unsigned operand) {
                     return operand == 0 ? base(f, g) : exponent(f, g);
                   });
}

LogicalResult SelectOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                                 ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(3, Value());
  Value g = resultCotangents[0];
  if (!g) return success();
  Formula f{builder, getLoc()};
  for (unsigned i = 1; i < 3; ++i) {
    if (!needed[i]) continue;
    Value zero = f.scalar(0, g);
    Value chosen = i == 1 ? f.select(getCondition(), g, zero) : f.select(getCondition(), zero, g);
    operandCotangents[i] = sumToShape(builder, getLoc(), chosen, getOperand(i).getType());
  }
  return success();
}

LogicalResult CastOp::buildVjp(OpBuilder& builder, ArrayRef<Value> resultCotangents,
                               ArrayRef<bool> needed, SmallVectorImpl<Value>& operandCotangents) {
  operandCotangents.assign(1, Value());
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(getResult().getType()));
  // An integer result is constant almost everywhere.
  if (!needed[0] || !resultCotangents[0] || !isFloat) return success();
  operandCotangents[0] =
      CastOp::create(builder, getLoc(), getInput().getType(), resultCotangents[0]);
  return success();
}

}  // namespace oriel::ir
