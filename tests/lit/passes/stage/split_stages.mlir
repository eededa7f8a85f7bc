// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/listed.yaml --oriel-split-stages="strategy=%S/Inputs/listed.yaml microbatches=2" -o %t.1f1b
// RUN: FileCheck %s --input-file=%t.1f1b --implicit-check-not=oriel.send --implicit-check-not=oriel.receive
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/zb.yaml --oriel-split-stages="strategy=%S/Inputs/zb.yaml microbatches=2" -o %t.zb
// RUN: FileCheck %s --input-file=%t.zb --check-prefix=HALVES
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split_frozen.yaml --oriel-assign-stages=strategy=%S/Inputs/listed.yaml --oriel-split-stages="strategy=%S/Inputs/listed.yaml microbatches=2" -o %t.frozen
// RUN: FileCheck %s --input-file=%t.frozen --check-prefix=FROZEN --implicit-check-not=@backward.0 --implicit-check-not='"gradient", oriel.ref = "p1"'
// RUN: oriel-opt %t.1f1b --oriel-annotate=strategy=%S/Inputs/listed_tp2.yaml --oriel-propagate --oriel-partition -o %t.tp2
// RUN: FileCheck %s --input-file=%t.tp2 --check-prefix=PIECES
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/side_by_side.yaml --oriel-split-stages="strategy=%S/Inputs/side_by_side.yaml microbatches=2" | FileCheck %s --check-prefix=BESIDE

// Two layers with residuals, a mask made of the inputs, and a table that embeds and gives the logits.

// Stages that lie side by side on the cluster: their ranks are what they were.
// BESIDE: module attributes {{.*}}oriel.placement = {block = 1 : i64, grids = 2 : i64, ranks = 2 : i64}
// BESIDE: module @p0 attributes {oriel.first_rank = 0
// BESIDE: module @p1 attributes {oriel.first_rank = 2

// CHECK-NOT: oriel.placement
// CHECK: module @p0 attributes {oriel.first_rank = 0 : i64, oriel.schedule = {{\[}}["forward.0", 0], ["forward.0", 1], ["backward.0", 0], ["backward.0", 1], ["update", 0]], oriel.stages = ["layers.0"]}
// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", trainable
// CHECK: oriel.parameter @p1
// CHECK: func.func @forward.0(
// CHECK: %[[X:.*]] = oriel.add
// CHECK: oriel.send %[[X]] {channel = "forward.0.p1", origin = 5 : i64, peer = "p1"} : (tensor<2x4x8xf32>) -> ()

// The value has two users in the next stage, which sends one cotangent.
// CHECK: func.func @backward.0(
// CHECK: %[[DX:.*]] = oriel.receive {{ *}}{channel = "backward.0.p0", {{.*}}peer = "p1"} : () -> tensor<2x4x8xf32>
// CHECK: oriel.scatter_add

// The home of the table gets the other gradient, and sends the new value.
// CHECK: func.func @update(
// CHECK-SAME: %[[GRAD:[a-z0-9]+]]: tensor<16x8xf32> {oriel.kind = "gradient", oriel.ref = "p0"}
// CHECK: %[[OTHER:.*]] = oriel.receive {{ *}}{channel = "update.0.p0"
// CHECK: %[[SUM:.*]] = oriel.add %[[GRAD]], %[[OTHER]]
// CHECK: %[[SQUARES:.*]] = oriel.sum_squares %[[SUM]]
// CHECK: %[[ALL:.*]] = oriel.add %[[SQUARES]], %
// CHECK: oriel.send %[[ALL]] {channel = "update.1.p1"
// CHECK: %[[SCALE:.*]] = oriel.receive {{ *}}{channel = "update.2.p0"
// CHECK: %[[NEW:.*]] = oriel.sgd %{{.*}}, %[[SUM]], %[[SCALE]]
// CHECK: oriel.send %[[NEW]] {channel = "update.3.p1"
// Loss, gradient norm and token count are read on every rank.
// CHECK-COUNT-3: oriel.receive {{.*}} -> tensor<f32>
// CHECK: func.func @eval.0(
// CHECK: oriel.send

// CHECK: module @p1 attributes {oriel.first_rank = 1 : i64, oriel.schedule = {{\[}}["forward.1", 0], ["backward.1", 0], ["forward.1", 1], ["backward.1", 1], ["update", 0]], oriel.stages = ["layers.1"]}
// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", oriel.copy, trainable
// CHECK: oriel.parameter @p2
// The mask is made again.
// CHECK: func.func @forward.1(
// CHECK: oriel.receive {{ *}}{channel = "forward.0.p1"
// CHECK: oriel.cast {{.*}} : (tensor<2x4xi64>)
// CHECK: oriel.cross_entropy
// CHECK: func.func @backward.1(
// CHECK: %[[BOTH:.*]] = oriel.add {{.*}} {origin = 5 : i64}
// CHECK: oriel.send %[[BOTH]] {channel = "backward.0.p0"
// CHECK: func.func @update(
// CHECK: oriel.send %{{.*}} {channel = "update.0.p0", {{.*}} : (tensor<16x8xf32>)
// CHECK: oriel.receive {{ *}}{channel = "update.1.p1"
// CHECK: oriel.sqrt
// CHECK-COUNT-3: oriel.send {{.*}} : (tensor<f32>)
// CHECK: oriel.receive {{ *}}{channel = "update.3.p1", {{.*}} -> tensor<16x8xf32>
// CHECK: oriel.send {{.*}} : (tensor<f32>)
// CHECK: func.func @eval.1(
// CHECK: oriel.receive
// CHECK: oriel.argmax

// What only gradients of weights need is in the other half.
// HALVES: oriel.schedule = {{\[}}["forward.0", 0], {{.*}}["backward_input.0", 0]{{.*}}["backward_weight.0", 0]
// HALVES: func.func @backward_input.0(
// HALVES-NOT: oriel.scatter_add
// HALVES: func.func @backward_weight.0(
// HALVES: oriel.linear_weight_grad
// HALVES: oriel.scatter_add
// HALVES: func.func @backward_input.1(
// HALVES-NOT: oriel.linear_weight_grad
// HALVES: oriel.send
// HALVES: func.func @backward_weight.1(
// HALVES-COUNT-1: oriel.linear_weight_grad

// A frozen first stage has no backward and gets nothing back.
// FROZEN: module @p0 attributes {{.*}}oriel.schedule = {{\[}}["forward.0", 0], ["forward.0", 1], ["update", 0]]
// FROZEN: func.func @update(
// FROZEN-NOT: "gradient"
// FROZEN: module @p1
// FROZEN: func.func @backward.1(
// FROZEN-NOT: oriel.send
// FROZEN: func.func @update(

// Each byte travels once: a rank sends its half, and the receiving ranks join them.
// PIECES: func.func @forward.0(
// PIECES: oriel.send {{.*}} {channel = "forward.0.p1"
// PIECES: func.func @forward.1(
// PIECES: %[[HALF:.*]] = oriel.receive {{ *}}{channel = "forward.0.p1", {{.*}} : () -> tensor<2x4x4xf32>
// PIECES: oriel.all_gather %[[HALF]] {{.*}} : (tensor<2x4x4xf32>) -> tensor<2x4x8xf32>
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
