// RUN: oriel-opt %s --oriel-verify-train | FileCheck %s

// A module that holds the contract is left as it is; the backward may repeat a view or a
// constant of an op without a gradient.
// CHECK-LABEL: func.func @backward
// CHECK: oriel.reshape
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    %2 = oriel.add %s, %1 {origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %3 = oriel.reshape %s {origin = 8 : i64} : (tensor<f32>) -> tensor<1xf32>
    return %0, %2 : tensor<4xf32>, tensor<f32>
  }
  func.func @backward(%x: tensor<f32> {oriel.kind = "input", oriel.ref = "x"},
                      %e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %r = oriel.reshape %x {origin = 8 : i64} : (tensor<f32>) -> tensor<1xf32>
    %c = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}
