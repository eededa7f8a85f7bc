// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/interleaved.yaml --oriel-split-stages="strategy=%S/Inputs/interleaved.yaml microbatches=2" | FileCheck %s

// A value that a program keeps for its later stage and for the backward is stash once, under one name.

// CHECK: module @p0
// CHECK: func.func @forward.0({{.*}} -> ({{.*}}tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "forward.0"}
// CHECK: func.func @forward.2(%{{.*}}: tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "forward.0"}
// CHECK: func.func @backward.2({{.*}}tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "forward.0"}
// CHECK: func.func @backward.0({{.*}}tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "forward.0"}
module {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "skip.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p4 {onnx_name = "layers.2.weight", type = tensor<8x8xf32>}
  oriel.parameter @p5 {onnx_name = "layers.3.weight", type = tensor<8x8xf32>}
  oriel.parameter @p6 {onnx_name = "head.weight", type = tensor<8x16xf32>}
  func.func @main(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %ws: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %w2: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %w3: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"},
      %head: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p6"})
      -> (tensor<2x4x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %x = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %skip = oriel.linear %x, %ws : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %0 = oriel.linear %x, %w0 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %1 = oriel.mul %skip, %0 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.linear %1, %w1 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %3 = oriel.mul %skip, %2 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.linear %3, %w2 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %5 = oriel.mul %skip, %4 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %6 = oriel.linear %5, %w3 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %7 = oriel.mul %skip, %6 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %8 = oriel.linear %7, %head : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    return %8 : tensor<2x4x16xf32>
  }
}
