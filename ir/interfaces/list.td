// Ops of which several become one launch.
#ifndef ORIEL_IR_INTERFACES_LIST_TD
#define ORIEL_IR_INTERFACES_LIST_TD

include "mlir/IR/OpBase.td"

def ListedOpInterface : OpInterface<"ListedOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op on one tensor each time, whose kernel takes a list of them: where many small ones come
    one after the other, one launch does them all. The first operands are the tensor's own, the
    others are common to all of a list.
  }];
  let methods = [
    InterfaceMethod<[{
        Whether a list may also give result 0 rounded to tensors of this element type.
      }],
      "bool", "mayRoundTo", (ins "::mlir::Type":$elementType)>,
    InterfaceMethod<[{
        Whether operand 0, of f32, may be bf16 and a remainder in its place (runtime/base/remainder.h):
        the remainder is then the last operand of the tensor's own, and its new value the last result.
      }],
      "bool", "takesRemainder", (ins), "", [{ return false; }]>,
    InterfaceMethod<[{
        How many operands are the tensor's own.
      }],
      "unsigned", "getOwnOperandCount", (ins)>,
    InterfaceMethod<[{
        Builds the op that does what `count` ops with this one's attributes do. Its operands are
        those of all ops that are their own, first the first one of each op and so on, and behind
        them the common ones. Its results are theirs in the same order, and `rounded` behind them:
        result 0 of each op in the given types, or nothing.
      }],
      "::mlir::Operation *", "buildList",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands, "unsigned":$count,
           "::mlir::TypeRange":$rounded)>,
  ];
}

#endif
