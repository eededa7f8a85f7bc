// The cross entropies that a model computes itself, of which one has a layer to itself.
// RUN: oriel-opt %s "--oriel-train=recipe=%S/Inputs/sum.yaml fuse-loss=true" --oriel-verify-train --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @forward(
// CHECK: oriel.tanh
// CHECK: %[[KEPT:.*]], %{{.*}}, %{{.*}} = oriel.cross_entropy
// CHECK: %[[SUM:.*]], %[[COUNT:.*]], %{{.*}} = oriel.linear_cross_entropy
// CHECK: oriel.div %[[SUM]], %[[COUNT]]
// CHECK-LABEL: func.func @backward(
// CHECK: oriel.linear_cross_entropy_grad
// CHECK-LABEL: func.func @eval(
// CHECK: oriel.linear_cross_entropy
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  func.func @main(%x: tensor<2x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "labels"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %w : (tensor<2x4x5xf32>, tensor<5x6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.tanh %0 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
    %2:3 = oriel.cross_entropy %1, %labels : (tensor<2x4x6xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
    %3 = oriel.linear %x, %w : (tensor<2x4x5xf32>, tensor<5x6xf32>) -> tensor<2x4x6xf32>
    %4:3 = oriel.cross_entropy %3, %labels : (tensor<2x4x6xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
    %5 = oriel.div %4#0, %4#1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %6 = oriel.add %2#0, %5 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %6 : tensor<f32>
  }
}

// -----

// Losses of tokens, of rows of samples and positions.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[LOSSES:.*]], %{{.*}} = oriel.linear_token_losses {{.*}} -> (tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK: oriel.reshape %[[LOSSES]] {{.*}} -> tensor<8xf32>
// CHECK-LABEL: func.func @backward(
// CHECK: oriel.linear_cross_entropy_grad {{.*}} : (tensor<2x4xf32>, tensor<2x4x5xf32>
// CHECK-LABEL: func.func @eval(
// CHECK: oriel.linear_token_losses
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  func.func @main(%x: tensor<2x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<8xi64> {oriel.kind = "input", oriel.ref = "labels"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %w : (tensor<2x4x5xf32>, tensor<5x6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.reshape %0 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    %2:2 = oriel.token_losses %1, %labels : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
    %3 = oriel.exp %2#0 : (tensor<8xf32>) -> tensor<8xf32>
    %4 = oriel.reduce_sum %3 {dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %4 : tensor<f32>
  }
}

// -----

// A temperature scales what the layer takes.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x5xf32>
// CHECK: %[[COOLER:.*]] = oriel.div %[[X]], %{{.*}} : (tensor<2x4x5xf32>, tensor<1x1x1xf32>)
// CHECK: oriel.linear_token_losses %[[COOLER]],
// CHECK-NOT: oriel.linear %
// CHECK-LABEL: func.func @backward(
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  func.func @main(%x: tensor<2x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<8xi64> {oriel.kind = "input", oriel.ref = "labels"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %temperature = oriel.constant {value = dense<0.7> : tensor<1x1x1xf32>} : () -> tensor<1x1x1xf32>
    %0 = oriel.linear %x, %w : (tensor<2x4x5xf32>, tensor<5x6xf32>) -> tensor<2x4x6xf32>
    %1 = oriel.div %0, %temperature : (tensor<2x4x6xf32>, tensor<1x1x1xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.reshape %1 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    %3:2 = oriel.token_losses %2, %labels : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
    %4 = oriel.reduce_sum %3#0 {dims = array<i64: 0>} : (tensor<8xf32>) -> tensor<f32>
    return %4 : tensor<f32>
  }
}

// -----

// Two losses of one layer's rows: each computes the layer for its own.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x4x5xf32>
// CHECK: %[[FIRST:.*]] = oriel.slice %[[X]] {limits = array<i64: 2, 4, 5>, {{.*}}starts = array<i64: 0, 0, 0>
// CHECK: oriel.linear_token_losses %[[FIRST]],
// CHECK: %[[SECOND:.*]] = oriel.slice %[[X]] {limits = array<i64: 4, 4, 5>, {{.*}}starts = array<i64: 2, 0, 0>
// CHECK: oriel.linear_token_losses %[[SECOND]],
// CHECK-NOT: oriel.linear %
// CHECK-LABEL: func.func @backward(
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<5x6xf32>}
  func.func @main(%x: tensor<4x4x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "labels"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %w : (tensor<4x4x5xf32>, tensor<5x6xf32>) -> tensor<4x4x6xf32>
    %1 = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<4x4x6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.slice %0 {starts = array<i64: 2, 0, 0>, limits = array<i64: 4, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<4x4x6xf32>) -> tensor<2x4x6xf32>
    %3:2 = oriel.token_losses %1, %labels : (tensor<2x4x6xf32>, tensor<2x4xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %4:2 = oriel.token_losses %2, %labels : (tensor<2x4x6xf32>, tensor<2x4xi64>) -> (tensor<2x4xf32>, tensor<2x4xf32>)
    %5 = oriel.sub %3#0, %4#0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x4xf32>
    %6 = oriel.reduce_sum %5 {dims = array<i64: 0, 1>} : (tensor<2x4xf32>) -> tensor<f32>
    return %6 : tensor<f32>
  }
}
