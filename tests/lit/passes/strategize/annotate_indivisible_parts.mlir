// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml --verify-diagnostics | FileCheck %s

// Three heads of query, key and value that are of one weight: attention stays whole, the MLP does not.
// CHECK: oriel.parameter @p0 {onnx_name = "qkv", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 36>, type = tensor<8x12xf32>}
// CHECK: @p1 {onnx_name = "qkv", {{.*}}type = tensor<8x12xf32>}
// CHECK: @p2 {onnx_name = "qkv", {{.*}}type = tensor<8x12xf32>}
// CHECK: "output", type = tensor<12x8xf32>}
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "qkv", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 36>, type = tensor<8x12xf32>}
  oriel.parameter @p1 {onnx_name = "qkv", oriel.start = array<i64: 0, 12>, oriel.whole = array<i64: 8, 36>, type = tensor<8x12xf32>}
  oriel.parameter @p2 {onnx_name = "qkv", oriel.start = array<i64: 0, 24>, oriel.whole = array<i64: 8, 36>, type = tensor<8x12xf32>}
  oriel.parameter @p3 {onnx_name = "output", type = tensor<12x8xf32>}
  oriel.parameter @p4 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p5 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %key: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %value: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %output: tensor<12x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %0 = oriel.linear %x, %query : (tensor<2x6x8xf32>, tensor<8x12xf32>) -> tensor<2x6x12xf32>
    %q = oriel.reshape %0 : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %1 = oriel.linear %x, %key : (tensor<2x6x8xf32>, tensor<8x12xf32>) -> tensor<2x6x12xf32>
    %k = oriel.reshape %1 : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %2 = oriel.linear %x, %value : (tensor<2x6x8xf32>, tensor<8x12xf32>) -> tensor<2x6x12xf32>
    %v = oriel.reshape %2 : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %3, %lse = oriel.attention %q, %k, %v {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) -> (tensor<2x6x3x4xf32>, tensor<2x3x6xf32>)
    %4 = oriel.reshape %3 : (tensor<2x6x3x4xf32>) -> tensor<2x6x12xf32>
    // expected-warning @below {{tp = 2 does not divide the 3 elements or heads at oriel.reshape, for which "qkv[:, 0:12]" would be split: each rank computes all of it}}
    %5 = oriel.linear %4, %output : (tensor<2x6x12xf32>, tensor<12x8xf32>) -> tensor<2x6x8xf32>
    %6 = oriel.linear %5, %up : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %7 = oriel.linear %6, %down : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}
