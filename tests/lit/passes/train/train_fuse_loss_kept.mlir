// RUN: oriel-opt %s "--oriel-train=recipe=%S/Inputs/sgd.yaml fuse-loss=true" --oriel-verify-train --split-input-file 2>%t.warnings | FileCheck %s
// RUN: FileCheck %s --check-prefix=WARNING --input-file=%t.warnings

// WARNING: the loss can't be computed with the output layer

// Something stands between the output layer and the loss: the logits stay.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.linear
// CHECK: oriel.tanh
// CHECK: oriel.cross_entropy
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  func.func @main(%x: tensor<2x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<2x4x5xf32>, tensor<5x6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.tanh %0 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.reshape %1 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// What scales the logits scales the bias, too: that would be a parameter that changes on its way.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.linear
// CHECK: oriel.mul
// CHECK: oriel.cross_entropy
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  oriel.parameter @p1 {onnx_name = "bias", type = tensor<6xf32>}
  func.func @main(%x: tensor<2x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.linear %x, %w, %b : (tensor<2x4x5xf32>, tensor<5x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.mul %half, %0 : (tensor<f32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.reshape %1 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// Only one of two slices of the logits is a loss's: the layer would be computed twice.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.linear %
// CHECK-NOT: oriel.linear_
// CHECK: oriel.cross_entropy
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  func.func @main(%x: tensor<4x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<4x4x5xf32>, tensor<5x6xf32>) -> tensor<4x4x6xf32>
    %1 = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<4x4x6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.slice %0 {starts = array<i64: 2, 0, 0>, limits = array<i64: 4, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<4x4x6xf32>) -> tensor<2x4x6xf32>
    %3 = oriel.reshape %2 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    %4 = oriel.tanh %3 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %5 = oriel.reshape %1 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    %6 = oriel.add %4, %5 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %6 : tensor<8x6xf32>
  }
}
