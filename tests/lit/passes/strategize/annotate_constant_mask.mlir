// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml | FileCheck %s

// Attention with a bias for each head that is a constant: each rank takes that of its heads.
// CHECK: "query", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "key", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "value", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "output", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "key", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "value", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "output", type = tensor<16x8xf32>}
  oriel.parameter @p4 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p5 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %key: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %value: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %output: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %0 = oriel.linear %x, %query : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %q = oriel.reshape %0 : (tensor<2x6x16xf32>) -> tensor<2x6x4x4xf32>
    %1 = oriel.linear %x, %key : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %k = oriel.reshape %1 : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
    %2 = oriel.linear %x, %value : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v = oriel.reshape %2 : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
    %mask = oriel.constant {value = dense<[[[[0.0]], [[-1.0]], [[-2.0]], [[-3.0]]]]> : tensor<1x4x1x1xf32>} : () -> tensor<1x4x1x1xf32>
    %3, %lse = oriel.attention %q, %k, %v, %mask {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x6x4x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<1x4x1x1xf32>) -> (tensor<2x6x4x4xf32>, tensor<2x4x6xf32>)
    %4 = oriel.reshape %3 : (tensor<2x6x4x4xf32>) -> tensor<2x6x16xf32>
    %5 = oriel.linear %4, %output : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    %6 = oriel.linear %5, %up : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %7 = oriel.linear %6, %down : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}
