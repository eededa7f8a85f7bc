// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/tp2_dp2.yaml --oriel-split-stages="strategy=%S/Inputs/tp2_dp2.yaml microbatches=2" --oriel-annotate=strategy=%S/Inputs/tp2_dp2.yaml --oriel-propagate --oriel-partition -o %t.samples
// RUN: FileCheck %s --input-file=%t.samples --check-prefix=SAMPLES
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/dp2_tp2.yaml --oriel-split-stages="strategy=%S/Inputs/dp2_tp2.yaml microbatches=2" --oriel-annotate=strategy=%S/Inputs/dp2_tp2.yaml --oriel-propagate --oriel-partition -o %t.layers
// RUN: FileCheck %s --input-file=%t.layers --check-prefix=LAYERS
// RUN: oriel-opt %t.layers --oriel-lower-to-exec | FileCheck %s --check-prefix=EXEC

// Two stages on two ranks each, one split by samples, the other by layers: though the axes of both are called
// and sized alike, a rank of the one gets its samples, of the other a piece that is joined there.

// What is pending is completed in pieces, of which a rank of the next stage gets those of its sample.
// SAMPLES: func.func @forward.0(
// SAMPLES: oriel.reduce_scatter {{.*}} -> tensor<2x4x4xf32>
// SAMPLES-NEXT: oriel.send {{.*}} : (tensor<2x4x4xf32>)
// SAMPLES: func.func @backward.0(
// SAMPLES: oriel.receive {{.*}} -> tensor<2x4x4xf32>
// SAMPLES: oriel.all_gather {{.*}} -> tensor<2x4x8xf32>
// SAMPLES: func.func @forward.1(
// SAMPLES: %[[X:.*]] = oriel.receive {{.*}} -> tensor<1x4x8xf32>
// SAMPLES-NEXT: oriel.linear %[[X]]
// SAMPLES-NOT: oriel.all_
// SAMPLES: func.func @backward.1(
// SAMPLES-NOT: oriel.all_
// SAMPLES: oriel.send {{.*}} : (tensor<1x4x8xf32>)

// LAYERS: func.func @forward.0(
// LAYERS: oriel.send {{.*}} : (tensor<1x4x8xf32>)
// LAYERS: func.func @backward.0(
// LAYERS: oriel.receive {{.*}} -> tensor<1x4x8xf32>
// LAYERS-NOT: oriel.all_
// LAYERS: func.func @update(
// LAYERS: func.func @forward.1(
// LAYERS: oriel.receive {{.*}} -> tensor<2x4x4xf32>
// LAYERS-NEXT: oriel.all_gather {{.*}} -> tensor<2x4x8xf32>
// LAYERS: func.func @backward.1(
// LAYERS: oriel.reduce_scatter {{.*}} -> tensor<2x4x4xf32>
// LAYERS-NEXT: oriel.send {{.*}} : (tensor<2x4x4xf32>)

// Two microbatches are in flight on the first stage, one on the last, which keeps one copy of its stash; transfers have two.
// EXEC: exec.program @ranks attributes {arena_bytes = {{[0-9]+}} : i64, first_rank = 0 : i64, rank_count = 2 : i64}
// EXEC-DAG: {copy_offsets = array<i64: {{[0-9]+}}>, kind = "stash"
// EXEC-DAG: exec.buffer @[[SENT:.*]] : tensor<1x4x8xf32> {copy_offsets = array<i64: {{[0-9]+}}>, kind = "transfer"
// EXEC: exec.segment @forward.0
// EXEC: exec.copy {{.*}} -> [@[[SENT]]]
// EXEC-NEXT: exec.send "forward.0.p1" to "p1" [@[[SENT]]]
// EXEC: exec.run @forward.0 {microbatch = 1 : i64}
// EXEC: exec.program @ranks attributes {arena_bytes = {{[0-9]+}} : i64, first_rank = 2 : i64, rank_count = 2 : i64}
// EXEC-NOT: {copy_offsets = {{.*}}, kind = "stash"
// EXEC: exec.segment @forward.1
// EXEC: exec.receive "forward.0.p1" of "p0" [] -> [@{{.*}}]
module {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  func.func @main(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<2x4x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.cast %ids : (tensor<2x4xi64>) -> tensor<2x4xf32>
    %1 = oriel.reshape %0 : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
    %2 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %3 = oriel.linear %2, %w0 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.mul %3, %1 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
    %5 = oriel.add %2, %4 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %6 = oriel.linear %5, %w1 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %7 = oriel.mul %6, %1 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
    %8 = oriel.add %5, %7 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %9 = oriel.linear %8, %table {transpose_weight = true} : (tensor<2x4x8xf32>, tensor<16x8xf32>) -> tensor<2x4x16xf32>
    return %9 : tensor<2x4x16xf32>
  }
}
