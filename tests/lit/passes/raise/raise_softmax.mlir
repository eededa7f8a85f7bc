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

// -----

// The part that a constant mask leaves of it, by its sum.
// CHECK-LABEL: func.func @softmax_of_masked
// CHECK: %[[MASK:.*]] = oriel.constant {{.*}}[true, false], [true, true]
// CHECK: %[[HIDDEN:.*]] = oriel.constant {{.*}}0xFF800000
// CHECK: %[[SCORES:.*]] = oriel.select %[[MASK]], %arg0, %[[HIDDEN]]
// CHECK-NEXT: %[[Y:.*]] = oriel.softmax %[[SCORES]] {dim = 2 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @softmax_of_masked(%x: tensor<3x2x2xf32>) -> tensor<3x2x2xf32> {
  %mask = oriel.constant {value = dense<[[1.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.softmax %x {dim = 2 : i64} : (tensor<3x2x2xf32>) -> tensor<3x2x2xf32>
  %1 = oriel.mul %0, %mask : (tensor<3x2x2xf32>, tensor<2x2xf32>) -> tensor<3x2x2xf32>
  %2 = oriel.reduce_sum %1 {dims = array<i64: 2>, keep_dims = true} : (tensor<3x2x2xf32>) -> tensor<3x2x1xf32>
  %3 = oriel.greater %2, %zero : (tensor<3x2x1xf32>, tensor<f32>) -> tensor<3x2x1xi1>
  %4 = oriel.select %3, %2, %one : (tensor<3x2x1xi1>, tensor<3x2x1xf32>, tensor<f32>) -> tensor<3x2x1xf32>
  %5 = oriel.div %1, %4 : (tensor<3x2x2xf32>, tensor<3x2x1xf32>) -> tensor<3x2x2xf32>
  %6 = oriel.select %3, %5, %zero : (tensor<3x2x1xi1>, tensor<3x2x2xf32>, tensor<f32>) -> tensor<3x2x2xf32>
  return %6 : tensor<3x2x2xf32>
}

// -----

// A mask that hides a row, which is 0 then: nothing.
// CHECK-LABEL: func.func @softmax_of_a_hidden_row
// CHECK: oriel.div
func.func @softmax_of_a_hidden_row(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %mask = oriel.constant {value = dense<[[0.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.softmax %x {dim = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %1 = oriel.mul %0, %mask : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = oriel.reduce_sum %1 {dims = array<i64: 1>, keep_dims = true} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %3 = oriel.greater %2, %zero : (tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xi1>
  %4 = oriel.select %3, %2, %one : (tensor<2x1xi1>, tensor<2x1xf32>, tensor<f32>) -> tensor<2x1xf32>
  %5 = oriel.div %1, %4 : (tensor<2x2xf32>, tensor<2x1xf32>) -> tensor<2x2xf32>
  %6 = oriel.select %3, %5, %zero : (tensor<2x1xi1>, tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %6 : tensor<2x2xf32>
}

// -----

// A mask of the data by which probabilities are multiplied, before they are divided by their sum.
// CHECK-LABEL: func.func @masked_by_data
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[M:.*]]: tensor<2x1x4xi1>)
// CHECK: %[[S:.*]] = oriel.select %[[M]], %[[X]], %{{.*}}
// CHECK: %[[P:.*]] = oriel.softmax %[[S]] {dim = 2 : i64}
// CHECK: oriel.select %[[M]], %[[P]], %{{.*}}
// CHECK-NOT: oriel.div
func.func @masked_by_data(%x: tensor<2x3x4xf32>, %m: tensor<2x1x4xi1>) -> tensor<2x3x4xf32> {
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.softmax %x {dim = 2 : i64} : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.cast %m : (tensor<2x1x4xi1>) -> tensor<2x1x4xf32>
  %2 = oriel.mul %0, %1 : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.reduce_sum %2 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x4xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.greater %3, %zero : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xi1>
  %5 = oriel.select %4, %3, %one : (tensor<2x3x1xi1>, tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %6 = oriel.div %2, %5 : (tensor<2x3x4xf32>, tensor<2x3x1xf32>) -> tensor<2x3x4xf32>
  %7 = oriel.select %4, %6, %zero : (tensor<2x3x1xi1>, tensor<2x3x4xf32>, tensor<f32>) -> tensor<2x3x4xf32>
  return %7 : tensor<2x3x4xf32>
}

// -----

// The maximum that is subtracted, of a traced `jax.nn.softmax`.
// CHECK-LABEL: func.func @max_with_lowest
// CHECK: oriel.softmax
// CHECK-NOT: oriel.max
func.func @max_with_lowest(%x: tensor<3x4xf32>) -> tensor<3x4xf32> {
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reduce_max %x {dims = array<i64: 1>, keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %1 = oriel.max %low, %0 : (tensor<f32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %2 = oriel.sub %x, %1 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  %3 = oriel.exp %2 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = oriel.reduce_sum %3 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x4xf32>) -> tensor<3x1xf32>
  %5 = oriel.div %3, %4 : (tensor<3x4xf32>, tensor<3x1xf32>) -> tensor<3x4xf32>
  return %5 : tensor<3x4xf32>
}
