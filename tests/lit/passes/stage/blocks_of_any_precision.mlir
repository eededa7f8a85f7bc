// RUN: oriel-opt %s --oriel-assign-stages=strategy=%S/Inputs/one.yaml | FileCheck %s

// Layers are those of the model in f32: fewer bytes behind each product don't make it the end of a
// block, with half a layer more on both sides.
// CHECK: module attributes {oriel.blocks = array<i64: -1, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2>}
module {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.weight", type = tensor<8x8xbf16>}
  oriel.parameter @p2 {onnx_name = "layers.1.weight", type = tensor<8x8xbf16>}
  oriel.parameter @p3 {onnx_name = "layers.2.weight", type = tensor<8x8xbf16>}
  oriel.parameter @p4 {onnx_name = "head.weight", type = tensor<8x64xf32>}
  func.func @forward(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w0: tensor<8x8xbf16> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w1: tensor<8x8xbf16> {oriel.kind = "parameter", oriel.ref = "p2"},
      %w2: tensor<8x8xbf16> {oriel.kind = "parameter", oriel.ref = "p3"},
      %head: tensor<8x64xf32> {oriel.kind = "parameter", oriel.ref = "p4"})
      -> (tensor<2x4x64xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %x0 = oriel.gather %table, %ids {dim = 0 : i64, origin = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %n0 = oriel.cast %x0 {origin = 1 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
    %y0 = oriel.linear %n0, %w0 {origin = 2 : i64} : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
    %z0 = oriel.cast %y0 {origin = 3 : i64} : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %x1 = oriel.exp %z0 {origin = 4 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %n1 = oriel.cast %x1 {origin = 5 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
    %y1 = oriel.linear %n1, %w1 {origin = 6 : i64} : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
    %z1 = oriel.cast %y1 {origin = 7 : i64} : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %x2 = oriel.exp %z1 {origin = 8 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %n2 = oriel.cast %x2 {origin = 9 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
    %y2 = oriel.linear %n2, %w2 {origin = 10 : i64} : (tensor<2x4x8xbf16>, tensor<8x8xbf16>) -> tensor<2x4x8xbf16>
    %z2 = oriel.cast %y2 {origin = 11 : i64} : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
    %x3 = oriel.exp %z2 {origin = 12 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %logits = oriel.linear %x3, %head {origin = 13 : i64} : (tensor<2x4x8xf32>, tensor<8x64xf32>) -> tensor<2x4x64xf32>
    return %logits : tensor<2x4x64xf32>
  }
}
