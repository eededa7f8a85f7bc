// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-linear))" --split-input-file | FileCheck %s

// A transposed weight is taken as it is stored, and the bias joins.
// CHECK-LABEL: func.func @transposed_weight_and_bias
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK: %[[Y:.*]] = oriel.linear %[[X]], %[[W]], %[[B]] {transpose_weight = true}
// CHECK-NEXT: return %[[Y]]
func.func @transposed_weight_and_bias(%x: tensor<2x3x4xf32>, %w: tensor<8x4xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.transpose %w {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = oriel.linear %x, %0 : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  %2 = oriel.add %b, %1 : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %2 : tensor<2x3x8xf32>
}

// -----

// A residual is no bias.
// CHECK-LABEL: func.func @residual
// CHECK: oriel.linear %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<4x4xf32>)
// CHECK: oriel.add
func.func @residual(%x: tensor<3x4xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
  %0 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = oriel.add %0, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// The product without bias is used twice: it stays.
// CHECK-LABEL: func.func @shared_product
// CHECK: %[[Y:.*]] = oriel.linear
// CHECK: %[[Z:.*]] = oriel.add %[[Y]]
// CHECK: return %[[Y]], %[[Z]]
func.func @shared_product(%x: tensor<3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %0 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.add %0, %b : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}
