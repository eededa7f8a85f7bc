// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/zero3_six.yaml | FileCheck %s

// Six ranks divide one parameter only; of the others, pairs of neighbours (a1) share what they
// divide, and the three pairs (a0) are copies.
// CHECK: oriel.grid = {a0 = 3 : i64, a1 = 2 : i64}
// CHECK-SAME: oriel.mesh = {dp = ["a0", "a1"]}
// CHECK: @p0 {{.*}} storage = #oriel.sharding<[{}, {a1}]>
// CHECK: @p1 {{.*}} storage = #oriel.sharding<[{a0, a1}]>
// CHECK: @p2 {onnx_name = "odd", type = tensor<7xf32>}
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "scale", type = tensor<12xf32>}
  oriel.parameter @p2 {onnx_name = "odd", type = tensor<7xf32>}
  func.func @forward(%x: tensor<6x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.linear %x, %up : (tensor<6x4x8xf32>, tensor<8x16xf32>) -> tensor<6x4x16xf32>
    return
  }
}
