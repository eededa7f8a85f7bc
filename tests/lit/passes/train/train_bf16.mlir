// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16.yaml --oriel-train=recipe=%S/Inputs/bf16.yaml --oriel-verify-train | FileCheck %s
// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16_gradients.yaml --oriel-train=recipe=%S/Inputs/bf16_gradients.yaml --oriel-verify-train | FileCheck %s --check-prefix=NARROW

// The stash is bf16 but for statistics, and holds no widened value: the backward widens it again.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: tensor<2x4x6xf32> {oriel.kind = "stash"
// CHECK-SAME: tensor<2x4x6xbf16> {oriel.kind = "stash", oriel.ref = "v1"}
// CHECK-NOT: tensor<2x4x6xf32> {oriel.kind = "stash"
// CHECK: oriel.cross_entropy %{{.*}} : (tensor<2x4x6xbf16>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)

// Gradients are f32 as they are made, also those that add up; nothing rounds them.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: tensor<6x6xf32> {oriel.kind = "gradient", oriel.ref = "w"}
// CHECK: oriel.cross_entropy_grad {{.*}} -> tensor<2x4x6xbf16>
// CHECK: %[[W1:.*]] = oriel.linear_weight_grad {{.*}} : (tensor<2x4x6xbf16>, tensor<2x4x6xbf16>) -> tensor<6x6xf32>
// CHECK: %[[B:.*]] = oriel.reduce_sum {{.*}} : (tensor<2x4x6xbf16>) -> tensor<6xf32>
// CHECK: oriel.add %{{.*}}, %[[B]] {{.*}} : (tensor<6xf32>, tensor<6xf32>)
// CHECK: oriel.cast %{{.*}} {origin = {{.*}} : (tensor<2x4x6xbf16>) -> tensor<2x4x6xf32>
// CHECK: %[[W0:.*]] = oriel.linear_weight_grad {{.*}} : (tensor<2x4x6xbf16>, tensor<2x4x6xbf16>) -> tensor<6x6xf32>
// CHECK: %[[W:.*]] = oriel.add %[[W1]], %[[W0]] {{.*}} : (tensor<6x6xf32>, tensor<6x6xf32>)
// CHECK: oriel.add %{{.*}}, %[[W]]

// The master is stepped in f32, and rounded.
// CHECK-LABEL: func.func @update(
// CHECK-SAME: tensor<6x6xbf16> {oriel.kind = "parameter", oriel.ref = "w"}
// CHECK-SAME: %[[MASTER:[a-z0-9]+]]: tensor<6x6xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"}
// CHECK-SAME: tensor<6x6xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "exp_avg"}
// CHECK-SAME: -> (tensor<6x6xbf16> {oriel.kind = "parameter", oriel.ref = "w"}
// CHECK: %[[STEPPED:.*]], %{{.*}}, %{{.*}} = oriel.adamw %[[MASTER]],
// CHECK: oriel.cast %[[STEPPED]] : (tensor<6x6xf32>) -> tensor<6x6xbf16>

// Evaluation gives f32 logits.
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}

// NARROW-LABEL: func.func @backward(
// NARROW-SAME: tensor<6x6xbf16> {oriel.kind = "gradient", oriel.ref = "w"}
// NARROW: oriel.linear_weight_grad {{.*}} -> tensor<6x6xbf16>
// NARROW-LABEL: func.func @update(
// NARROW: oriel.sum_squares {{.*}} : (tensor<6x6xbf16>, tensor<6xbf16>) -> tensor<f32>
// NARROW: oriel.sgd %{{.*}} : (tensor<6x6xf32>, tensor<6x6xbf16>, tensor<f32>, tensor<f32>) -> tensor<6x6xf32>
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<6x6xf32>}
  oriel.parameter @b {onnx_name = "b", type = tensor<6xf32>}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "b"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<2x4x6xf32>, tensor<6x6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.log %0 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.linear %1, %w, %b : (tensor<2x4x6xf32>, tensor<6x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    return %2 : tensor<2x4x6xf32>
  }
}
