// How an op splits over ranks.
#ifndef ORIEL_IR_INTERFACES_SHARDING_TD
#define ORIEL_IR_INTERFACES_SHARDING_TD

include "mlir/IR/OpBase.td"

def ShardableOpInterface : OpInterface<"ShardableOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op that says how it splits over ranks. Propagation and partition ask
    nothing else of an op. The defaults are right for any op: it does not split.
  }];
  let methods = [
    InterfaceMethod<[{
        The rule, for the op's static shapes (see sharding_rule.h). The default
        has no factors, or one per dimension for an op with the trait
        `Pointwise`.
      }],
      "::oriel::ir::ShardingRule", "getShardingRule", (ins), "",
      [{ return ::oriel::ir::defaultShardingRule($_op.getOperation()); }]>,
    InterfaceMethod<[{
        Builds the op on one rank's pieces and gives its results. `operands` are
        the pieces, `pieces[f]` says into how many the factor `f` of the rule is
        cut. The default is the same op with the same attributes, and results of
        the local shapes. An op whose attributes depend on a size overrides it.
      }],
      "::mlir::Operation *", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::llvm::ArrayRef<int64_t>":$pieces), "",
      [{
        return ::oriel::ir::cloneLocal($_op.getOperation(), builder, operands,
                                       $_op.getShardingRule(), pieces);
      }]>,
  ];
}

#endif
