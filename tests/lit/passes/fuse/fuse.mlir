// RUN: oriel-opt %s --oriel-fuse --split-input-file | FileCheck %s

// A chain of pointwise ops and views is of the cluster of what they read.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.linear {{.*}}oriel.fusion_cluster = 0 : i64
// CHECK: oriel.add {{.*}}oriel.fusion_cluster = 0 : i64
// CHECK: oriel.reshape {{.*}}oriel.fusion_cluster = 0 : i64
// CHECK: oriel.activation {{.*}}oriel.fusion_cluster = 0 : i64
// CHECK: oriel.broadcast {{.*}}oriel.fusion_cluster = 1 : i64
// CHECK: oriel.linear {{.*}}oriel.fusion_cluster = 2 : i64
func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
    %b: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b"},
    %v: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "v"})
    -> (tensor<2x2x8x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = oriel.add %0, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %2 = oriel.reshape %1 : (tensor<4x8xf32>) -> tensor<2x2x8x1xf32>
  %3 = oriel.activation %2 {kind = "gelu"} : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x1xf32>
  %4 = oriel.broadcast %3 : (tensor<2x2x8x1xf32>) -> tensor<2x2x8x4xf32>
  %5 = oriel.linear %4, %v : (tensor<2x2x8x4xf32>, tensor<4x8xf32>) -> tensor<2x2x8x8xf32>
  return %5 : tensor<2x2x8x8xf32>
}

// -----

// A value that the stash keeps is seen outside: the chain ends there. Of two chains that meet, the
// later one goes on.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.linear {{.*}}oriel.fusion_cluster = 0 : i64
// CHECK: oriel.activation {{.*}}oriel.fusion_cluster = 1 : i64
// CHECK: oriel.linear {{.*}}oriel.fusion_cluster = 2 : i64
// CHECK: oriel.mul {{.*}}oriel.fusion_cluster = 2 : i64
func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
    -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "y"},
        tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
  %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %1 = oriel.activation %0 {kind = "gelu"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
  %3 = oriel.mul %1, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %3, %0 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Neither collectives nor the border between blocks (by origin: 0 and 1, then 2) are within one;
// other segments have none.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.linear {{.*}}oriel.fusion_cluster = 0 : i64
// CHECK: oriel.all_reduce
// CHECK-NOT: oriel.fusion_cluster
// CHECK-SAME: ->
// CHECK: oriel.exp {{.*}}oriel.fusion_cluster = 1 : i64
// CHECK: oriel.exp {{.*}}oriel.fusion_cluster = 2 : i64
// CHECK: return
// CHECK-NOT: oriel.fusion_cluster
module attributes {oriel.blocks = array<i64: 0, 0, 1>} {
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w {origin = 0 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.all_reduce %0 {axes = ["a0"], origin = 0 : i64, reduction = "sum"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.exp %1 {origin = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.exp %2 {origin = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %3 : tensor<4x8xf32>
  }
  func.func @eval(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
