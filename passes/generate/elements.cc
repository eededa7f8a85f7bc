#include "passes/generate/elements.h"

#include "ir/interfaces/tensor_type.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"

namespace oriel {

using mlir::Type;
using mlir::Value;
namespace arith = mlir::arith;

Type storedType(Type element) {
  if (element.isBF16()) return mlir::IntegerType::get(element.getContext(), 16);
  if (element.isInteger(1)) return mlir::IntegerType::get(element.getContext(), 8);
  return element;
}

Value Elements::load(Value stored, Type element) {
  if (element.isBF16()) return widen(stored);
  if (!element.isInteger(1)) return stored;
  return arith::CmpIOp::create(builder_, loc_, arith::CmpIPredicate::ne, stored,
                               constant(stored.getType(), 0));
}

Value Elements::store(Value computed, Type element) {
  if (element.isBF16()) return narrow(computed);
  if (!element.isInteger(1)) return computed;
  return arith::ExtUIOp::create(builder_, loc_, builder_.getI8Type(), computed);
}

Value Elements::rounded(Value computed, Type element) {
  return element.isBF16() ? widen(narrow(computed)) : computed;
}

Value Elements::constant(Type type, int64_t value) {
  return arith::ConstantOp::create(builder_, loc_, builder_.getIntegerAttr(type, value));
}

Value Elements::widen(Value half) {
  Type i32 = builder_.getI32Type();
  Value bits = arith::ExtUIOp::create(builder_, loc_, i32, half);
  Value high = arith::ShLIOp::create(builder_, loc_, bits, constant(i32, 16));
  return arith::BitcastOp::create(builder_, loc_, builder_.getF32Type(), high);
}

// As FloatToBFloat16 (runtime/base/float16.h), NaN too, on every target.
Value Elements::narrow(Value value) {
  Type i32 = builder_.getI32Type();
  Value bits = arith::BitcastOp::create(builder_, loc_, i32, value);
  Value high = arith::ShRUIOp::create(builder_, loc_, bits, constant(i32, 16));
  Value odd = arith::AndIOp::create(builder_, loc_, high, constant(i32, 1));
  Value up = arith::AddIOp::create(builder_, loc_, bits, constant(i32, 0x7fff));
  Value sum = arith::AddIOp::create(builder_, loc_, up, odd);
  Value number = arith::ShRUIOp::create(builder_, loc_, sum, constant(i32, 16));
  Value quiet = arith::OrIOp::create(builder_, loc_, high, constant(i32, 0x40));
  Value isNan = arith::CmpFOp::create(builder_, loc_, arith::CmpFPredicate::UNE, value, value);
  Value chosen = arith::SelectOp::create(builder_, loc_, isNan, quiet, number);
  return arith::TruncIOp::create(builder_, loc_, builder_.getI16Type(), chosen);
}

}  // namespace oriel
