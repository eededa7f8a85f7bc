// Passes from the oriel dialect to programs of the exec dialect.
#ifndef ORIEL_PASSES_LOWER_PASSES_TD
#define ORIEL_PASSES_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

def LowerToExec : Pass<"oriel-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "Replaces the segment functions by one exec program";
  let description = [{
    Gives each value a buffer at a fixed offset of one arena, and makes one instruction
    of each op: a launch of the kernel that the op names, a collective, a copy, or none
    where the result is a view of its operand. Parameters, optimizer states, gradients,
    accumulators, inputs and scalars keep one buffer over all segments; the stash lives
    from `@forward` to its last use in `@backward`; the rest share bytes by lifetime. A
    kernel that may overwrite an operand does so at that operand's last use.

    ```mlir
    func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) ->
        (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
      %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // →
    exec.program @ranks attributes {arena_bytes = 128 : i64, first_rank = 0 : i64, ...} {
      exec.buffer @b0 : tensor<4xf32> {kind = "input", offset = 0 : i64, ref = "x"}
      exec.buffer @b1 : tensor<4xf32> {kind = "output", offset = 64 : i64, ref = "y"}
      exec.segment @forward {
        exec.launch "exp" [@b0] -> [@b1] {} from "oriel.exp"
      }
    }
    ```
  }];
  let options = [Option<"alignment", "alignment", "int64_t", /*default=*/"64",
                        "Of each value in the arena, in bytes: 64 times a power of two">];
  let dependentDialects = ["::oriel::exec::ExecDialect"];
}

#endif
