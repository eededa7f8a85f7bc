// Passes that turn the global view into what each rank computes.
#ifndef ORIEL_PASSES_PARTITION_PASSES_TD
#define ORIEL_PASSES_PARTITION_PASSES_TD

include "mlir/Pass/PassBase.td"

def ReduceGradients : Pass<"oriel-reduce-gradients", "::mlir::ModuleOp"> {
  let summary = "Sums what each rank accumulated over the data-parallel ranks";
  let description = [{
    Gradients and the other accumulators (loss, token count) are sums over the samples
    that a rank has seen. The pass puts an all-reduce over the mesh axis `dp` at the top
    of `@update`, which carries all of them, so that what follows sees the sums over
    the global batch. Without a `dp` axis nothing changes.

    ```mlir
    func.func @update(%g: tensor<8xf32> {oriel.kind = "gradient", oriel.ref = "p0"}, ...) {
      %n = oriel.sum_squares %g
    // →
      %r = oriel.all_reduce %g {axes = ["a0"], reduction = "sum"}
      %n = oriel.sum_squares %r
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
