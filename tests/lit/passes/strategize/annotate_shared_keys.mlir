// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml | FileCheck %s

// Keys and queries that all heads of a state space share, with a norm over what the heads make:
// they could be split by columns for scores and state, and stay whole for the larger block of values
// and output, which splits the state otherwise.
// CHECK: "query", type = tensor<16x4xf32>}
// CHECK: "key", type = tensor<16x4xf32>}
// CHECK: "value", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "output", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<16x4xf32>}
  oriel.parameter @p1 {onnx_name = "key", type = tensor<16x4xf32>}
  oriel.parameter @p2 {onnx_name = "value", type = tensor<16x64xf32>}
  oriel.parameter @p3 {onnx_name = "norm", type = tensor<64xf32>}
  oriel.parameter @p4 {onnx_name = "output", type = tensor<64x16xf32>}
  func.func @forward(%x: tensor<2x4x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<16x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %key: tensor<16x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %value: tensor<16x64xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %norm: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %output: tensor<64x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"}) {
    %0 = oriel.linear %x, %query : (tensor<2x4x16xf32>, tensor<16x4xf32>) -> tensor<2x4x4xf32>
    %1 = oriel.linear %x, %key : (tensor<2x4x16xf32>, tensor<16x4xf32>) -> tensor<2x4x4xf32>
    %2 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
    %3 = oriel.linear %x, %value : (tensor<2x4x16xf32>, tensor<16x64xf32>) -> tensor<2x4x64xf32>
    %4 = oriel.matmul %2, %3 : (tensor<2x4x4xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %state = oriel.matmul %1, %3 {transpose_lhs = true} : (tensor<2x4x4xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %carried = oriel.matmul %0, %state : (tensor<2x4x4xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %all = oriel.add %4, %carried : (tensor<2x4x64xf32>, tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %5:2 = oriel.rms_norm %all, %norm {epsilon = 1.0e-6 : f64} : (tensor<2x4x64xf32>, tensor<64xf32>) -> (tensor<2x4x64xf32>, tensor<2x4xf32>)
    %6 = oriel.linear %5#0, %output : (tensor<2x4x64xf32>, tensor<64x16xf32>) -> tensor<2x4x16xf32>
    return
  }
}
