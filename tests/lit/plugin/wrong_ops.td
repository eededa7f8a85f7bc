// Ops with a mistake each, which oriel-check-ops is to find.
#ifndef ORIEL_TESTS_LIT_PLUGIN_WRONG_OPS_TD
#define ORIEL_TESTS_LIT_PLUGIN_WRONG_OPS_TD

include "ir/oriel/base.td"

def WrongDialect : Dialect {
  let name = "wrong";
  let cppNamespace = "::wrong";
}

// `kernel` is one of Oriel's.
class Wrong_Op<string mnemonic, string kernel, dag args, list<Trait> traits = []>
    : Op<WrongDialect, mnemonic,
         traits # [Pure, DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelName"]>]> {
  let arguments = !con(args, (ins DefaultValuedAttr<Oriel_IntAttr, "-1">:$origin));
  let results = (outs Oriel_FloatTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDefinition = "::llvm::StringRef $cppClass::getKernelName() { return \"" # kernel # "\"; }";
}

// lhs * rhs, with the cotangents of the operands in each other's place.
def DerivativeOp : Wrong_Op<"derivative", "mul", (ins Oriel_FloatTensor:$lhs, Oriel_FloatTensor:$rhs),
                            [Differentiable]>;
// lhs * rhs, said to be linear in both together.
def LinearOp : Wrong_Op<"linear", "mul", (ins Oriel_FloatTensor:$lhs, Oriel_FloatTensor:$rhs), [ShardedOp]>;
// A product, whose pieces along the summed dimension are said to be candidates of a maximum.
def KindOp : Wrong_Op<"kind", "linear", (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight), [ShardedOp]>;
// A softmax over `dim`, said to split by each dimension.
def SplitOp : Wrong_Op<"split", "softmax", (ins Oriel_FloatTensor:$input, Oriel_IntAttr:$dim), [ShardedOp]>;
// -input, without a rule.
def RulelessOp : Wrong_Op<"ruleless", "neg", (ins Oriel_FloatTensor:$input)>;
// What no kernel computes.
def KernellessOp : Wrong_Op<"kernelless", "wrong.kernelless", (ins Oriel_FloatTensor:$input)>;

#endif
