// The ops of ir/oriel/elementwise.td element by element. Each does what its host kernel does
// (kernels/elementwise), whose comments say why.
#include "ir/oriel/oriel.h"
#include "ir/scalar/functions.h"
#include "ir/scalar/models.h"
#include "ir/scalar/scalar.h"
#include "mlir/IR/TypeUtilities.h"

namespace oriel::ir {

mlir::Type computeType(mlir::Type element) {
  if (element.isBF16()) return mlir::Float32Type::get(element.getContext());
  const bool known = element.isF32() || element.isF64() || element.isSignlessInteger(1) ||
                     element.isSignlessInteger(32) || element.isSignlessInteger(64);
  return known ? element : mlir::Type();
}

namespace {

using mlir::failure;
using mlir::Location;
using mlir::LogicalResult;
using mlir::OpBuilder;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::ValueRange;
namespace arith = mlir::arith;
using arith::CmpFPredicate;
using arith::CmpIPredicate;

// Each builds the result, or gives null. `x` are the operands.
template <typename Float, typename Integer>
Value arithmetic(const At& at, ValueRange x) {
  if (isFloat(x[0])) return at.make<Float>(x[0], x[1]);
  return at.make<Integer>(x[0], x[1]);
}

// Integers may be divided by zero, which is an error of the data.
Value quotient(const At& at, ValueRange x) {
  return isFloat(x[0]) ? at.make<arith::DivFOp>(x[0], x[1]) : Value();
}

Value maximum(const At& at, ValueRange x) {
  Value first = at.greater(x[0], x[1]);
  if (isFloat(x[0])) first = at.make<arith::OrIOp>(first, at.isNan(x[0]));
  return at.select(first, x[0], x[1]);
}

Value minimum(const At& at, ValueRange x) {
  Value first = at.less(x[0], x[1]);
  if (isFloat(x[0])) first = at.make<arith::OrIOp>(first, at.isNan(x[0]));
  return at.select(first, x[0], x[1]);
}

template <CmpFPredicate floats, CmpIPredicate integers>
Value comparison(const At& at, ValueRange x) {
  // Booleans are 0 and 1, not 0 and -1.
  if (x[0].getType().isInteger(1) && integers != CmpIPredicate::eq) return {};
  return at.compare(floats, integers, x[0], x[1]);
}

template <typename Op>
Value logical(const At& at, ValueRange x) {
  return at.make<Op>(x[0], x[1]);
}

Value negation(const At& at, ValueRange x) {
  if (isFloat(x[0])) return at.make<arith::NegFOp>(x[0]);
  return at.make<arith::SubIOp>(at.number(x[0].getType(), 0), x[0]);
}

Value absolute(const At& at, ValueRange x) {
  if (isFloat(x[0])) return at.make<mlir::math::AbsFOp>(x[0]);
  Value negative = at.make<arith::SubIOp>(at.number(x[0].getType(), 0), x[0]);
  return at.select(at.less(x[0], at.number(x[0].getType(), 0)), negative, x[0]);
}

Value squareRoot(const At& at, ValueRange x) { return at.make<mlir::math::SqrtOp>(x[0]); }

Value inverse(const At& at, Value x) {
  return at.make<arith::DivFOp>(at.number(x.getType(), 1), x);
}
Value reciprocal(const At& at, ValueRange x) { return inverse(at, x[0]); }
Value inverseRoot(const At& at, ValueRange x) { return inverse(at, squareRoot(at, x)); }

Value rectified(const At& at, ValueRange x) {
  Value zero = at.number(x[0].getType(), 0);
  return at.select(at.less(x[0], zero), zero, x[0]);
}

Value sign(const At& at, ValueRange x) {
  mlir::Type type = x[0].getType();
  Value zero = at.number(type, 0);
  Value notAbove = at.select(at.less(x[0], zero), at.number(type, -1), x[0]);
  return at.select(at.greater(x[0], zero), at.number(type, 1), notAbove);
}

Value negated(const At& at, ValueRange x) {
  return at.make<arith::XOrIOp>(x[0], at.number(x[0].getType(), 1));
}

Value choice(const At& at, ValueRange x) { return at.select(x[0], x[1], x[2]); }

// To `target`, what is stored; a float never becomes an integer here, for that saturates.
Value converted(const At& at, Value x, mlir::Type target) {
  mlir::Type type = computeType(target), from = x.getType();
  if (type == from) return x;
  if (type.isInteger(1)) {
    return at.compare(CmpFPredicate::UNE, CmpIPredicate::ne, x, at.number(from, 0));
  }
  const bool toFloat = llvm::isa<mlir::FloatType>(type);
  if (isFloat(x)) {
    if (!toFloat) return {};
    if (type.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth()) {
      return at.make<arith::ExtFOp>(type, x);
    }
    return at.make<arith::TruncFOp>(type, x);
  }
  if (from.isInteger(1)) {
    if (toFloat) return at.make<arith::UIToFPOp>(type, x);
    return at.make<arith::ExtUIOp>(type, x);
  }
  if (toFloat) return at.make<arith::SIToFPOp>(type, x);
  if (type.getIntOrFloatBitWidth() > from.getIntOrFloatBitWidth()) {
    return at.make<arith::ExtSIOp>(type, x);
  }
  return at.make<arith::TruncIOp>(type, x);
}

// Only f32 has a form; f64 is left to the C library.
template <Value (*build)(const At&, Value)>
Value function(const At& at, ValueRange x) {
  return x[0].getType().isF32() ? build(at, x[0]) : Value();
}

template <typename Op, Value (*build)(const At&, ValueRange), bool approximated>
struct Model : ScalarOpInterface::ExternalModel<Model<Op, build, approximated>, Op> {
  LogicalResult buildScalar(Operation*, OpBuilder& builder, Location loc, ValueRange operands,
                            llvm::SmallVectorImpl<Value>& results) const {
    Value result = build({builder, loc}, operands);
    if (!result) return failure();
    results.push_back(result);
    return success();
  }
  bool isApproximated(Operation*) const { return approximated; }
};

struct CastModel : ScalarOpInterface::ExternalModel<CastModel, CastOp> {
  LogicalResult buildScalar(Operation* op, OpBuilder& builder, Location loc, ValueRange operands,
                            llvm::SmallVectorImpl<Value>& results) const {
    mlir::Type target = mlir::getElementTypeOrSelf(op->getResult(0).getType());
    Value result = converted({builder, loc}, operands[0], target);
    if (!result) return failure();
    results.push_back(result);
    return success();
  }
};

template <typename Op, Value (*build)(const At&, ValueRange), bool approximated = false>
void attach(mlir::MLIRContext* context) {
  Op::template attachInterface<Model<Op, build, approximated>>(*context);
}
template <typename Op, Value (*build)(const At&, Value)>
void attachFunction(mlir::MLIRContext* context) {
  attach<Op, function<build>, /*approximated=*/true>(context);
}

}  // namespace

void registerScalarModels(mlir::DialectRegistry& registry) {
  registry.insert<arith::ArithDialect, mlir::math::MathDialect>();
  registry.addExtension(+[](mlir::MLIRContext* context, OrielDialect*) {
    attach<AddOp, arithmetic<arith::AddFOp, arith::AddIOp>>(context);
    attach<SubOp, arithmetic<arith::SubFOp, arith::SubIOp>>(context);
    attach<MulOp, arithmetic<arith::MulFOp, arith::MulIOp>>(context);
    attach<DivOp, quotient>(context);
    attach<MaxOp, maximum>(context);
    attach<MinOp, minimum>(context);
    attach<EqualOp, comparison<CmpFPredicate::OEQ, CmpIPredicate::eq>>(context);
    attach<LessOp, comparison<CmpFPredicate::OLT, CmpIPredicate::slt>>(context);
    attach<LessEqualOp, comparison<CmpFPredicate::OLE, CmpIPredicate::sle>>(context);
    attach<GreaterOp, comparison<CmpFPredicate::OGT, CmpIPredicate::sgt>>(context);
    attach<GreaterEqualOp, comparison<CmpFPredicate::OGE, CmpIPredicate::sge>>(context);
    attach<AndOp, logical<arith::AndIOp>>(context);
    attach<OrOp, logical<arith::OrIOp>>(context);
    attach<XorOp, logical<arith::XOrIOp>>(context);
    attach<NegOp, negation>(context);
    attach<AbsOp, absolute>(context);
    attach<SqrtOp, squareRoot>(context);
    attach<RsqrtOp, inverseRoot>(context);
    attach<ReciprocalOp, reciprocal>(context);
    attach<ReluOp, rectified>(context);
    attach<SignOp, sign>(context);
    attach<NotOp, negated>(context);
    attach<SelectOp, choice>(context);
    CastOp::attachInterface<CastModel>(*context);
    attachFunction<ExpOp, expOf>(context);
    attachFunction<SigmoidOp, sigmoidOf>(context);
    attachFunction<TanhOp, tanhOf>(context);
    attachFunction<ErfOp, erfOf>(context);
    attachActivationModels(context);
    attachReductionModels(context);
  });
}

}  // namespace oriel::ir

#include "ir/scalar/scalar.cc.inc"
