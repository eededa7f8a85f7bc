// Passes that turn the global view into what each rank computes.
#ifndef ORIEL_PASSES_PARTITION_PASSES_TD
#define ORIEL_PASSES_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def Partition : Pass<"oriel-partition", "::mlir::ModuleOp"> {
  let summary = "Makes each segment what one rank runs: local shapes and collectives";
  let description = [{
    Every op is built on its operands' pieces, as `propagate` has split it. An operand that
    is at hand in another sharding is brought to the one that the op needs by the cheapest
    sequence of single collectives, once for all ops that need it. All-reduces over the same
    axes whose operands are there at the same time become one. Parameters are brought from
    storage to use where they are first used in a segment; the update completes all sums
    over the microbatches first.

    Values keep `oriel.shardings` (ops) and `oriel.sharding` (arguments and results), for
    the plan; ops on pieces keep how they split, `oriel.rule` and `oriel.split`.

    ```mlir
    %1 = oriel.linear %x, %w {oriel.split = [[], [], ["a0"]], ..}
        : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %2 = oriel.exp %1 {oriel.split = [[], []], ..} : (tensor<4x2xf32>) -> tensor<4x2xf32>
    // →
    %1 = oriel.linear %x, %w : (tensor<4x4xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = oriel.all_reduce %1 {axes = ["a0"], reduction = "sum"}
    %3 = oriel.exp %2
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
