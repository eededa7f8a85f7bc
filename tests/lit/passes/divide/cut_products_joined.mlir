// RUN: oriel-opt %s --oriel-cut-products=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s

// Two branches that one layer takes side by side (Dehghani et al. 2023, section 2): the columns of a
// rank would not be those of one branch. What is joined with them, and is whole on each rank, stays
// joined.
// CHECK: oriel.parameter @[[A:.*]] {onnx_name = "down", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 16, 6>, {{.*}}type = tensor<8x6xf32>}
// CHECK: oriel.parameter @[[B:.*]] {onnx_name = "down", oriel.start = array<i64: 8, 0>, {{.*}}type = tensor<4x6xf32>}
// CHECK: oriel.parameter @[[C:.*]] {onnx_name = "down", oriel.start = array<i64: 12, 0>, {{.*}}type = tensor<4x6xf32>}
// CHECK: %[[FIRST:.*]] = oriel.activation
// CHECK: %[[SECOND:.*]] = oriel.tanh
// CHECK: %[[X:.*]] = oriel.linear %[[FIRST]], %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<8x6xf32>, tensor<6xf32>)
// CHECK: %[[Y:.*]] = oriel.linear %[[SECOND]], %{{.*}} : (tensor<2x4xf32>, tensor<4x6xf32>)
// CHECK: %[[XY:.*]] = oriel.add %[[X]], %[[Y]]
// CHECK: %[[WHOLE:.*]] = oriel.concat %{{.*}}, %{{.*}} {dim = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK: %[[Z:.*]] = oriel.linear %[[WHOLE]], %{{.*}} : (tensor<2x4xf32>, tensor<4x6xf32>)
// CHECK: oriel.add %[[XY]], %[[Z]]
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<4x8xf32>}
  oriel.parameter @p1 {onnx_name = "gate", type = tensor<4x4xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<16x6xf32>}
  oriel.parameter @p3 {onnx_name = "bias", type = tensor<6xf32>}
  func.func @main(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %state: tensor<2x2xf32> {oriel.kind = "input", oriel.ref = "state"},
      %up: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %gate: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %bias: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p3"})
      -> (tensor<2x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %up : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = oriel.activation %0 {kind = "gelu"} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %2 = oriel.linear %x, %gate : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %3 = oriel.tanh %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
    %4 = oriel.sin %state : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %5 = oriel.cos %state : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %6 = oriel.concat %1, %3, %4, %5 {dim = 1 : i64} : (tensor<2x8xf32>, tensor<2x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x16xf32>
    %7 = oriel.linear %6, %down, %bias : (tensor<2x16xf32>, tensor<16x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
    return %7 : tensor<2x6xf32>
  }
}

// -----

// Nothing that comes in pieces: as it is.
// CHECK: oriel.concat
// CHECK-NEXT: oriel.linear {{.*}} : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4x6xf32>}
  func.func @main(%x: tensor<2x2xf32> {oriel.kind = "input", oriel.ref = "x"},
      %state: tensor<2x2xf32> {oriel.kind = "input", oriel.ref = "state"},
      %w: tensor<4x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.concat %x, %state {dim = 1 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x4xf32>
    %1 = oriel.linear %0, %w : (tensor<2x4xf32>, tensor<4x6xf32>) -> tensor<2x6xf32>
    return %1 : tensor<2x6xf32>
  }
}
