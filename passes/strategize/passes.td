// Passes that write a strategy onto the IR.
#ifndef ORIEL_PASSES_STRATEGIZE_PASSES_TD
#define ORIEL_PASSES_STRATEGIZE_PASSES_TD

include "mlir/Pass/PassBase.td"

def DataParallel : Pass<"oriel-data-parallel", "::mlir::ModuleOp"> {
  let summary = "Lays all ranks on one data-parallel mesh axis";
  let description = [{
    Gives the module a device grid of `world` ranks, of one atomic axis that the mesh
    axis `dp` takes; a world of one rank has no axis. The schedule of a step runs forward
    and backward of each of a rank's microbatches, and then the update.

    ```mlir
    module {...}
    // oriel-data-parallel{world=4 microbatches=1} →
    module attributes {
      oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]},
      oriel.schedule = [["forward", 0], ["backward", 0], ["update", 0]]} {...}
    ```
  }];
  let options = [
    Option<"world", "world", "int64_t", "1", "Number of ranks">,
    Option<"microbatches", "microbatches", "int64_t", "1",
           "Microbatches of a rank in a step">,
  ];
}

#endif
