// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp4.yaml --split-input-file | FileCheck %s

// Two key heads on four ranks: the axis tp is made of two, keys and values are split over the outer
// one only, so that two ranks share a key head; queries and the output projection over both.
// CHECK: oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {tp = ["a0", "a1"]}
// CHECK: "query", {{.*}}use = #oriel.sharding<[{}, {a0, a1}]>
// CHECK: "key", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "value", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "output", {{.*}}use = #oriel.sharding<[{a0, a1}, {}]>
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0, a1}]>
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
    %3, %lse = oriel.attention %q, %k, %v {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x6x4x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x4x4xf32>, tensor<2x4x6xf32>)
    %4 = oriel.reshape %3 : (tensor<2x6x4x4xf32>) -> tensor<2x6x16xf32>
    %5 = oriel.linear %4, %output : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    %6 = oriel.linear %5, %up : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %7 = oriel.linear %6, %down : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}

// -----

// Norms of two groups on four ranks: half of a group's columns is on a rank.
// CHECK: "value", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "output", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "value", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<8xf32>}
  oriel.parameter @p2 {onnx_name = "output", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %value: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %output: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %value : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %1 = oriel.reshape %0 : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
    %2:2 = oriel.rms_norm %1, %norm {epsilon = 1.0e-6 : f64} : (tensor<2x6x2x8xf32>, tensor<8xf32>) -> (tensor<2x6x2x8xf32>, tensor<2x6x2xf32>)
    %3 = oriel.reshape %2#0 : (tensor<2x6x2x8xf32>) -> tensor<2x6x16xf32>
    %4 = oriel.linear %3, %output : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}
