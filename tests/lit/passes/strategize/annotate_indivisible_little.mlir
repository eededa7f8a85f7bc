// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml --verify-diagnostics | FileCheck %s

// Three elements between two small weights, 48 of 4,144: they stay whole, the others don't.
// CHECK: "route", type = tensor<8x3xf32>}
// CHECK: "back", type = tensor<3x8xf32>}
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "route", type = tensor<8x3xf32>}
  oriel.parameter @p1 {onnx_name = "back", type = tensor<3x8xf32>}
  oriel.parameter @p2 {onnx_name = "up", type = tensor<8x256xf32>}
  oriel.parameter @p3 {onnx_name = "down", type = tensor<256x8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %route: tensor<8x3xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %back: tensor<3x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %up: tensor<8x256xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down: tensor<256x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %x, %route : (tensor<2x4x8xf32>, tensor<8x3xf32>) -> tensor<2x4x3xf32>
    // expected-warning @below {{tp = 2 does not divide the 3 elements or heads at oriel.linear, for which "route" would be split: each rank computes all of it}}
    %1 = oriel.linear %0, %back : (tensor<2x4x3xf32>, tensor<3x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.linear %1, %up : (tensor<2x4x8xf32>, tensor<8x256xf32>) -> tensor<2x4x256xf32>
    %3 = oriel.linear %2, %down : (tensor<2x4x256xf32>, tensor<256x8xf32>) -> tensor<2x4x8xf32>
    return
  }
}
