// Passes that check what a phase leaves.
#ifndef ORIEL_PASSES_VERIFY_PASSES_TD
#define ORIEL_PASSES_VERIFY_PASSES_TD

include "mlir/Pass/PassBase.td"

def VerifySegments : Pass<"oriel-verify-segments", "::mlir::ModuleOp"> {
  let summary = "Checks what the segments of all programs say to each other";
  let description = [{
    The contract of the phases from `specialize` to `overlap`, but for `train`, which has its own, for
    passes between them. Before `train` there is one segment, `@main`. The module is not changed.

    - Arguments and results have roles (`ir/oriel/segment.h`), each at most once on either side; new
      values replace arguments, and parameters and optimizer states are stepped by `@update` alone.
    - What has one role has one type, and one sharding, in all segments of a program, but for outputs;
      a parameter's value, gradient and states have its shape, or a rank's piece of it.
    - Each stash value is written by a segment of its program and read by one.
    - Each channel has a sender in one program and a receiver in the other, and carries one type
      before `partition`.
    - The schedule runs segments that are there, for microbatches from 0 on.
    - Sharding rules fit their ops' operands and results, unless `values=local`.
    - With `values=global`, as `propagate` leaves them, all values have shardings over axes of the
      grid that divide them, and ops say how they are cut. With `values=local`, as `partition`
      leaves them, segments' arguments and results have shardings, and ops' name axes of the grid.

    ```mlir
    func.func @forward(..) -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "1"})
    func.func @backward(%0: tensor<8xf32> {oriel.kind = "stash", oriel.ref = "1"}, ..)
    // error: has type 'tensor<8xf32>' for stash '1', which is 'tensor<4xf32>' elsewhere
    ```
  }];
  let options = [
    Option<"values", "values", "std::string", "\"whole\"",
           "What values are: whole (before propagate), global or local">,
  ];
}

#endif
