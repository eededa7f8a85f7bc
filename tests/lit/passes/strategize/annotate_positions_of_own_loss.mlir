// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/cp2.yaml --split-input-file | FileCheck %s

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

// -----

// Of two sequences side by side, a preferred answer and a rejected one.
// CHECK-LABEL: func.func @forward
// CHECK: oriel.gather {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.add {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.gather {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.mul {{.*}}oriel.positions = array<i64: 1>
// CHECK-NOT: oriel.positions
module {
  oriel.parameter @p0 {onnx_name = "places", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "table", type = tensor<32x8xf32>}
  func.func @forward(%ids: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "chosen"},
      %others: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "rejected"},
      %numbers: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "position_ids"},
      %table: tensor<32x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %places: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<32x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %1 = oriel.gather %places, %numbers {dim = 0 : i64} : (tensor<8x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %2 = oriel.add %0, %1 : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %3 = oriel.gather %table, %others {dim = 0 : i64} : (tensor<32x8xf32>, tensor<2x8xi64>) -> tensor<2x8x8xf32>
    %4 = oriel.mul %3, %3 : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %6 = oriel.reduce_sum %2 {dims = array<i64: 1, 2>} : (tensor<2x8x8xf32>) -> tensor<2xf32>
    %8 = oriel.reduce_sum %4 {dims = array<i64: 1, 2>} : (tensor<2x8x8xf32>) -> tensor<2xf32>
    %9 = oriel.sub %6, %8 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    %10 = oriel.reduce_sum %9 {dims = array<i64: 0>} : (tensor<2xf32>) -> tensor<f32>
    return %10 : tensor<f32>
  }
}
