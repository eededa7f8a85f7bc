// Ops whose kernel can do what other ops do before or behind it.
#ifndef ORIEL_IR_INTERFACES_FUSION_TD
#define ORIEL_IR_INTERFACES_FUSION_TD

include "mlir/IR/OpBase.td"

def EpilogueOpInterface : OpInterface<"EpilogueOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op whose kernel can add to its result 0 before that goes to memory.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the op whose result 0 is that of this one plus `addend`, which has its type, and
        may lie in the result's place. Its operands are those of this one and, behind them, the
        addend; its other results are those of this one. Null if it can't.
      }],
      "::mlir::Operation *", "buildSum",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$addend)>,
  ];
}

def PrologueOpInterface : OpInterface<"PrologueOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op whose kernel can first add up its operand 0 from two tensors of its type.
  }];
  let methods = [
    InterfaceMethod<[{
        Builds the op on the sum of `lhs` and `rhs`, which stand for its operand 0. Its results are
        those of this one and, behind them, the sum, as it is rounded. Null if it can't.
      }],
      "::mlir::Operation *", "buildOfSum",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$lhs, "::mlir::Value":$rhs)>,
  ];
}

def NarrowOpInterface : OpInterface<"NarrowOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op in f32 whose kernel also takes narrower tensors: it widens what it reads, and rounds what
    it writes, as casts do.
  }];
  let methods = [
    InterfaceMethod<[{
        How many of the first operands may be narrower, together with result 0: all of one type.
      }],
      "unsigned", "getNarrowOperandCount", (ins)>,
    InterfaceMethod<[{
        Builds the op with `narrow` in place of its first operands. Result 0 has their element type.
      }],
      "::mlir::Operation *", "buildNarrow",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$narrow)>,
  ];
}

#endif
