// The types in which an op computes under mixed precision.
#ifndef ORIEL_IR_INTERFACES_PRECISION_TD
#define ORIEL_IR_INTERFACES_PRECISION_TD

include "mlir/IR/OpBase.td"

def PrecisionOpInterface : OpInterface<"PrecisionOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    What the mixed-precision pass asks of an op: docs/precision.md has the table. "Narrow" is
    the recipe's compute type (bf16), "wide" is f32.
  }];
  let methods = [
    InterfaceMethod<[{
        The class of the op (see interfaces.h). The default follows its operands for
        an op with the trait `Pointwise`, moves for a view, and is wide for any other.
      }],
      "::oriel::ir::Precision", "getPrecision", (ins), "",
      [{ return ::oriel::ir::defaultPrecision($_op.getOperation()); }]>,
    InterfaceMethod<[{
        Whether an operand may be wide where others are narrow: a table, which it
        would cost accuracy and save nothing to round.
      }],
      "bool", "takesWide", (ins "unsigned":$operand), "", [{ return false; }]>,
    InterfaceMethod<[{
        Whether an operand must be wide, with what it is computed of up to the ops that
        are narrow themselves: a position, of which the op makes a whole number. Rounded
        before, it would be another place.
      }],
      "bool", "needsWide", (ins "unsigned":$operand), "", [{ return false; }]>,
    InterfaceMethod<[{
        Whether a result may be wide where the operands are narrow: a sum, which
        the kernel holds in f32 and then need not round.
      }],
      "bool", "givesWide", (ins "unsigned":$result), "", [{ return false; }]>,
  ];
}

#endif
