// Passes that let communication run beside computing.
#ifndef ORIEL_PASSES_OVERLAP_PASSES_TD
#define ORIEL_PASSES_OVERLAP_PASSES_TD

include "mlir/Pass/PassBase.td"

def OverlapPass : Pass<"oriel-overlap", "::mlir::ModuleOp"> {
  let summary = "Starts collectives and waits for them, with computing in between";
  let description = [{
    After `partition`. Same values, bit by bit.

    Reductions of gradients move from the update to where the last microbatch adds its part:
    a copy of that segment, `@backward_last`, which takes its place in the schedule. A reduced
    gradient is in the gradient's place; a piece of it is a stash value of the update.

    Then each collective is started on the communication stream of its axes, as soon as its
    operands are there, and an `oriel.wait` stands before the first user of its results.
    Collectives of one kind travel in buckets: those whose results only the end of a segment
    needs (reductions of gradients), in the order in which their operands get ready, and those
    that bring parameters, which are started ahead of their first use. What computes keeps its
    order, but that sums of gradients step back behind what is more urgent instead of waiting.
    Receives stand before their first users, sends behind what they send.

    A program that needs more than `memory` with all this gets less of it, as the attribute
    `oriel.overlap` says, which `oriel-remat` leaves where it has decided, or else as is fastest
    by the predicted times of what fits: `smaller_buckets`, `nothing_ahead` or `off`, with a
    warning. Then the attribute is there too.

    ```mlir
    %1 = oriel.linear_weight_grad %x, %dy : ..
    %2 = oriel.reduce_scatter %1 {axes = ["a0"], dim = 0 : i64, reduction = "sum"} : ..
    %3 = oriel.add %g, %2 : ..
    %4 = oriel.linear %dy, %w : ..
    // →
    %1 = oriel.linear_weight_grad %x, %dy : ..
    %2 = oriel.reduce_scatter %1 {.., oriel.stream = 1 : i64} : ..
    %4 = oriel.linear %dy, %w : ..
    %5 = oriel.wait %2 : ..
    %3 = oriel.add %g, %5 : ..
    ```
  }];
  let options = [
    Option<"bucket", "bucket", "int64_t", "-1",
           "Bytes of collectives that travel as one, at most; -1: found">,
    Option<"prefetch", "prefetch", "int64_t", "-1",
           "Bytes of parameters that are gathered ahead of their use, at most; -1: found">,
    Option<"memory", "memory", "int64_t", "0", "Bytes per rank; 0: any">,
    Option<"fused", "fused", "bool", "false", "Decide by the launches that oriel-form-fused makes">,
    Option<"generated", "generated", "bool", "false",
           "Decide by the launches that oriel-form-generated makes">,
    Option<"byPeak", "by-peak", "bool", "false",
           "Decide by the bytes in use at the peak; planning the arena takes long">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
