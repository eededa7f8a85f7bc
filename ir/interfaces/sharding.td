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
        cut, and `pieces.first(.., f)` makes the index along `f` where the rank's
        piece begins (see local_pieces.h); no factor of the kind `kSteps` is cut.
        The default is the same op with the same attributes, and results of the
        local shapes. An op whose attributes depend on a size or whose elements
        depend on their place overrides it.
      }],
      "::mlir::Operation *", "buildLocal",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "const ::oriel::ir::LocalPieces &":$pieces), "",
      [{
        return ::oriel::ir::cloneLocal($_op.getOperation(), builder, operands,
                                       $_op.getShardingRule(), pieces);
      }]>,
    InterfaceMethod<[{
        Builds ops that compute the same from the same operands, with the op's
        `origin`, and gives a value for each result. Their own rules split what
        this op's rule calls `kSteps`. The default, for an op without such a
        factor, builds nothing.
      }],
      "::llvm::SmallVector<::mlir::Value>", "decompose",
      (ins "::mlir::OpBuilder &":$builder), "", [{ return {}; }]>,
  ];
}

#endif
