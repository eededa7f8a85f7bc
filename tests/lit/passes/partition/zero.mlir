// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/recipe.yaml --oriel-annotate=strategy=%S/Inputs/zero0.yaml --oriel-propagate --oriel-partition | FileCheck %s --check-prefix=ZERO0 --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter --implicit-check-not=oriel.slice_local
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/recipe.yaml --oriel-annotate=strategy=%S/Inputs/zero1.yaml --oriel-propagate --oriel-partition | FileCheck %s --check-prefix=ZERO1 --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter --implicit-check-not=oriel.slice_local
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/recipe.yaml --oriel-annotate=strategy=%S/Inputs/zero2.yaml --oriel-propagate --oriel-partition | FileCheck %s --check-prefix=ZERO2 --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter --implicit-check-not=oriel.slice_local
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/recipe.yaml --oriel-annotate=strategy=%S/Inputs/zero3.yaml --oriel-propagate --oriel-partition | FileCheck %s --check-prefix=ZERO3 --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter --implicit-check-not=oriel.slice_local
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/recipe.yaml --oriel-annotate=strategy=%S/Inputs/hsdp2.yaml --oriel-propagate --oriel-partition | FileCheck %s --check-prefix=HSDP2 --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter --implicit-check-not=oriel.slice_local

// What is sharded over four data-parallel ranks (a0), and what it costs: every collective is listed.
// Two layers, [64, 64] each.

// Nothing: the update sums gradients and counts in one go.
// ZERO0: func.func @update
// ZERO0: oriel.all_reduce {{.*}} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>, tensor<f32>) ->
// ZERO0: func.func @eval
// ZERO0: oriel.all_reduce %loss_sum, %token_count {axes = ["a0"]

// Optimizer states: the sum is completed in pieces, the step is taken on pieces, and what comes of it
// is gathered. The norm of the gradient is that of all pieces.
// ZERO1: func.func @update
// ZERO1: oriel.reduce_scatter {{.*}} {axes = ["a0"], dim = 0 : i64, {{.*}} : (tensor<64x64xf32>) -> tensor<16x64xf32>
// ZERO1: oriel.reduce_scatter {{.*}} {axes = ["a0"], dim = 0 : i64, {{.*}} : (tensor<64x64xf32>) -> tensor<16x64xf32>
// ZERO1: oriel.all_reduce {{.*}} : (tensor<f32>, tensor<f32>) ->
// ZERO1: oriel.all_reduce {{.*}} : (tensor<f32>) ->
// ZERO1: oriel.slice_local
// ZERO1: oriel.adamw {{.*}} -> (tensor<16x64xf32>, tensor<16x64xf32>, tensor<16x64xf32>)
// ZERO1: oriel.slice_local
// ZERO1: oriel.adamw
// ZERO1: oriel.all_gather {{.*}} {axes = ["a0"], dim = 0 : i64, {{.*}} : (tensor<16x64xf32>) -> tensor<64x64xf32>
// ZERO1: oriel.all_gather {{.*}} {axes = ["a0"], dim = 0 : i64, {{.*}} : (tensor<16x64xf32>) -> tensor<64x64xf32>
// ZERO1: func.func @eval
// ZERO1: oriel.all_reduce %loss_sum, %token_count

// Gradients, too: each microbatch scatters its own.
// ZERO2: func.func @backward
// ZERO2: oriel.reduce_scatter {{.*}} : (tensor<64x64xf32>) -> tensor<16x64xf32>
// ZERO2: oriel.reduce_scatter {{.*}} : (tensor<64x64xf32>) -> tensor<16x64xf32>
// ZERO2: func.func @update
// ZERO2: oriel.all_reduce {{.*}} : (tensor<f32>, tensor<f32>) ->
// ZERO2: oriel.all_reduce {{.*}} : (tensor<f32>) ->
// ZERO2-COUNT-2: oriel.slice_local
// ZERO2-COUNT-2: oriel.all_gather {{.*}} : (tensor<16x64xf32>) -> tensor<64x64xf32>
// ZERO2: func.func @eval
// ZERO2: oriel.all_reduce %loss_sum, %token_count

// Parameters, too: forward and backward gather what they use (the backward needs no weight of the
// first layer), the update has nothing to gather.
// ZERO3: func.func @forward
// ZERO3-COUNT-2: oriel.all_gather {{.*}} : (tensor<16x64xf32>) -> tensor<64x64xf32>
// ZERO3: func.func @backward
// ZERO3: oriel.all_gather {{.*}} : (tensor<16x64xf32>) -> tensor<64x64xf32>
// ZERO3-COUNT-2: oriel.reduce_scatter {{.*}} : (tensor<64x64xf32>) -> tensor<16x64xf32>
// ZERO3: func.func @update
// ZERO3: oriel.all_reduce {{.*}} : (tensor<f32>, tensor<f32>) ->
// ZERO3: oriel.all_reduce {{.*}} : (tensor<f32>) ->
// ZERO3: func.func @eval
// ZERO3-COUNT-2: oriel.all_gather {{.*}} : (tensor<16x64xf32>) -> tensor<64x64xf32>
// ZERO3: oriel.all_reduce %loss_sum, %token_count

// Groups of two that shard (a1), two copies (a0): gradients are scattered within a group, and summed
// up between the copies in the update.
// HSDP2: func.func @forward
// HSDP2-COUNT-2: oriel.all_gather {{.*}} {axes = ["a1"], {{.*}} : (tensor<32x64xf32>) -> tensor<64x64xf32>
// HSDP2: func.func @backward
// HSDP2: oriel.all_gather {{.*}} {axes = ["a1"]
// HSDP2-COUNT-2: oriel.reduce_scatter {{.*}} {axes = ["a1"], {{.*}} : (tensor<64x64xf32>) -> tensor<32x64xf32>
// HSDP2: func.func @update
// HSDP2: oriel.all_reduce {{.*}} {axes = ["a0"], {{.*}} : (tensor<32x64xf32>, tensor<32x64xf32>) ->
// HSDP2: oriel.all_reduce {{.*}} {axes = ["a0", "a1"], {{.*}} : (tensor<f32>, tensor<f32>) ->
// HSDP2: oriel.all_reduce {{.*}} {axes = ["a1"], {{.*}} : (tensor<f32>) ->
// HSDP2: func.func @eval
// HSDP2-COUNT-2: oriel.all_gather {{.*}} {axes = ["a1"]
// HSDP2: oriel.all_reduce %loss_sum, %token_count {axes = ["a0", "a1"]
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<64x64xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<64x64xf32>}
  func.func @main(%x: tensor<8x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x64xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %up : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = oriel.relu %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %2 = oriel.linear %1, %down : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    return %2 : tensor<8x64xf32>
  }
}
