// What ops between ranks have in common.
#ifndef ORIEL_IR_INTERFACES_COLLECTIVE_TD
#define ORIEL_IR_INTERFACES_COLLECTIVE_TD

include "mlir/IR/OpBase.td"

def CollectiveOpInterface : OpInterface<"CollectiveOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op that all ranks of a group run together: the ranks that differ only in
    the coordinates of some atomic axes. Its mnemonic is the name of the plan's
    collective.
  }];
  let methods = [
    InterfaceMethod<[{
        Names of the atomic axes that the group spans, in grid order.
      }],
      "::mlir::ArrayAttr", "getAxes">,
    InterfaceMethod<[{
        `sum` or `max`; null where nothing is reduced.
      }],
      "::mlir::StringAttr", "getReductionName", (ins), "",
      [{ return {}; }]>,
    InterfaceMethod<[{
        The dimension of each operand that is cut into one piece per rank.
      }],
      "::std::optional<int64_t>", "getSplitDimension", (ins), "",
      [{ return ::std::nullopt; }]>,
    InterfaceMethod<[{
        The dimension of each result along which the ranks' pieces are joined.
      }],
      "::std::optional<int64_t>", "getJoinedDimension", (ins), "",
      [{ return ::std::nullopt; }]>,
    InterfaceMethod<[{
        Whether result `i` may take the place of operand `i`, of the same type.
      }],
      "bool", "mayReduceInPlace", (ins), "",
      [{ return false; }]>,
  ];
}

#endif
