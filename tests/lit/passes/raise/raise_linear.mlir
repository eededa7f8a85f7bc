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

// -----

// The experts' weights of an einsum "td,efd->tef".
// CHECK-LABEL: func.func @merged_weight
// CHECK-SAME: (%[[X:.*]]: tensor<6x8xf32>, %[[W:.*]]: tensor<3x4x8xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[W]] : (tensor<3x4x8xf32>) -> tensor<12x8xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.linear %[[X]], %[[R]] {transpose_weight = true}
// CHECK-NEXT: return %[[Y]]
func.func @merged_weight(%x: tensor<6x8xf32>, %w: tensor<3x4x8xf32>) -> tensor<6x12xf32> {
  %0 = oriel.transpose %w {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x8xf32>) -> tensor<8x3x4xf32>
  %1 = oriel.reshape %0 : (tensor<8x3x4xf32>) -> tensor<8x12xf32>
  %2 = oriel.linear %x, %1 : (tensor<6x8xf32>, tensor<8x12xf32>) -> tensor<6x12xf32>
  return %2 : tensor<6x12xf32>
}

// -----

// Columns that change places among themselves are not as stored; nor are rows merged with columns.
// CHECK-LABEL: func.func @other_transposes
// CHECK: oriel.transpose
// CHECK: oriel.transpose
func.func @other_transposes(%x: tensor<6x8xf32>, %z: tensor<6x24xf32>, %w: tensor<3x4x8xf32>) -> (tensor<6x12xf32>, tensor<6x4xf32>) {
  %0 = oriel.transpose %w {permutation = array<i64: 2, 1, 0>} : (tensor<3x4x8xf32>) -> tensor<8x4x3xf32>
  %1 = oriel.reshape %0 : (tensor<8x4x3xf32>) -> tensor<8x12xf32>
  %2 = oriel.linear %x, %1 : (tensor<6x8xf32>, tensor<8x12xf32>) -> tensor<6x12xf32>
  %3 = oriel.transpose %w {permutation = array<i64: 0, 2, 1>} : (tensor<3x4x8xf32>) -> tensor<3x8x4xf32>
  %4 = oriel.reshape %3 : (tensor<3x8x4xf32>) -> tensor<24x4xf32>
  %5 = oriel.linear %z, %4 : (tensor<6x24xf32>, tensor<24x4xf32>) -> tensor<6x4xf32>
  return %2, %5 : tensor<6x12xf32>, tensor<6x4xf32>
}
