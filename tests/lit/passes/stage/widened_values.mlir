// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/split_bf16.yaml --oriel-train=recipe=%S/Inputs/split_bf16.yaml --oriel-assign-stages=strategy=%S/Inputs/interleaved.yaml --oriel-split-stages="strategy=%S/Inputs/interleaved.yaml microbatches=2" -o %t
// RUN: FileCheck %s --input-file=%t --implicit-check-not='oriel.send {{.*}}xf32>' --implicit-check-not='oriel.receive {{.*}}2x4x8xf32>'

// A layer begins in f32: what another stage sends it is bf16 all the same, and widened where it is used,
// in the backward again.

// CHECK: func.func @forward.1(
// CHECK: %[[X:.*]] = oriel.receive {{.*}} -> tensor<2x4x8xbf16>
// CHECK: %[[WIDE:.*]] = oriel.cast %[[X]] {{.*}} : (tensor<2x4x8xbf16>) -> tensor<2x4x8xf32>
// CHECK: oriel.exp %[[WIDE]]
// CHECK: oriel.send {{.*}} : (tensor<2x4x8xbf16>)
// CHECK: func.func @backward.1(
// CHECK: oriel.send {{.*}} : (tensor<2x4x8xbf16>)
module {
  oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "layers.2.weight", type = tensor<8x8xf32>}
  oriel.parameter @p4 {onnx_name = "layers.3.weight", type = tensor<8x8xf32>}
  oriel.parameter @p5 {onnx_name = "head.weight", type = tensor<8x16xf32>}
  func.func @main(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %w2: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %w3: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %head: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p5"})
      -> (tensor<2x4x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %x = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<16x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %e0 = oriel.exp %x : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %y0 = oriel.linear %e0, %w0 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x0 = oriel.add %x, %y0 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %e1 = oriel.exp %x0 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %y1 = oriel.linear %e1, %w1 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x1 = oriel.add %x0, %y1 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %e2 = oriel.exp %x1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %y2 = oriel.linear %e2, %w2 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x2 = oriel.add %x1, %y2 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %e3 = oriel.exp %x2 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %y3 = oriel.linear %e3, %w3 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %x3 = oriel.add %x2, %y3 : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %logits = oriel.linear %x3, %head : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    return %logits : tensor<2x4x16xf32>
  }
}
