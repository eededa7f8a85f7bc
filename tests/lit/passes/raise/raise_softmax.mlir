// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-softmax),canonicalize)" --split-input-file | FileCheck %s

// Written out, with its maximum.
// CHECK-LABEL: func.func @written_out
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.softmax %[[X]] {dim = 2 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @written_out(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %m = oriel.reduce_max %x {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %c = oriel.sub %x, %m : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %e = oriel.exp %c : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %s = oriel.reduce_sum %e {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %y = oriel.div %e, %s : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  return %y : tensor<2x3x4xf32>
}

// -----

// Over another dimension, which the sum drops; times the reciprocal, from either side.
// CHECK-LABEL: func.func @reciprocal
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.softmax %[[X]] {dim = 0 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @reciprocal(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %e = oriel.exp %x : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %s = oriel.reduce_sum %e {dims = array<i64: 0>} : (tensor<3x4xf32>) -> tensor<4xf32>
  %k = oriel.reshape %s : (tensor<4xf32>) -> tensor<1x4xf32>
  %r = oriel.reciprocal %k : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %y = oriel.mul %r, %e : (tensor<1x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// The maximum is subtracted from a softmax's operand.
// CHECK-LABEL: func.func @shifted
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.softmax %[[X]] {dim = 1 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @shifted(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %m = oriel.reduce_max %x {dims = array<i64: 1>, keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %c = oriel.sub %x, %m : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %y = oriel.softmax %c {dim = 1 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %y : tensor<3x4xf32>
}

// -----

// The maximum of columns, of something else; a sum over all, of something else.
// CHECK-LABEL: func.func @others
// CHECK-COUNT-2: oriel.softmax %{{[0-9]+}}
// CHECK-COUNT-2: oriel.div
func.func @others(%x: tensor<4x4xf32>, %z: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %m0 = oriel.reduce_max %x {dims = array<i64: 0>, keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x4xf32>
  %c0 = oriel.sub %x, %m0 : (tensor<4x4xf32>, tensor<1x4xf32>) -> tensor<4x4xf32>
  %y0 = oriel.softmax %c0 {dim = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %m1 = oriel.reduce_max %z {dims = array<i64: 1>, keep_dims = true} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %c1 = oriel.sub %x, %m1 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  %y1 = oriel.softmax %c1 {dim = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = oriel.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %s2 = oriel.reduce_sum %e {dims = array<i64: 0, 1>, keep_dims = true} : (tensor<4x4xf32>) -> tensor<1x1xf32>
  %y2 = oriel.div %e, %s2 : (tensor<4x4xf32>, tensor<1x1xf32>) -> tensor<4x4xf32>
  %s3 = oriel.reduce_sum %x {dims = array<i64: 1>, keep_dims = true} : (tensor<4x4xf32>) -> tensor<4x1xf32>
  %y3 = oriel.div %e, %s3 : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
  return %y0, %y1, %y2, %y3 : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}
