// Cost of an op, for summaries, the cost model and the planner.
#ifndef ORIEL_IR_INTERFACES_COST_TD
#define ORIEL_IR_INTERFACES_COST_TD

include "mlir/IR/OpBase.td"

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    Work that an op does on its static operand and result types. One
    multiply-add counts as two floating-point operations.
  }];
  let methods = [
    InterfaceMethod<[{
        Floating-point operations. The default is one per result element.
      }],
      "int64_t", "getFlops", (ins), "",
      [{ return ::oriel::ir::defaultFlops($_op.getOperation()); }]>,
    InterfaceMethod<[{
        Bytes read. The default is the size of every operand.
      }],
      "int64_t", "getBytesRead", (ins), "",
      [{ return ::oriel::ir::typesBytes($_op->getOperandTypes()); }]>,
    InterfaceMethod<[{
        Bytes written. The default is the size of every result.
      }],
      "int64_t", "getBytesWritten", (ins), "",
      [{ return ::oriel::ir::typesBytes($_op->getResultTypes()); }]>,
  ];
}

#endif
