// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/zb_four.yaml --oriel-split-stages="strategy=%S/Inputs/zb_four.yaml microbatches=2" | FileCheck %s

// The first stage has nothing but a table: its gradient is the one half of the backward that there is.
// CHECK: module @p0 attributes {{.*}}["backward_input.0", 0]
// CHECK-NOT: backward_weight
// CHECK: func.func @backward_input.0(
// CHECK: oriel.scatter_add
// CHECK: module @p1
// CHECK: func.func @backward_input.1(
// CHECK: func.func @backward_weight.1(
module {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "head.weight", type = tensor<8x16xf32>}
  func.func @main(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %head: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p3"})
      -> (tensor<2x4x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1 = oriel.linear %0, %w0 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.exp %1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %3 = oriel.linear %2, %w1 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.exp %3 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %5 = oriel.linear %4, %head : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    return %5 : tensor<2x4x16xf32>
  }
}
