// What an op computes, for the cost model.
#ifndef ORIEL_IR_INTERFACES_WORK_TD
#define ORIEL_IR_INTERFACES_WORK_TD

include "mlir/IR/OpBase.td"

def WorkOpInterface : OpInterface<"WorkOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op whose time depends on more than its floating-point operations and
    bytes: on the shapes of the matrix products that it is made of, or on those
    of an attention.
  }];
  let methods = [
    InterfaceMethod<"The products and attentions that the op is made of.",
      "::oriel::ir::Work", "getWork">,
  ];
}

#endif
