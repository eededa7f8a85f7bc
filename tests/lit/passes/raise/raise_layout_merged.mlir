// Dimensions that are merged and split again.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-layout))" --split-input-file | FileCheck %s

// Batch and heads that were merged around attention come apart, and the transposes vanish.
// CHECK-LABEL: func.func @merged_around_a_transpose
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x6x8xf32>)
// CHECK-NEXT: %[[T:.*]] = oriel.transpose %[[X]] {permutation = array<i64: 2, 0, 1, 3>} : (tensor<2x4x6x8xf32>) -> tensor<6x2x4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.reshape %[[T]] : (tensor<6x2x4x8xf32>) -> tensor<6x2x32xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_around_a_transpose(%x: tensor<2x4x6x8xf32>) -> tensor<6x2x32xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<8x6x8xf32>) -> tensor<6x8x8xf32>
  %2 = oriel.reshape %1 : (tensor<6x8x8xf32>) -> tensor<6x2x32xf32>
  return %2 : tensor<6x2x32xf32>
}

// -----

// Nothing splits them again: the transpose stays where others find it.
// CHECK-LABEL: func.func @merged_before_a_transpose
// CHECK: oriel.reshape
// CHECK-NEXT: oriel.transpose
// CHECK-NEXT: return
func.func @merged_before_a_transpose(%x: tensor<2x4x6x8xf32>) -> tensor<6x8x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<8x6x8xf32>) -> tensor<6x8x8xf32>
  return %1 : tensor<6x8x8xf32>
}

// -----

// A slice of another dimension goes before the merge.
// CHECK-LABEL: func.func @merged_before_a_slice
// CHECK-SAME: (%[[X:.*]]: tensor<3x2x4x6xf32>)
// CHECK-NEXT: %[[S:.*]] = oriel.slice %[[X]] {limits = array<i64: 2, 2, 4, 6>, starts = array<i64: 1, 0, 0, 0>
// CHECK-NEXT: %[[Y:.*]] = oriel.reshape %[[S]] : (tensor<1x2x4x6xf32>) -> tensor<1x8x6xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_before_a_slice(%x: tensor<3x2x4x6xf32>) -> tensor<1x8x6xf32> {
  %0 = oriel.reshape %x : (tensor<3x2x4x6xf32>) -> tensor<3x8x6xf32>
  %1 = oriel.slice %0 {starts = array<i64: 1, 0, 0>, limits = array<i64: 2, 8, 6>, strides = array<i64: 1, 1, 1>} : (tensor<3x8x6xf32>) -> tensor<1x8x6xf32>
  return %1 : tensor<1x8x6xf32>
}

// -----

// A slice of the merged dimension can't.
// CHECK-LABEL: func.func @merged_and_sliced
// CHECK: oriel.reshape
// CHECK-NEXT: oriel.slice
func.func @merged_and_sliced(%x: tensor<3x2x4x6xf32>) -> tensor<3x5x6xf32> {
  %0 = oriel.reshape %x : (tensor<3x2x4x6xf32>) -> tensor<3x8x6xf32>
  %1 = oriel.slice %0 {starts = array<i64: 0, 1, 0>, limits = array<i64: 3, 6, 6>, strides = array<i64: 1, 1, 1>} : (tensor<3x8x6xf32>) -> tensor<3x5x6xf32>
  return %1 : tensor<3x5x6xf32>
}

// -----

// Rows that were merged are a dimension each; the matrices they are multiplied with are as before.
// CHECK-LABEL: func.func @merged_rows
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<6x2x4x8xf32>, %[[T:[a-z0-9]+]]: tensor<6x8x3xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.matmul %[[X]], %[[T]] {row_dims = 2 : i64}
// CHECK-SAME: -> tensor<6x2x4x3xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_rows(%x: tensor<6x2x4x8xf32>, %t: tensor<6x8x3xf32>) -> tensor<6x2x4x3xf32> {
  %0 = oriel.reshape %x : (tensor<6x2x4x8xf32>) -> tensor<6x8x8xf32>
  %1 = oriel.matmul %0, %t : (tensor<6x8x8xf32>, tensor<6x8x3xf32>) -> tensor<6x8x3xf32>
  %2 = oriel.reshape %1 : (tensor<6x8x3xf32>) -> tensor<6x2x4x3xf32>
  return %2 : tensor<6x2x4x3xf32>
}

// -----

// Likewise of operands that are stored transposed.
// CHECK-LABEL: func.func @merged_rows_and_columns
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<5x2x4xf32>, %[[Z:[a-z0-9]+]]: tensor<3x6x5xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.matmul %[[X]], %[[Z]] {column_dims = 2 : i64, row_dims = 2 : i64, transpose_lhs = true, transpose_rhs = true}
// CHECK-SAME: -> tensor<2x4x3x6xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_rows_and_columns(%x: tensor<5x2x4xf32>, %z: tensor<3x6x5xf32>) -> tensor<2x4x3x6xf32> {
  %0 = oriel.reshape %x : (tensor<5x2x4xf32>) -> tensor<5x8xf32>
  %1 = oriel.reshape %z : (tensor<3x6x5xf32>) -> tensor<18x5xf32>
  %2 = oriel.matmul %0, %1 {transpose_lhs = true, transpose_rhs = true} : (tensor<5x8xf32>, tensor<18x5xf32>) -> tensor<8x18xf32>
  %3 = oriel.reshape %2 : (tensor<8x18xf32>) -> tensor<2x4x3x6xf32>
  return %3 : tensor<2x4x3x6xf32>
}

// -----

// Attention with a learned bias, batch and heads merged: they come apart all the way up.
// CHECK-LABEL: func.func @merged_batch_and_heads
// CHECK-SAME: (%[[Q:[a-z0-9]+]]: tensor<2x4x6x8xf32>, %[[K:[a-z0-9]+]]: tensor<2x4x6x8xf32>, %[[B:[a-z0-9]+]]: tensor<1x6x6xf32>)
// CHECK-DAG: %[[C:.*]] = oriel.reshape %[[B]] : (tensor<1x6x6xf32>) -> tensor<1x1x6x6xf32>
// CHECK-DAG: %[[S:.*]] = oriel.matmul %[[Q]], %[[K]] {transpose_rhs = true} : (tensor<2x4x6x8xf32>
// CHECK: %[[A:.*]] = oriel.add %[[S]], %[[C]]
// CHECK-NEXT: %[[P:.*]] = oriel.softmax %[[A]] {dim = 3 : i64} : (tensor<2x4x6x6xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.matmul %[[P]], %[[K]] : (tensor<2x4x6x6xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_batch_and_heads(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %b: tensor<1x6x6xf32>) -> tensor<2x4x6x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %1 = oriel.reshape %k : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %2 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<8x6x8xf32>, tensor<8x6x8xf32>) -> tensor<8x6x6xf32>
  %3 = oriel.add %2, %b : (tensor<8x6x6xf32>, tensor<1x6x6xf32>) -> tensor<8x6x6xf32>
  %4 = oriel.softmax %3 {dim = 2 : i64} : (tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %5 = oriel.matmul %4, %1 : (tensor<8x6x6xf32>, tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  %6 = oriel.reshape %5 : (tensor<8x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %6 : tensor<2x4x6x8xf32>
}

// -----

// Only as far as they were merged: the rows were 2 x 12.
// CHECK-LABEL: func.func @split_further
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x12x8xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.neg %[[X]] : (tensor<2x12x8xf32>) -> tensor<2x12x8xf32>
// CHECK-NEXT: oriel.reshape %[[Y]] : (tensor<2x12x8xf32>) -> tensor<2x3x4x8xf32>
func.func @split_further(%x: tensor<2x12x8xf32>) -> tensor<2x3x4x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x12x8xf32>) -> tensor<24x8xf32>
  %1 = oriel.neg %0 : (tensor<24x8xf32>) -> tensor<24x8xf32>
  %2 = oriel.reshape %1 : (tensor<24x8xf32>) -> tensor<2x3x4x8xf32>
  return %2 : tensor<2x3x4x8xf32>
}

// -----

// Split for the first time, or otherwise than merged.
// CHECK-LABEL: func.func @never_merged
// CHECK-NEXT: oriel.neg %{{.*}} : (tensor<24x8xf32>)
// CHECK: oriel.neg %{{.*}} : (tensor<24x8xf32>)
func.func @never_merged(%x: tensor<24x8xf32>, %z: tensor<4x6x8xf32>) -> (tensor<2x12x8xf32>, tensor<3x8x8xf32>) {
  %0 = oriel.neg %x : (tensor<24x8xf32>) -> tensor<24x8xf32>
  %1 = oriel.reshape %0 : (tensor<24x8xf32>) -> tensor<2x12x8xf32>
  %2 = oriel.reshape %z : (tensor<4x6x8xf32>) -> tensor<24x8xf32>
  %3 = oriel.neg %2 : (tensor<24x8xf32>) -> tensor<24x8xf32>
  %4 = oriel.reshape %3 : (tensor<24x8xf32>) -> tensor<3x8x8xf32>
  return %1, %4 : tensor<2x12x8xf32>, tensor<3x8x8xf32>
}

// -----

// The softmax is over all of them.
// CHECK-LABEL: func.func @merged_for_a_softmax
// CHECK: oriel.softmax %{{.*}} : (tensor<8x6xf32>)
func.func @merged_for_a_softmax(%x: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %1 = oriel.softmax %0 {dim = 0 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = oriel.reshape %1 : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
  return %2 : tensor<2x4x6xf32>
}

// -----

// What is needed merged as well stays so.
// CHECK-LABEL: func.func @merged_for_others_as_well
// CHECK: %[[N:.*]] = oriel.neg %{{.*}} : (tensor<8x6xf32>)
// CHECK: return %{{.*}}, %[[N]]
func.func @merged_for_others_as_well(%x: tensor<2x4x6xf32>) -> (tensor<2x4x6xf32>, tensor<8x6xf32>) {
  %0 = oriel.reshape %x : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %1 = oriel.neg %0 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = oriel.reshape %1 : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
  return %2, %1 : tensor<2x4x6xf32>, tensor<8x6xf32>
}

// -----

// A layer stays as it is, and so what it is added to: the last block of a tower is as the others.
// CHECK-LABEL: func.func @merged_for_a_layer
// CHECK: oriel.add %{{.*}} : (tensor<2x12x8xf32>, tensor<2x12x8xf32>)
func.func @merged_for_a_layer(%x: tensor<2x3x4x8xf32>, %w: tensor<8x8xf32>) -> tensor<2x3x4x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x4x8xf32>) -> tensor<2x12x8xf32>
  %1 = oriel.neg %0 : (tensor<2x12x8xf32>) -> tensor<2x12x8xf32>
  %2 = oriel.linear %1, %w : (tensor<2x12x8xf32>, tensor<8x8xf32>) -> tensor<2x12x8xf32>
  %3 = oriel.add %0, %2 : (tensor<2x12x8xf32>, tensor<2x12x8xf32>) -> tensor<2x12x8xf32>
  %4 = oriel.reshape %3 : (tensor<2x12x8xf32>) -> tensor<2x3x4x8xf32>
  return %4 : tensor<2x3x4x8xf32>
}

// -----

// Split where several merged dimensions begin together: in pieces of whole ones.
// CHECK-LABEL: func.func @merged_three
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x3x4x8xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<2x3x4x8xf32>) -> tensor<6x4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.neg %[[R]]
// CHECK-NEXT: return %[[Y]]
func.func @merged_three(%x: tensor<2x3x4x8xf32>) -> tensor<6x4x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x4x8xf32>) -> tensor<24x8xf32>
  %1 = oriel.neg %0 : (tensor<24x8xf32>) -> tensor<24x8xf32>
  %2 = oriel.reshape %1 : (tensor<24x8xf32>) -> tensor<6x4x8xf32>
  return %2 : tensor<6x4x8xf32>
}

// -----

// What two ops read is split once.
// CHECK-LABEL: func.func @merged_and_gated
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x6xf32>)
// CHECK-NEXT: %[[N:.*]] = oriel.neg %[[X]]
// CHECK-NEXT: %[[S:.*]] = oriel.sigmoid %[[N]]
// CHECK-NEXT: %[[Y:.*]] = oriel.mul %[[N]], %[[S]]
// CHECK-NEXT: return %[[Y]]
func.func @merged_and_gated(%x: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %1 = oriel.neg %0 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = oriel.sigmoid %1 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %3 = oriel.mul %1, %2 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %4 = oriel.reshape %3 : (tensor<8x6xf32>) -> tensor<2x4x6xf32>
  return %4 : tensor<2x4x6xf32>
}

// -----

// Others need a reshape in between merged as well: nothing is split by half.
// CHECK-LABEL: func.func @reshaped_for_others_as_well
// CHECK: oriel.neg %{{.*}} : (tensor<8x6xf32>)
// CHECK: oriel.sigmoid %{{.*}} : (tensor<8x2x3xf32>)
func.func @reshaped_for_others_as_well(%x: tensor<2x4x6xf32>) -> (tensor<2x4x2x3xf32>, tensor<8x2x3xf32>) {
  %0 = oriel.reshape %x : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
  %1 = oriel.neg %0 : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = oriel.reshape %1 : (tensor<8x6xf32>) -> tensor<8x2x3xf32>
  %3 = oriel.sigmoid %2 : (tensor<8x2x3xf32>) -> tensor<8x2x3xf32>
  %4 = oriel.reshape %3 : (tensor<8x2x3xf32>) -> tensor<2x4x2x3xf32>
  return %4, %2 : tensor<2x4x2x3xf32>, tensor<8x2x3xf32>
}

// -----

// A table of all samples and heads is repeated for them; a constant is in any shape.
// CHECK-LABEL: func.func @merged_beside_what_is_repeated
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x6x8xf32>, %[[T:[a-z0-9]+]]: tensor<1x8x3xf32>)
// CHECK-DAG: %[[C:.*]] = oriel.constant {{.*}} : tensor<2x4x6x3xf32>
// CHECK-DAG: %[[R:.*]] = oriel.reshape %[[T]] : (tensor<1x8x3xf32>) -> tensor<1x1x8x3xf32>
// CHECK: %[[B:.*]] = oriel.broadcast %[[R]] : (tensor<1x1x8x3xf32>) -> tensor<2x4x8x3xf32>
// CHECK-NEXT: %[[P:.*]] = oriel.matmul %[[X]], %[[B]] : (tensor<2x4x6x8xf32>
// CHECK: %[[Y:.*]] = oriel.sub %[[C]], %[[P]] : (tensor<2x4x6x3xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_beside_what_is_repeated(%x: tensor<2x4x6x8xf32>, %t: tensor<1x8x3xf32>) -> tensor<2x4x6x3xf32> {
  %c = oriel.constant {value = dense<1.0> : tensor<8x6x3xf32>} : () -> tensor<8x6x3xf32>
  %0 = oriel.reshape %x : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %1 = oriel.broadcast %t : (tensor<1x8x3xf32>) -> tensor<8x8x3xf32>
  %2 = oriel.matmul %0, %1 : (tensor<8x6x8xf32>, tensor<8x8x3xf32>) -> tensor<8x6x3xf32>
  %3 = oriel.sub %c, %2 : (tensor<8x6x3xf32>, tensor<8x6x3xf32>) -> tensor<8x6x3xf32>
  %4 = oriel.reshape %3 : (tensor<8x6x3xf32>) -> tensor<2x4x6x3xf32>
  return %4 : tensor<2x4x6x3xf32>
}

// -----

// Two that split alike.
// CHECK-LABEL: func.func @split_twice
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x3xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.neg %[[X]] : (tensor<2x4x3xf32>) -> tensor<2x4x3xf32>
// CHECK-NEXT: return %[[Y]], %[[Y]]
func.func @split_twice(%x: tensor<2x4x3xf32>) -> (tensor<2x4x3xf32>, tensor<2x4x3xf32>) {
  %0 = oriel.reshape %x : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  %1 = oriel.neg %0 : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %2 = oriel.reshape %1 : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  %3 = oriel.reshape %1 : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  return %2, %3 : tensor<2x4x3xf32>, tensor<2x4x3xf32>
}

// -----

// A norm of rows that were merged, as of each head of each position.
// CHECK-LABEL: func.func @split_before_norm
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x3xf32>, %[[G:.*]]: tensor<2x4x3xf32>, %[[W:.*]]: tensor<3xf32>)
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = oriel.rms_norm %[[X]], %[[W]] {{.*}} -> (tensor<2x4x3xf32>, tensor<2x4xf32>)
// CHECK-NEXT: %[[Z:.*]] = oriel.gated_activation %[[G]], %[[Y]]
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[Z]] : (tensor<2x4x3xf32>) -> tensor<2x12xf32>
// CHECK-NEXT: return %[[R]]
func.func @split_before_norm(%x: tensor<2x4x3xf32>, %g: tensor<2x4x3xf32>, %w: tensor<3xf32>) -> tensor<2x12xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  %1 = oriel.reshape %g : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  %2, %3 = oriel.rms_norm %0, %w {epsilon = 1.0e-6 : f64} : (tensor<8x3xf32>, tensor<3xf32>) -> (tensor<8x3xf32>, tensor<8xf32>)
  %4 = oriel.gated_activation %1, %2 {kind = "silu"} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %5 = oriel.reshape %4 : (tensor<8x3xf32>) -> tensor<2x12xf32>
  return %5 : tensor<2x12xf32>
}

// -----

// Not where the split goes through what is normalized.
// CHECK-LABEL: func.func @split_along_norm
// CHECK: oriel.layer_norm {{.*}} -> (tensor<2x12xf32>, tensor<2xf32>, tensor<2xf32>)
func.func @split_along_norm(%x: tensor<2x4x3xf32>, %w: tensor<12xf32>, %b: tensor<12xf32>) -> tensor<2x4x3xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x3xf32>) -> tensor<2x12xf32>
  %1, %2, %3 = oriel.layer_norm %0, %w, %b {epsilon = 1.0e-6 : f64} : (tensor<2x12xf32>, tensor<12xf32>, tensor<12xf32>) -> (tensor<2x12xf32>, tensor<2xf32>, tensor<2xf32>)
  %4 = oriel.reshape %1 : (tensor<2x12xf32>) -> tensor<2x4x3xf32>
  return %4 : tensor<2x4x3xf32>
}

// -----

// The layers of a block whose rows are those of a matrix, with what they are added to.
// CHECK-LABEL: func.func @matrix
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK-NEXT: %[[N:[a-z0-9_]+]], {{.*}} = oriel.layer_norm %[[X]], {{.*}} -> (tensor<2x4x8xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK-NEXT: %[[U:.*]] = oriel.linear %[[N]], {{.*}} -> tensor<2x4x16xf32>
// CHECK-NEXT: %[[R:.*]] = oriel.relu %[[U]] : (tensor<2x4x16xf32>)
// CHECK-NEXT: %[[D:.*]] = oriel.linear %[[R]], {{.*}} -> tensor<2x4x8xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.add %[[X]], %[[D]] : (tensor<2x4x8xf32>
// CHECK-NEXT: return %[[Y]]
func.func @matrix(%x: tensor<2x4x8xf32>, %s: tensor<8xf32>, %up: tensor<8x16xf32>, %b: tensor<16xf32>, %down: tensor<16x8xf32>) -> tensor<2x4x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %1:3 = oriel.layer_norm %0, %s, %s {epsilon = 1.0e-5 : f64} : (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %2 = oriel.linear %1#0, %up, %b : (tensor<8x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %3 = oriel.relu %2 : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %4 = oriel.linear %3, %down : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %5 = oriel.add %0, %4 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %6 = oriel.reshape %5 : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
  return %6 : tensor<2x4x8xf32>
}

// -----

// A number for each row, times rows whose columns come apart as well: that of a layer can't.
// CHECK-LABEL: func.func @number_of_each_row
// CHECK: oriel.linear {{.*}} -> tensor<6x1xf32>
func.func @number_of_each_row(%x: tensor<2x3x2x4xf32>, %y: tensor<6x5xf32>, %w: tensor<5x1xf32>) -> tensor<2x3x2x4xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x2x4xf32>) -> tensor<6x8xf32>
  %1 = oriel.linear %y, %w : (tensor<6x5xf32>, tensor<5x1xf32>) -> tensor<6x1xf32>
  %2 = oriel.sigmoid %1 : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %3 = oriel.mul %0, %2 : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  %4 = oriel.reshape %3 : (tensor<6x8xf32>) -> tensor<2x3x2x4xf32>
  return %4 : tensor<2x3x2x4xf32>
}

// -----

// Experts on rows of samples and positions: what chooses them, their layers, and the sum over the chosen.
// CHECK-LABEL: func.func @experts
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK-NEXT: %[[L:.*]] = oriel.linear %[[X]], {{.*}} -> tensor<2x4x6xf32>
// CHECK-NEXT: %[[P:.*]] = oriel.softmax %[[L]] {dim = 2 : i64}
// CHECK-NEXT: %[[C:.*]] = oriel.topk %[[P]] {dim = 2 : i64, k = 2 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x2xi64>
// CHECK-NEXT: %[[G:.*]] = oriel.gather %[[P]], %[[C]] {batch_dims = 2 : i64, dim = 2 : i64}
// CHECK-NEXT: %[[H:.*]] = oriel.expert_linear %[[X]], %{{.*}}, %[[C]] : {{.*}} -> tensor<2x4x2x5xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.expert_linear %[[H]], %{{.*}}, %[[C]] : {{.*}} -> tensor<2x4x2x8xf32>
// CHECK-NEXT: %[[S:.*]] = oriel.reshape %[[G]] : (tensor<2x4x2xf32>) -> tensor<2x4x2x1xf32>
// CHECK-NEXT: %[[Z:.*]] = oriel.mul %[[Y]], %[[S]]
// CHECK-NEXT: %[[R:.*]] = oriel.reduce_sum %[[Z]] {dims = array<i64: 2>} : (tensor<2x4x2x8xf32>) -> tensor<2x4x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @experts(%x: tensor<2x4x8xf32>, %router: tensor<8x6xf32>, %up: tensor<6x8x5xf32>, %down: tensor<6x5x8xf32>) -> tensor<2x4x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %1 = oriel.linear %0, %router : (tensor<8x8xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %2 = oriel.softmax %1 {dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
  %3 = oriel.topk %2 {dim = 1 : i64, k = 2 : i64} : (tensor<8x6xf32>) -> tensor<8x2xi64>
  %4 = oriel.gather %2, %3 {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<8x6xf32>, tensor<8x2xi64>) -> tensor<8x2xf32>
  %5 = oriel.expert_linear %0, %up, %3 : (tensor<8x8xf32>, tensor<6x8x5xf32>, tensor<8x2xi64>) -> tensor<8x2x5xf32>
  %6 = oriel.expert_linear %5, %down, %3 : (tensor<8x2x5xf32>, tensor<6x5x8xf32>, tensor<8x2xi64>) -> tensor<8x2x8xf32>
  %7 = oriel.reshape %4 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
  %8 = oriel.mul %6, %7 : (tensor<8x2x8xf32>, tensor<8x2x1xf32>) -> tensor<8x2x8xf32>
  %9 = oriel.reduce_sum %8 {dims = array<i64: 1>} : (tensor<8x2x8xf32>) -> tensor<8x8xf32>
  %10 = oriel.reshape %9 : (tensor<8x8xf32>) -> tensor<2x4x8xf32>
  return %10 : tensor<2x4x8xf32>
}

// -----

// A mask of chosen groups, and the largest and its place: a cast, a sum and an index of each row.
// CHECK-LABEL: func.func @chosen_of_rows
// CHECK: oriel.topk {{.*}} -> tensor<2x4x1xi64>
// CHECK: oriel.scatter_add {{.*}} {batch_dims = 2 : i64, dim = 2 : i64} : (tensor<2x4x1xi64>, tensor<2x4x1xf32>) -> tensor<2x4x3xf32>
// CHECK: oriel.reduce_max {{.*}} {dims = array<i64: 2>, keep_dims = true} : (tensor<2x4x3xf32>) -> tensor<2x4x1xf32>
// CHECK: oriel.argmax {{.*}} {dim = 2 : i64, keep_dims = true} : (tensor<2x4x3xf32>) -> tensor<2x4x1xi64>
func.func @chosen_of_rows(%x: tensor<2x4x3xf32>, %ones: tensor<2x4x1xf32>) -> tensor<2x4x3xf32> {
  %0 = oriel.reshape %x : (tensor<2x4x3xf32>) -> tensor<8x3xf32>
  %1 = oriel.reshape %ones : (tensor<2x4x1xf32>) -> tensor<8x1xf32>
  %2 = oriel.topk %0 {dim = 1 : i64, k = 1 : i64} : (tensor<8x3xf32>) -> tensor<8x1xi64>
  %3 = oriel.scatter_add %2, %1 {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<8x1xi64>, tensor<8x1xf32>) -> tensor<8x3xf32>
  %4 = oriel.mul %3, %0 : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x3xf32>
  %5 = oriel.reduce_max %4 {dims = array<i64: 1>, keep_dims = true} : (tensor<8x3xf32>) -> tensor<8x1xf32>
  %6 = oriel.argmax %4 {dim = 1 : i64, keep_dims = true} : (tensor<8x3xf32>) -> tensor<8x1xi64>
  %7 = oriel.cast %6 : (tensor<8x1xi64>) -> tensor<8x1xf32>
  %8 = oriel.mul %5, %7 : (tensor<8x1xf32>, tensor<8x1xf32>) -> tensor<8x1xf32>
  %9 = oriel.sub %4, %8 : (tensor<8x3xf32>, tensor<8x1xf32>) -> tensor<8x3xf32>
  %10 = oriel.reshape %9 : (tensor<8x3xf32>) -> tensor<2x4x3xf32>
  return %10 : tensor<2x4x3xf32>
}

// -----

// Not where a row's choices would come apart.
// CHECK-LABEL: func.func @choices
// CHECK: oriel.expert_linear {{.*}} -> tensor<8x4x5xf32>
func.func @choices(%x: tensor<8x8xf32>, %w: tensor<6x8x5xf32>, %c: tensor<8x2x2xi64>) -> tensor<8x2x2x5xf32> {
  %0 = oriel.reshape %c : (tensor<8x2x2xi64>) -> tensor<8x4xi64>
  %1 = oriel.expert_linear %x, %w, %0 : (tensor<8x8xf32>, tensor<6x8x5xf32>, tensor<8x4xi64>) -> tensor<8x4x5xf32>
  %2 = oriel.reshape %1 : (tensor<8x4x5xf32>) -> tensor<8x2x2x5xf32>
  return %2 : tensor<8x2x2x5xf32>
}

// -----

// Rows that indices name can't come apart: the indices are of all of them.
// CHECK-LABEL: func.func @rows_of_indices
// CHECK: oriel.scatter_add {{.*}} {dim = 0 : i64} : (tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<24xf32>
// CHECK: oriel.reshape {{.*}} : (tensor<24xf32>) -> tensor<4x6xf32>
func.func @rows_of_indices(%x: tensor<4x6xf32>, %i: tensor<4x3xi64>, %u: tensor<4x3xf32>) -> tensor<4x6xf32> {
  %0 = oriel.constant {value = dense<5> : tensor<i64>} : () -> tensor<i64>
  %1 = oriel.iota {dim = 0 : i64} : () -> tensor<4x3xi64>
  %2 = oriel.constant {value = dense<6> : tensor<i64>} : () -> tensor<i64>
  %3 = oriel.mul %1, %2 : (tensor<4x3xi64>, tensor<i64>) -> tensor<4x3xi64>
  %4 = oriel.min %i, %0 : (tensor<4x3xi64>, tensor<i64>) -> tensor<4x3xi64>
  %5 = oriel.max %4, %1 : (tensor<4x3xi64>, tensor<4x3xi64>) -> tensor<4x3xi64>
  %6 = oriel.add %5, %3 : (tensor<4x3xi64>, tensor<4x3xi64>) -> tensor<4x3xi64>
  %7 = oriel.reshape %x : (tensor<4x6xf32>) -> tensor<24xf32>
  %8 = oriel.scatter_add %6, %u {dim = 0 : i64} : (tensor<4x3xi64>, tensor<4x3xf32>) -> tensor<24xf32>
  %9 = oriel.add %7, %8 : (tensor<24xf32>, tensor<24xf32>) -> tensor<24xf32>
  %10 = oriel.reshape %9 : (tensor<24xf32>) -> tensor<4x6xf32>
  return %10 : tensor<4x6xf32>
}
