// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/cp2.yaml | FileCheck %s

// A loss of the model's own, of rows of samples and positions: the positions are those of the tokens,
// through attention that is not causal.
// CHECK-LABEL: func.func @forward
// CHECK: oriel.gather {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.linear {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.reshape {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.attention {{.*}}oriel.positions = array<i64: 1, -1>
// CHECK-NOT: oriel.positions
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "table", type = tensor<32x8xf32>}
  func.func @forward(%ids: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<32x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %query: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %x = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<32x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %0 = oriel.linear %x, %query : (tensor<2x8x8xf32>, tensor<8x16xf32>) -> tensor<2x8x16xf32>
    %q = oriel.reshape %0 : (tensor<2x8x16xf32>) -> tensor<2x8x2x8xf32>
    %1, %lse = oriel.attention %q, %q, %q {scale = 0.5, sequence_first = true} : (tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>, tensor<2x8x2x8xf32>) -> (tensor<2x8x2x8xf32>, tensor<2x2x8xf32>)
    %2 = oriel.reshape %1 : (tensor<2x8x2x8xf32>) -> tensor<16x16xf32>
    %3 = oriel.reduce_sum %2 {dims = array<i64: 0, 1>} : (tensor<16x16xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
