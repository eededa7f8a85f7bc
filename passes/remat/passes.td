// Passes that decide what the stash keeps.
#ifndef ORIEL_PASSES_REMAT_PASSES_TD
#define ORIEL_PASSES_REMAT_PASSES_TD

include "mlir/Pass/PassBase.td"

def Remat : Pass<"oriel-remat", "::mlir::ModuleOp"> {
  let summary = "Takes values out of the stash that the backward computes again";
  let description = [{
    Activation checkpointing, block by block. `policy` is

    - `none`: the stash stays as it is;
    - `full`: of a block's stash only what enters the block is left, and the backward runs the
      whole block again, with its collectives;
    - `selective`: what lies between two contractions of activations without a projection
      between them leaves the stash: of attention that is what has the size of the scores
      (Korthikanti et al. 2022, section 5). No collective runs again;
    - `auto`: a step takes the least time with which the arena of each program has at most
      `memory` bytes, by the predicted times of ops and collectives (segment_time.h) and the
      memory planner (budget.h), both of ops as they are launched. Standard error gets that time
      and, of single ops, what runs again and a lower bound of that. How much of the overlap that
      is asked fits with it goes on the program as the attribute `oriel.overlap`, for
      `oriel-overlap`.

    Values that several blocks use and ops between blocks stay as they are. A segment of the
    backward gets a clone of each op that it needs, in front of the first op that uses it, with
    the unit attribute `oriel.recomputed`; where it brings a parameter from storage to use by
    the same op within the block, there is one such op for both, at the place of the first user.
    Nothing else is moved or merged. Run it after `oriel-fuse`: clusters are computed again as a
    whole.

    ```mlir
    func.func @forward(%x, %w) -> (.., stash "v1", stash "v2") {
      %1 = oriel.linear %x, %w
      %2 = oriel.activation %1 {kind = "gelu"}
      return .., %1, %2
    func.func @backward(%v1: stash "v1", %v2: stash "v2", %g) {
      %3 = oriel.linear_weight_grad %v2, %g
      %4 = oriel.activation_grad %5, %v1
    // full →
    func.func @forward(%x, %w) -> (.., stash "remat.0.forward") {
      return .., %x
    func.func @backward(%x: stash "remat.0.forward", %w, %g) {
      %1 = oriel.linear %x, %w {oriel.recomputed}
      %2 = oriel.activation %1 {kind = "gelu", oriel.recomputed}
      %3 = oriel.linear_weight_grad %2, %g
      %4 = oriel.activation_grad %5, %1
    ```
  }];
  let options = [
    Option<"policy", "policy", "std::string", "\"none\"", "none, full, selective or auto">,
    Option<"memory", "memory", "int64_t", "0", "Bytes per rank, with auto">,
    Option<"fused", "fused", "bool", "false", "Decide by the launches that oriel-form-fused makes">,
    Option<"generated", "generated", "bool", "false",
           "Decide by the launches that oriel-form-generated makes">,
    Option<"quiet", "quiet", "bool", "false", "Say nothing of what auto chooses">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
