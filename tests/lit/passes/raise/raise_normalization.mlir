// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-normalization))" --split-input-file | FileCheck %s

// The square as a power, the inverse root as reciprocal and root, the weight on the left.
// CHECK-LABEL: func.func @rms_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]] {epsilon = 9.9{{.*}}E-7 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @rms_norm(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %3 = oriel.sqrt %2 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.reciprocal %3 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %5 = oriel.mul %x, %4 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.mul %w, %5 : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %6 : tensor<2x3x8xf32>
}

// -----

// The square as a product, the quotient by the root.
// CHECK-LABEL: func.func @rms_norm_by_division
// CHECK: oriel.rms_norm
func.func @rms_norm_by_division(%x: tensor<3x8xf32>, %w: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.sqrt %2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %4 = oriel.div %x, %3 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %5 = oriel.mul %4, %w : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %5 : tensor<3x8xf32>
}

// -----

// Centered first: a layer norm, whose bias joins.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}}, %{{.*}} = oriel.layer_norm %[[X]], %[[W]], %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm(%x: tensor<3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %m = oriel.reduce_mean %x {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %c = oriel.sub %x, %m : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %0 = oriel.mul %c, %c : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %4 = oriel.mul %c, %3 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %5 = oriel.mul %4, %w : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %6 = oriel.add %5, %b : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %6 : tensor<3x8xf32>
}

// -----

// The mean over another dimension is no such norm.
// CHECK-LABEL: func.func @mean_over_rows
// CHECK-NOT: oriel.rms_norm
// CHECK: return
func.func @mean_over_rows(%x: tensor<8x8xf32>, %w: tensor<8xf32>) -> tensor<8x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 0>, keep_dims = true} : (tensor<8x8xf32>) -> tensor<1x8xf32>
  %2 = oriel.add %1, %eps : (tensor<1x8xf32>, tensor<f32>) -> tensor<1x8xf32>
  %3 = oriel.rsqrt %2 : (tensor<1x8xf32>) -> tensor<1x8xf32>
  %4 = oriel.mul %x, %3 : (tensor<8x8xf32>, tensor<1x8xf32>) -> tensor<8x8xf32>
  %5 = oriel.mul %4, %w : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return %5 : tensor<8x8xf32>
}

// -----

// The norms take no epsilon below 0.
// CHECK-LABEL: func.func @negative_epsilon
// CHECK-NOT: oriel.rms_norm
// CHECK: return
func.func @negative_epsilon(%x: tensor<3x8xf32>, %w: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<-1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %4 = oriel.mul %x, %3 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %5 = oriel.mul %4, %w : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %5 : tensor<3x8xf32>
}

// -----

// A mean that drops the dimension, as that of a variance; and a sum over its number of elements.
// CHECK-LABEL: func.func @spelled_means
// CHECK: oriel.layer_norm %{{[^,]*}}, %{{[^ ]*}} {epsilon =
// CHECK: oriel.rms_norm %{{[^,]*}}, %{{[^ ]*}} {epsilon =
// CHECK-NEXT: return
func.func @spelled_means(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %eight = oriel.constant {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reduce_mean %x {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %1 = oriel.sub %x, %0 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %2 = oriel.mul %1, %1 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %3 = oriel.reduce_mean %2 {dims = array<i64: 2>} : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %4 = oriel.reshape %3 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %5 = oriel.add %4, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %6 = oriel.sqrt %5 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %7 = oriel.div %1, %6 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.mul %7, %w : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %9 = oriel.mul %8, %8 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %10 = oriel.reduce_sum %9 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %11 = oriel.div %10, %eight : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %12 = oriel.add %11, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %13 = oriel.rsqrt %12 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %14 = oriel.mul %8, %13 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %15 = oriel.mul %14, %w : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %15 : tensor<2x3x8xf32>
}

// -----

// Nor is the sum over another number a mean.
// CHECK-LABEL: func.func @sum_over_another_number
// CHECK-NOT: oriel.rms_norm
// CHECK: return
func.func @sum_over_another_number(%x: tensor<3x8xf32>, %w: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %seven = oriel.constant {value = dense<7.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %2 = oriel.div %1, %seven : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = oriel.mul %x, %4 : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %6 = oriel.mul %5, %w : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %6 : tensor<3x8xf32>
}

// -----

// A weight that is stored as its distance from 1.
// CHECK-LABEL: func.func @weight_from_one
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<8xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]] {epsilon = {{.*}} : f64, weight_offset = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @weight_from_one(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.mul %x, %3 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %5 = oriel.add %w, %one : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %6 = oriel.mul %4, %5 : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %6 : tensor<2x3x8xf32>
}

// -----

// Without a weight, one of ones.
// CHECK-LABEL: func.func @no_weight
// CHECK: %[[ONE:.*]] = oriel.constant {value = dense<1.000000e+00> : tensor<8xf32>}
// CHECK: oriel.rms_norm %{{.*}}, %[[ONE]]
// CHECK-NEXT: return
func.func @no_weight(%x: tensor<2x3x8xf32>) -> tensor<2x3x8xf32> {
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.mul %x, %3 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  return %4 : tensor<2x3x8xf32>
}

// -----

// A weight for each row is no part of the norm, which is one by itself.
// CHECK-LABEL: func.func @weight_of_each_row
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm
// CHECK: oriel.mul %[[Y]]
func.func @weight_of_each_row(%x: tensor<2x3x8xf32>, %w: tensor<3x1xf32>) -> tensor<2x3x8xf32> {
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.mul %x, %3 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %5 = oriel.mul %4, %w : (tensor<2x3x8xf32>, tensor<3x1xf32>) -> tensor<2x3x8xf32>
  return %5 : tensor<2x3x8xf32>
}

// -----

// x / (√mean + epsilon) is another function.
// CHECK-LABEL: func.func @epsilon_outside_of_the_root
// CHECK-NOT: oriel.rms_norm
// CHECK: return
func.func @epsilon_outside_of_the_root(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %two : (tensor<2x3x8xf32>, tensor<f32>) -> tensor<2x3x8xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %2 = oriel.sqrt %1 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %3 = oriel.add %2, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %4 = oriel.div %x, %3 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %5 = oriel.mul %4, %w : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %5 : tensor<2x3x8xf32>
}

// -----

// torch.nn.functional.normalize, times √d and a weight, as some write RMS norm.
// CHECK-LABEL: func.func @normalize
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]] {epsilon = 6.2{{.*}}E-26 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @normalize(%x: tensor<3x16xf32>, %w: tensor<16xf32>) -> tensor<3x16xf32> {
  %eps = oriel.constant {value = dense<1.0e-12> : tensor<f32>} : () -> tensor<f32>
  %root = oriel.constant {value = dense<4.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %3 = oriel.max %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.broadcast %3 : (tensor<3x1xf32>) -> tensor<3x16xf32>
  %5 = oriel.div %x, %4 : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %6 = oriel.mul %5, %root : (tensor<3x16xf32>, tensor<f32>) -> tensor<3x16xf32>
  %7 = oriel.mul %6, %w : (tensor<3x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
  return %7 : tensor<3x16xf32>
}

// -----

// Rows of length 1, by the sum of squares and an epsilon: a weight of 1 / √d. A weight of columns is
// scaled by that.
// CHECK-LABEL: func.func @unit_rows
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16xf32>)
// CHECK-DAG: %[[C:.*]] = oriel.constant {value = dense<2.500000e-01> : tensor<16xf32>}
// CHECK-DAG: %[[V:.*]] = oriel.mul %[[W]], %[[C]] : (tensor<16xf32>, tensor<16xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[V]] {epsilon = 6.2{{.*}}E-8 : f64}
// CHECK: return %[[Y]]
func.func @unit_rows(%x: tensor<3x16xf32>, %w: tensor<16xf32>) -> tensor<3x16xf32> {
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %4 = oriel.mul %x, %3 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  %5 = oriel.mul %4, %w : (tensor<3x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
  return %5 : tensor<3x16xf32>
}

// -----

// A length of at least 1 is none that is nearly 0.
// CHECK-LABEL: func.func @at_least_one
// CHECK-NOT: rms_norm
// CHECK: return
func.func @at_least_one(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %3 = oriel.max %2, %one : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.div %x, %3 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  return %4 : tensor<3x16xf32>
}

// -----

// A length of which the square is no number that f32 has: rows of zeros would be no numbers.
// CHECK-LABEL: func.func @at_least_tiny
// CHECK-NOT: rms_norm
// CHECK: return
func.func @at_least_tiny(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %tiny = oriel.constant {value = dense<1.0e-30> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %3 = oriel.max %2, %tiny : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.div %x, %3 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  return %4 : tensor<3x16xf32>
}

// -----

// Of more squares than there are columns.
// CHECK-LABEL: func.func @broadcast_squares
// CHECK-NOT: rms_norm
// CHECK: return
func.func @broadcast_squares(%x: tensor<3x1xf32>) -> tensor<3x1xf32> {
  %two = oriel.constant {value = dense<2.0> : tensor<3x16xf32>} : () -> tensor<3x16xf32>
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %two : (tensor<3x1xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %4 = oriel.mul %x, %3 : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  return %4 : tensor<3x1xf32>
}

// -----

// The root of the sum over that of the number of columns, at least a small number (lucidrains).
// CHECK-LABEL: func.func @root_times_a_number
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]] {epsilon = 9.99{{.*}}E-17 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @root_times_a_number(%x: tensor<3x16xf32>, %w: tensor<16xf32>) -> tensor<3x16xf32> {
  %quarter = oriel.constant {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %least = oriel.constant {value = dense<1.0e-8> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %3 = oriel.mul %2, %quarter : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.max %3, %least : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %5 = oriel.div %x, %4 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  %6 = oriel.mul %5, %w : (tensor<3x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
  return %6 : tensor<3x16xf32>
}

// -----

// A millionth of the root is at least a small number: the root at least a number that is not small.
// CHECK-LABEL: func.func @small_multiple_of_the_root
// CHECK-NOT: oriel.rms_norm
// CHECK: return
func.func @small_multiple_of_the_root(%x: tensor<3x16xf32>) -> tensor<3x16xf32> {
  %millionth = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %least = oriel.constant {value = dense<1.0e-8> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.sqrt %1 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %3 = oriel.mul %2, %millionth : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.max %3, %least : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %5 = oriel.div %x, %4 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  return %5 : tensor<3x16xf32>
}

// -----

// The weight on what is normalised, on its left, before a product and a quotient.
// CHECK-LABEL: func.func @weight_on_the_input
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]] {epsilon = 9.9{{.*}}E-6 : f64}
// CHECK: %[[Z:[^,]*]], %{{.*}} = oriel.rms_norm %[[Y]], %[[W]] {epsilon = 9.9{{.*}}E-6 : f64}
// CHECK-NEXT: return %[[Z]]
func.func @weight_on_the_input(%x: tensor<3x16xf32>, %w: tensor<16xf32>) -> tensor<3x16xf32> {
  %eps = oriel.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %w, %x : (tensor<16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %2 = oriel.reduce_mean %1 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %3 = oriel.add %2, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %4 = oriel.rsqrt %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = oriel.mul %0, %4 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  %6 = oriel.mul %5, %w : (tensor<3x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
  %7 = oriel.mul %5, %5 : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %8 = oriel.reduce_mean %7 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %9 = oriel.add %8, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %10 = oriel.sqrt %9 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %11 = oriel.div %6, %10 : (tensor<3x16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  return %11 : tensor<3x16xf32>
}

// -----

// The weight on the inverse root (Moshi).
// CHECK-LABEL: func.func @weight_on_the_inverse_root
// CHECK-SAME: (%[[X:.*]]: tensor<3x16xf32>, %[[W:.*]]: tensor<16xf32>)
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]]
// CHECK-NEXT: return %[[Y]]
func.func @weight_on_the_inverse_root(%x: tensor<3x16xf32>, %w: tensor<16xf32>) -> tensor<3x16xf32> {
  %eps = oriel.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %x : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<3x16xf32>) -> tensor<3x1xf32>
  %2 = oriel.add %1, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %3 = oriel.sqrt %2 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %4 = oriel.reciprocal %3 : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %5 = oriel.mul %w, %4 : (tensor<16xf32>, tensor<3x1xf32>) -> tensor<3x16xf32>
  %6 = oriel.mul %x, %5 : (tensor<3x16xf32>, tensor<3x16xf32>) -> tensor<3x16xf32>
  return %6 : tensor<3x16xf32>
}

// -----

// Weight and bias with the rank of the input.
// CHECK-LABEL: func.func @row_vectors_of_full_rank
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>, %[[W:.*]]: tensor<1x1x8xf32>, %[[B:.*]]: tensor<1x8xf32>)
// CHECK-DAG: %[[WEIGHT:.*]] = oriel.reshape %[[W]] : (tensor<1x1x8xf32>) -> tensor<8xf32>
// CHECK-DAG: %[[BIAS:.*]] = oriel.reshape %[[B]] : (tensor<1x8xf32>) -> tensor<8xf32>
// CHECK: oriel.layer_norm %[[X]], %[[WEIGHT]], %[[BIAS]]
// CHECK-NEXT: return
func.func @row_vectors_of_full_rank(%x: tensor<2x3x8xf32>, %w: tensor<1x1x8xf32>, %b: tensor<1x8xf32>) -> tensor<2x3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reduce_mean %x {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %1 = oriel.sub %x, %0 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %2 = oriel.mul %1, %1 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %3 = oriel.reduce_mean %2 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.add %3, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %5 = oriel.sqrt %4 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %6 = oriel.div %1, %5 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.mul %6, %w : (tensor<2x3x8xf32>, tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.add %7, %b : (tensor<2x3x8xf32>, tensor<1x8xf32>) -> tensor<2x3x8xf32>
  return %8 : tensor<2x3x8xf32>
}

// -----

// Flax: the variance as a difference that rounding may make negative.
// CHECK-LABEL: func.func @layer_norm_of_fast_variance
// CHECK-SAME: (%[[X:.*]]: tensor<3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:[^,]*]], %{{.*}} = oriel.layer_norm %[[X]], %[[W]], %[[B]] {epsilon = 9.9{{.*}}E-7 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_of_fast_variance(%x: tensor<3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-6> : tensor<f32>} : () -> tensor<f32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %mean = oriel.reduce_mean %x {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %xx = oriel.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %squares = oriel.reduce_mean %xx {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %mm = oriel.mul %mean, %mean : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %difference = oriel.sub %squares, %mm : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %variance = oriel.max %difference, %zero : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %centered = oriel.sub %x, %mean : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %shifted = oriel.add %variance, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %root = oriel.rsqrt %shifted : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %scale = oriel.mul %root, %w : (tensor<3x1xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %0 = oriel.mul %centered, %scale : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.add %0, %b : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// TensorFlow's batch_normalization: one product and one sum.
// CHECK-LABEL: func.func @layer_norm_by_scale_and_shift
// CHECK-SAME: (%[[X:.*]]: tensor<3x8xf32>, %[[W:.*]]: tensor<8xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK-NEXT: %[[Y:[^,]*]], %{{.*}} = oriel.layer_norm %[[X]], %[[W]], %[[B]]
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_by_scale_and_shift(%x: tensor<3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-3> : tensor<f32>} : () -> tensor<f32>
  %mean = oriel.reduce_mean %x {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %difference = oriel.sub %x, %mean : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %square = oriel.mul %difference, %difference : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %variance = oriel.reduce_mean %square {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %shifted = oriel.add %variance, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %root = oriel.rsqrt %shifted : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %scale = oriel.mul %root, %w : (tensor<3x1xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  %0 = oriel.mul %x, %scale : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %ms = oriel.mul %mean, %scale : (tensor<3x1xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %shift = oriel.sub %b, %ms : (tensor<8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.add %0, %shift : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// Keras: the negated mean, and no bias.
// CHECK-LABEL: func.func @layer_norm_by_negated_mean
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.layer_norm
// CHECK-NEXT: return %[[Y]]
func.func @layer_norm_by_negated_mean(%x: tensor<3x8xf32>) -> tensor<3x8xf32> {
  %eps = oriel.constant {value = dense<1.0e-3> : tensor<f32>} : () -> tensor<f32>
  %mean = oriel.reduce_mean %x {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %xx = oriel.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %squares = oriel.reduce_mean %xx {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %mm = oriel.mul %mean, %mean : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %variance = oriel.sub %squares, %mm : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %shifted = oriel.add %variance, %eps : (tensor<3x1xf32>, tensor<f32>) -> tensor<3x1xf32>
  %root = oriel.rsqrt %shifted : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %negated = oriel.neg %mean : (tensor<3x1xf32>) -> tensor<3x1xf32>
  %shift = oriel.mul %negated, %root : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  %0 = oriel.mul %x, %root : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  %1 = oriel.add %0, %shift : (tensor<3x8xf32>, tensor<3x1xf32>) -> tensor<3x8xf32>
  return %1 : tensor<3x8xf32>
}

// -----

// The mean of another value: nothing.
// CHECK-LABEL: func.func @no_variance
// CHECK-NOT: oriel.layer_norm
func.func @no_variance(%x: tensor<3x8xf32>, %z: tensor<3x8xf32>) -> tensor<3x1xf32> {
  %mean = oriel.reduce_mean %z {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %xx = oriel.mul %x, %x : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
  %squares = oriel.reduce_mean %xx {dims = array<i64: 1>, keep_dims = true} : (tensor<3x8xf32>) -> tensor<3x1xf32>
  %mm = oriel.mul %mean, %mean : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  // CHECK: oriel.sub
  %0 = oriel.sub %squares, %mm : (tensor<3x1xf32>, tensor<3x1xf32>) -> tensor<3x1xf32>
  return %0 : tensor<3x1xf32>
}
