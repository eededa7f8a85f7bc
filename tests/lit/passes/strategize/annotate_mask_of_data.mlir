// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml | FileCheck %s

// A mask for all columns, of data alone, is there for pieces of them and for the residual stream.
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<16x16xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x16xf32>}
  func.func @forward(%x: tensor<2x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %chosen: tensor<2x1xi1> {oriel.kind = "input", oriel.ref = "chosen"},
      %up: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %mask = oriel.broadcast %chosen : (tensor<2x1xi1>) -> tensor<2x16xi1>
    %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.linear %x, %up : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %1 = oriel.select %mask, %0, %zero : (tensor<2x16xi1>, tensor<2x16xf32>, tensor<f32>) -> tensor<2x16xf32>
    %2 = oriel.linear %1, %down : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %3 = oriel.select %mask, %2, %x : (tensor<2x16xi1>, tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    return
  }
}
