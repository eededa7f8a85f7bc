// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/zero1_fsdp6.yaml | FileCheck %s

// Of 36 columns tp leaves 18, which six ranks divide, so that groups gain nothing. The frozen
// parameter, which only pairs divide, has no state and doesn't count.
// CHECK: oriel.grid = {a0 = 6 : i64, a1 = 2 : i64}
// CHECK-SAME: oriel.mesh = {fsdp = ["a0"], tp = ["a1"]}
// CHECK: @p0 {{.*}} state = #oriel.sharding<[{}, {a1, a0}]>
module {
  oriel.parameter @p0 {onnx_name = "up", trainable = true, type = tensor<8x36xf32>}
  oriel.parameter @p1 {onnx_name = "down", trainable = true, type = tensor<36x8xf32>}
  oriel.parameter @p2 {onnx_name = "frozen", type = tensor<16x16xf32>}
  func.func @forward(%x: tensor<6x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x36xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<36x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<6x4x8xf32>, tensor<8x36xf32>) -> tensor<6x4x36xf32>
    %1 = oriel.linear %0, %down : (tensor<6x4x36xf32>, tensor<36x8xf32>) -> tensor<6x4x8xf32>
    return
  }
}
