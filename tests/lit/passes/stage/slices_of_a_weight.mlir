// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/split.yaml --oriel-assign-stages=strategy=%S/Inputs/two.yaml --oriel-split-stages="strategy=%S/Inputs/two.yaml microbatches=2" | FileCheck %s

// Two stages have a slice each of one weight. Its gradient joins theirs where the later one comes from, which is the earlier stage:
// in the other one that slice's gradient would not be there yet.
// CHECK: module @p0
// CHECK: func.func @backward.0(
// CHECK: %[[OTHER:.*]] = oriel.receive {{.*}} : () -> tensor<8x8xf32>
// CHECK: oriel.concat {{.*}}%[[OTHER]]{{.*}} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
// CHECK: module @p1
// CHECK: func.func @backward.1(
// CHECK-NOT: oriel.concat
module {
  oriel.parameter @p0 {onnx_name = "layers.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "both.weight", type = tensor<16x8xf32>}
  func.func @main(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %both: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %late = oriel.slice %both {limits = array<i64: 8, 8>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
    %0 = oriel.linear %x, %w0 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %early = oriel.slice %both {limits = array<i64: 16, 8>, starts = array<i64: 8, 0>, strides = array<i64: 1, 1>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
    %2 = oriel.linear %0, %early : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %3 = oriel.exp %2 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.linear %3, %w1 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %6 = oriel.linear %4, %late : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return %6 : tensor<2x4x8xf32>
  }
}
