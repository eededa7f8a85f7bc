// RUN: oriel-opt %s --oriel-assign-stages=strategy=%S/Inputs/one.yaml | FileCheck %s

// By origin: the table, the mask, which no parameter is in, two layers, the head. With one stage no op has one.
// CHECK: module attributes {oriel.blocks = array<i64: -1, -1, 0, 0, 0, 1, 1, 1>}
// CHECK-NOT: oriel.stage
module {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "head.weight", type = tensor<8x64xf32>}
  func.func @forward(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %seen: tensor<2x4x1xf32> {oriel.kind = "input", oriel.ref = "seen"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %head: tensor<8x64xf32> {oriel.kind = "parameter", oriel.ref = "p3"})
      -> (tensor<2x4x64xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64, origin = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1 = oriel.exp %seen {origin = 1 : i64} : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
    %2 = oriel.linear %0, %w0 {origin = 2 : i64} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %3 = oriel.mul %2, %1 {origin = 3 : i64} : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.add %0, %3 {origin = 4 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %5 = oriel.linear %4, %w1 {origin = 5 : i64} : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %6 = oriel.mul %5, %1 {origin = 6 : i64} : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
    %7 = oriel.add %4, %6 {origin = 7 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %8 = oriel.linear %7, %head {origin = 8 : i64} : (tensor<2x4x8xf32>, tensor<8x64xf32>) -> tensor<2x4x64xf32>
    return %8 : tensor<2x4x64xf32>
  }
}
