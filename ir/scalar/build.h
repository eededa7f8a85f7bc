// What models of ScalarOpInterface build with: one op of `arith` or `math` at a time, at one place.
#ifndef ORIEL_IR_SCALAR_BUILD_H_
#define ORIEL_IR_SCALAR_BUILD_H_

#include <cstdint>
#include <utility>

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/IR/Builders.h"

namespace oriel::ir {

inline bool isFloat(mlir::Value value) { return llvm::isa<mlir::FloatType>(value.getType()); }

struct At {
  mlir::OpBuilder& builder;
  mlir::Location loc;

  template <typename Op, typename... Args>
  mlir::Value make(Args&&... args) const {
    return Op::create(builder, loc, std::forward<Args>(args)...);
  }
  mlir::Value number(mlir::Type type, int64_t value) const {
    mlir::TypedAttr attribute;
    if (llvm::isa<mlir::FloatType>(type)) {
      attribute = builder.getFloatAttr(type, static_cast<double>(value));
    } else {
      attribute = builder.getIntegerAttr(type, value);
    }
    return make<mlir::arith::ConstantOp>(attribute);
  }
  mlir::Value single(float value) const {
    return make<mlir::arith::ConstantOp>(builder.getF32FloatAttr(value));
  }
  mlir::Value add(mlir::Value a, mlir::Value b) const { return make<mlir::arith::AddFOp>(a, b); }
  mlir::Value sub(mlir::Value a, mlir::Value b) const { return make<mlir::arith::SubFOp>(a, b); }
  mlir::Value mul(mlir::Value a, mlir::Value b) const { return make<mlir::arith::MulFOp>(a, b); }
  mlir::Value div(mlir::Value a, mlir::Value b) const { return make<mlir::arith::DivFOp>(a, b); }
  mlir::Value neg(mlir::Value a) const { return make<mlir::arith::NegFOp>(a); }
  mlir::Value compare(mlir::arith::CmpFPredicate floats, mlir::arith::CmpIPredicate integers,
                      mlir::Value a, mlir::Value b) const {
    if (isFloat(a)) return make<mlir::arith::CmpFOp>(floats, a, b);
    return make<mlir::arith::CmpIOp>(integers, a, b);
  }
  mlir::Value select(mlir::Value condition, mlir::Value yes, mlir::Value no) const {
    return make<mlir::arith::SelectOp>(condition, yes, no);
  }
  mlir::Value greater(mlir::Value a, mlir::Value b) const {
    return compare(mlir::arith::CmpFPredicate::OGT, mlir::arith::CmpIPredicate::sgt, a, b);
  }
  mlir::Value less(mlir::Value a, mlir::Value b) const {
    return compare(mlir::arith::CmpFPredicate::OLT, mlir::arith::CmpIPredicate::slt, a, b);
  }
  mlir::Value isNan(mlir::Value a) const {
    return make<mlir::arith::CmpFOp>(mlir::arith::CmpFPredicate::UNE, a, a);
  }
};

}  // namespace oriel::ir

#endif  // ORIEL_IR_SCALAR_BUILD_H_
