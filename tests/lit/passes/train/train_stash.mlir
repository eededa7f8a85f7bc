// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/sgd.yaml --oriel-verify-train --split-input-file | FileCheck %s

// What the backward can get or make by itself is not stashed: the parameter is an argument
// of its own, the constant is repeated, and of a value and its view only the value is kept.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: -> (tensor<2x4x6xf32> {oriel.kind = "stash", oriel.ref = "v1"}, tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "v4"}, tensor<8xf32> {oriel.kind = "stash", oriel.ref = "v5.2"}, tensor<f32> {oriel.kind = "accumulator"
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<2x4x6xf32> {oriel.kind = "stash", oriel.ref = "v1"}
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
// CHECK: %[[C:.*]] = oriel.constant {{.*}}origin = 0 : i64, value = dense<2.0
// CHECK: %[[G:.*]] = oriel.mul %{{.*}}, %[[C]] {oriel.weight_gradient, origin = 4 : i64}
// CHECK: %[[DX:.*]] = oriel.linear %[[G]], %[[W]] {oriel.weight_gradient, origin = 3 : i64, transpose_weight = true}
// CHECK: %[[VIEW:.*]] = oriel.reshape %[[E]] {origin = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
// CHECK: oriel.linear_weight_grad %[[VIEW]], %[[G]] {oriel.weight_gradient, origin = 3 : i64}
// CHECK: %[[DE:.*]] = oriel.reshape %[[DX]] {oriel.weight_gradient, origin = 2 : i64} : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
// CHECK: oriel.mul %[[DE]], %[[E]] {oriel.weight_gradient, origin = 1 : i64}
// SGD has no optimizer state, and without clip_norm there is no clipping.
// CHECK-LABEL: func.func @update(
// CHECK-NOT: optimizer_state
// CHECK-NOT: oriel.min
// CHECK: oriel.sgd %{{.*}} {weight_decay = 0.000000e+00 : f64}
// Without a shift, the predictions are the argmax.
// CHECK-LABEL: func.func @eval(
// CHECK: %[[P:.*]] = oriel.argmax
// CHECK-NEXT: return %{{.*}}, %{{.*}}, %[[P]], %{{.*}}
module {
  oriel.parameter @p0 {onnx_name = "a", type = tensor<2x4x6xf32>}
  oriel.parameter @p1 {onnx_name = "w", type = tensor<6x6xf32>}
  func.func @main(%a: tensor<2x4x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %c = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.exp %a : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.reshape %0 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    %2 = oriel.linear %1, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %3 = oriel.mul %2, %c : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    return %3 : tensor<8x6xf32>
  }
}

// -----

// A parameter used twice: its cotangents add up before they reach the accumulator, and the
// tied weight has one gradient, one step.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[ACC:[a-z0-9]+]]: tensor<6x6xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) ->
// CHECK: %[[D1:.*]] = oriel.linear_weight_grad %{{.*}} {oriel.weight_gradient, origin = 1 : i64, transpose_weight = true}
// CHECK: %[[D0:.*]] = oriel.linear_weight_grad %{{.*}} {oriel.weight_gradient, origin = 0 : i64}
// CHECK: %[[D:.*]] = oriel.add %[[D1]], %[[D0]] {oriel.weight_gradient, origin = 0 : i64}
// CHECK: %[[NEXT:.*]] = oriel.add %[[ACC]], %[[D]]
// CHECK: return %[[NEXT]]
// CHECK-LABEL: func.func @update(
// CHECK-COUNT-1: oriel.sgd
// CHECK-NOT: oriel.sgd
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x6xf32>}
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.linear %0, %w {transpose_weight = true} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    return %1 : tensor<8x6xf32>
  }
}

// -----

// Outputs that are not the loss's logits are dropped with all that only they need.
// CHECK-LABEL: func.func @forward(
// CHECK-NOT: "other"
// CHECK-NOT: oriel.tanh
// CHECK-LABEL: func.func @backward(
// CHECK-LABEL: func.func @eval(
// CHECK-NOT: oriel.tanh
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x6xf32>}
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %y: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "other"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "extra"},
          tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.tanh %y : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    return %0, %1 : tensor<8x6xf32>, tensor<8x6xf32>
  }
}
