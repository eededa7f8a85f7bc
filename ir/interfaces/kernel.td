// How an op becomes one kernel launch of the plan.
#ifndef ORIEL_IR_INTERFACES_KERNEL_TD
#define ORIEL_IR_INTERFACES_KERNEL_TD

include "mlir/IR/OpBase.td"

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::oriel::ir";
  let description = [{
    An op that the lowering turns into one launch of a kernel (or into no
    instruction at all, where its result is a view of an operand). Operands and
    results of the launch are those of the op, in order; its attributes are the
    op's attributes less `origin`.
  }];
  let methods = [
    InterfaceMethod<[{
        Name in the kernel registry of the runtime. The default is the mnemonic
        for ops of the oriel dialect, and the op's whole name for those of others,
        so that no plugin takes a kernel's name by accident.
      }],
      "::llvm::StringRef", "getKernelName", (ins), "",
      [{ return ::oriel::ir::defaultKernelName($_op.getOperation()); }]>,
    InterfaceMethod<[{
        The operand whose buffer result `result` may overwrite, provided that it
        is not used afterwards; none where the kernel reads operands after it
        has begun to write. Only operands with the result's type are asked for.
      }],
      "bool", "mayOverwrite", (ins "unsigned":$result, "unsigned":$operand), "",
      [{ return false; }]>,
    InterfaceMethod<[{
        True where the only result is the first operand's bytes under another
        shape: no instruction is made, the buffers are one.
      }],
      "bool", "isView", (ins), "", [{ return false; }]>,
  ];
}

#endif
