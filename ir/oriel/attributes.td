// Attributes of the oriel dialect.
#ifndef ORIEL_IR_ORIEL_ATTRIBUTES_TD
#define ORIEL_IR_ORIEL_ATTRIBUTES_TD

include "ir/oriel/base.td"
include "mlir/IR/AttrTypeBase.td"

def Oriel_ShardingAttr : AttrDef<OrielDialect, "Sharding"> {
  let mnemonic = "sharding";
  let summary = "How a global tensor is laid over the ranks of a grid";
  let description = [{
    For each dimension the atomic axes that cut it, outermost first: it is cut into equal
    pieces, numbered in row-major order over these axes. Over the axes of `sum` (`max`)
    the value is pending: the whole is the elementwise sum (maximum) over the ranks that
    differ in them. On ranks that differ in other axes alone it is the same.

    Written as the list of the axes of each dimension, then `sum {a3}` and `max {a4}` where
    there are such axes (see `tests/lit/ir/sharding_attribute.mlir`).
  }];
  // dims: for each dimension an array of axis names; sum and max: arrays of axis names.
  let parameters = (ins "::mlir::ArrayAttr":$dims, "::mlir::ArrayAttr":$sum,
                        "::mlir::ArrayAttr":$max);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

#endif
