// A pass that checks ops by value.
#ifndef ORIEL_OPCHECK_PASSES_TD
#define ORIEL_OPCHECK_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckOps : Pass<"oriel-check-ops", "::mlir::ModuleOp"> {
  let summary = "Checks derivatives and sharding rules of ops by what their kernels compute";
  let description = [{
    For whoever writes an op: a derivative or a sharding rule that is wrong trains something else, and no
    verifier sees it. Each function of the module, of one block, is run on random arguments by the host's
    kernels (`oriel-opt` loads those of plugins, too):

    - Its derivative by all float arguments, as `train` makes it, is compared with finite differences. Its floats
      are f64 for that; a function with the attribute `check.forward_only` is not differentiated.
    - Each op of it, and of its derivative, is cut into pieces by each factor of its sharding rule and each pair of
      them; the results of the pieces must make the whole one, as the rule says. Groups of operands in which it is
      linear are given two summands. An op without a rule is left out, and named.

    Arguments are from -2 to 2, integers and booleans 0 or 1, or from `check.low` to `check.high`, where a function
    is not smooth, or a rule needs more; `check.step` is the distance of the finite differences, 1e-4. Sizes of a
    case should have divisors, and be small: an element takes four runs. The module is not changed.

    ```mlir
    func.func @snake(%x: tensor<4x6xf64>, %a: tensor<6xf64> {check.low = 0.5}) -> tensor<4x6xf64> {
      %0 = acme.snake %x, %a : (tensor<4x6xf64>, tensor<6xf64>) -> tensor<4x6xf64>
      return %0 : tensor<4x6xf64>
    }
    // remark: the derivative is as by finite differences, within 3e-12
    // remark: pieces make the whole: acme.snake (cut in 3 ways), acme.snake_grad (cut in 3 ways)
    ```
  }];
  // What derivatives are made of.
  let dependentDialects = ["::oriel::ir::OrielDialect"];
  let options = [
    Option<"seed", "seed", "unsigned", "0", "Of the random values">,
  ];
}

#endif
