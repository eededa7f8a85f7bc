// RUN: oriel-opt %s --oriel-assign-stages=strategy=%S/Inputs/two.yaml --split-input-file | FileCheck %s

// A table, four equal layers, and a head as dear as three: three layers go with the table. On a
// device so slow that launches count nothing.
// The label of the second says what is in it by the names of its parameters.
// CHECK: module attributes {{{.*}}oriel.stages = ["layers.0-2", "layers.3"]}
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.gather {{.*}}oriel.stage = 0 : i64
// CHECK-COUNT-6: oriel.stage = 0 : i64
// CHECK-NOT: oriel.stage = 0 : i64
// CHECK: oriel.linear {{.*}}oriel.stage = 1 : i64
// CHECK: return
module attributes {oriel.cluster = {float_flops = 1.0e15, half_flops = 1.0e15, memory_bandwidth = 1.0e3, links = []}} {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "layers.2.weight", type = tensor<8x8xf32>}
  oriel.parameter @p4 {onnx_name = "layers.3.weight", type = tensor<8x8xf32>}
  oriel.parameter @p5 {onnx_name = "head.weight", type = tensor<8x64xf32>}
  func.func @forward(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %w2: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %w3: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %head: tensor<8x64xf32> {oriel.kind = "parameter", oriel.ref = "p5"})
      -> (tensor<2x4x64xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64, origin = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1 = oriel.linear %0, %w0 {origin = 1 : i64} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.add %0, %1 {origin = 2 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %3 = oriel.linear %2, %w1 {origin = 3 : i64} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.add %2, %3 {origin = 4 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %5 = oriel.linear %4, %w2 {origin = 5 : i64} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %6 = oriel.add %4, %5 {origin = 6 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %7 = oriel.linear %6, %w3 {origin = 7 : i64} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %8 = oriel.add %6, %7 {origin = 8 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %9 = oriel.linear %8, %head {origin = 9 : i64} : (tensor<2x4x8xf32>, tensor<8x64xf32>) -> tensor<2x4x64xf32>
    return %9 : tensor<2x4x64xf32>
  }
}

// -----

// What depends on no parameter, or on no input, is in the stage of its first reader: the mask of the
// second layer in the second stage, the scale of both in the first, and a product of parameters
// with the layer that it is a weight of.
// CHECK-LABEL: func.func @forward(
// CHECK-DAG: oriel.constant {{.*}}oriel.stage = 0 : i64{{.*}}dense<2.0
// CHECK-DAG: oriel.constant {{.*}}oriel.stage = 1 : i64{{.*}}dense<3.0
// CHECK-DAG: oriel.add %[[MASK:.*]], %{{.*}} {oriel.stage = 1 : i64, origin = {{.*}}} : (tensor<8xf32>, tensor<f32>)
// CHECK-DAG: oriel.matmul {{.*}}oriel.stage = 1 : i64
module {
  oriel.parameter @p0 {onnx_name = "a.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "a.1.left", type = tensor<8x2xf32>}
  oriel.parameter @p2 {onnx_name = "a.1.right", type = tensor<2x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %mask: tensor<8xf32> {oriel.kind = "input", oriel.ref = "mask"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %left: tensor<8x2xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %right: tensor<2x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %three = oriel.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
    %scaled = oriel.add %mask, %three {origin = 0 : i64} : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
    %product = oriel.matmul %left, %right {origin = 1 : i64} : (tensor<8x2xf32>, tensor<2x8xf32>) -> tensor<8x8xf32>
    %0 = oriel.linear %x, %w {origin = 2 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.mul %0, %two {origin = 3 : i64} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %2 = oriel.linear %1, %product {origin = 4 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.mul %2, %two {origin = 5 : i64} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %4 = oriel.add %3, %scaled {origin = 6 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    return %4 : tensor<4x8xf32>
  }
}
