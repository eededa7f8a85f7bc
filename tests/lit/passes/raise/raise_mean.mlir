// Means that are written as sums.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-mean,cse,oriel-raise-normalization))" --split-input-file | FileCheck %s

// jnp.var has a mean of its own.
// CHECK-LABEL: func.func @layer_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>
// CHECK: oriel.layer_norm %[[X]], %{{.*}} {epsilon = {{.*}}}
// CHECK-NOT: oriel.reduce
func.func @layer_norm(%x: tensor<2x3x8xf32>, %w: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %n = oriel.constant {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %eighth = oriel.constant {value = dense<0.125> : tensor<f32>} : () -> tensor<f32>
  %eps = oriel.constant {value = dense<1.0e-5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reduce_sum %x {dims = array<i64: 2>} : (tensor<2x3x8xf32>) -> tensor<2x3xf32>
  %1 = oriel.reshape %0 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %2 = oriel.div %1, %n : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %3 = oriel.sub %x, %2 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %k = oriel.reduce_sum %x {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %4 = oriel.mul %k, %eighth : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %5 = oriel.sub %x, %4 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.mul %5, %5 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.reduce_sum %6 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x3x8xf32>) -> tensor<2x3x1xf32>
  %8 = oriel.div %7, %n : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %9 = oriel.add %8, %eps : (tensor<2x3x1xf32>, tensor<f32>) -> tensor<2x3x1xf32>
  %10 = oriel.sqrt %9 : (tensor<2x3x1xf32>) -> tensor<2x3x1xf32>
  %11 = oriel.div %3, %10 : (tensor<2x3x8xf32>, tensor<2x3x1xf32>) -> tensor<2x3x8xf32>
  %12 = oriel.mul %11, %w : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  %13 = oriel.add %12, %b : (tensor<2x3x8xf32>, tensor<8xf32>) -> tensor<2x3x8xf32>
  return %13 : tensor<2x3x8xf32>
}

// -----

// CHECK-LABEL: func.func @other_count
// CHECK: oriel.reduce_sum
func.func @other_count(%x: tensor<3x8xf32>) -> tensor<3xf32> {
  %n = oriel.constant {value = dense<7.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reduce_sum %x {dims = array<i64: 1>} : (tensor<3x8xf32>) -> tensor<3xf32>
  %1 = oriel.div %0, %n : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %1 : tensor<3xf32>
}
