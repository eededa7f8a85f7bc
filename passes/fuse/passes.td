// Passes that form fusion clusters.
#ifndef ORIEL_PASSES_FUSE_PASSES_TD
#define ORIEL_PASSES_FUSE_PASSES_TD

include "mlir/Pass/PassBase.td"

def Fuse : Pass<"oriel-fuse", "::mlir::ModuleOp"> {
  let summary = "Gives the ops of forward segments the numbers of fusion clusters";
  let description = [{
    A cluster is an op with the chain of pointwise ops and views behind it, where nothing else
    uses a value between two of them: only what its last op makes is seen outside. An op behind
    several chains belongs to the one that ends last. Collectives, sends and receives are in no
    cluster, and none goes over the border of a block. Clusters are numbered within a segment,
    by `oriel.fusion_cluster`. They are made before `remat`, which computes whole clusters again, so
    that a clone gives the bits of its original however they are compiled.

    ```mlir
    %0 = oriel.linear %x, %w
    %1 = oriel.add %0, %b
    %2 = oriel.activation %1 {kind = "gelu"}
    %3 = oriel.linear %2, %v
    // →
    %0 = oriel.linear %x, %w {oriel.fusion_cluster = 0 : i64}
    %1 = oriel.add %0, %b {oriel.fusion_cluster = 0 : i64}
    %2 = oriel.activation %1 {kind = "gelu", oriel.fusion_cluster = 0 : i64}
    %3 = oriel.linear %2, %v {oriel.fusion_cluster = 1 : i64}
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
