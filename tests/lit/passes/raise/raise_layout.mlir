// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-layout))" --split-input-file | FileCheck %s

// Norm, rotation and attention work on what projections leave; nothing is transposed.
// CHECK-LABEL: func.func @heads_after_positions
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: tensor<2x6x4x8xf32>, %[[K:[a-z0-9]*]]: tensor<2x6x2x8xf32>, %[[V:[a-z0-9]*]]: tensor<2x6x2x8xf32>, %[[COS:[a-z0-9]*]]: tensor<1x1x6x8xf32>
// CHECK-NOT: oriel.transpose
// CHECK-DAG: %[[N:[^,]*]], %{{.*}} = oriel.rms_norm %[[Q]]
// CHECK-DAG: %[[C:.*]] = oriel.reshape %[[COS]] : (tensor<1x1x6x8xf32>) -> tensor<1x6x1x8xf32>
// CHECK: %[[R:.*]] = oriel.rope %[[N]], %[[C]]
// CHECK: %[[Y:[^,]*]], %{{.*}} = oriel.attention %[[R]], %[[K]], %[[V]] {scale = 5.000000e-01 : f64, sequence_first = true}
// CHECK-NEXT: return %[[Y]]
func.func @heads_after_positions(%q: tensor<2x6x4x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>, %cos: tensor<1x1x6x8xf32>, %sin: tensor<1x1x6x8xf32>, %w: tensor<8xf32>) -> tensor<2x6x4x8xf32> {
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %1 = oriel.transpose %k {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %2 = oriel.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  %n, %rms = oriel.rms_norm %0, %w {epsilon = 1.0e-6} : (tensor<2x4x6x8xf32>, tensor<8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  %3 = oriel.rope %n, %cos, %sin : (tensor<2x4x6x8xf32>, tensor<1x1x6x8xf32>, tensor<1x1x6x8xf32>) -> tensor<2x4x6x8xf32>
  %y, %lse = oriel.attention %3, %1, %2 {scale = 0.5} : (tensor<2x4x6x8xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  %4 = oriel.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x6x8xf32>) -> tensor<2x6x4x8xf32>
  return %4 : tensor<2x6x4x8xf32>
}

// -----

// One head is in order either way.
// CHECK-LABEL: func.func @one_key_head
// CHECK-NOT: oriel.transpose
// CHECK: oriel.attention %{{.*}} {scale = 5.000000e-01 : f64, sequence_first = true}
func.func @one_key_head(%q: tensor<2x6x4x8xf32>, %k: tensor<2x1x6x8xf32>, %v: tensor<2x1x6x8xf32>) -> tensor<2x6x4x8xf32> {
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %y, %lse = oriel.attention %0, %k, %v {scale = 0.5} : (tensor<2x4x6x8xf32>, tensor<2x1x6x8xf32>, tensor<2x1x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  %1 = oriel.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x6x8xf32>) -> tensor<2x6x4x8xf32>
  return %1 : tensor<2x6x4x8xf32>
}

// -----

// A key that is not transposed would have to be: all stays.
// CHECK-LABEL: func.func @a_key_with_heads_first
// CHECK: oriel.transpose
// CHECK: oriel.attention %{{.*}} {scale = 5.000000e-01 : f64} :
func.func @a_key_with_heads_first(%q: tensor<2x6x4x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x6x4x8xf32>) -> tensor<2x6x4x8xf32> {
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %1 = oriel.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %y, %lse = oriel.attention %0, %k, %1 {scale = 0.5} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>) -> (tensor<2x4x6x8xf32>, tensor<2x4x6xf32>)
  %2 = oriel.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x6x8xf32>) -> tensor<2x6x4x8xf32>
  return %2 : tensor<2x6x4x8xf32>
}

// -----

// A linear layer takes any rank.
// CHECK-LABEL: func.func @flattened_for_a_product
// CHECK-SAME: (%[[X:[a-z0-9]*]]: tensor<2x6x4xf32>, %[[W:[a-z0-9]*]]: tensor<4x8xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.linear %[[X]], %[[W]]
// CHECK-NEXT: return %[[Y]]
func.func @flattened_for_a_product(%x: tensor<2x6x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x6x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
  %1 = oriel.linear %0, %w : (tensor<12x4xf32>, tensor<4x8xf32>) -> tensor<12x8xf32>
  %2 = oriel.reshape %1 : (tensor<12x8xf32>) -> tensor<2x6x8xf32>
  return %2 : tensor<2x6x8xf32>
}

// -----

// The last dimension is split: another reshape.
// CHECK-LABEL: func.func @split_into_heads
// CHECK: %[[Y:.*]] = oriel.linear
// CHECK: oriel.reshape %[[Y]]
func.func @split_into_heads(%x: tensor<2x6x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x6x2x4xf32> {
  %0 = oriel.reshape %x : (tensor<2x6x4xf32>) -> tensor<12x4xf32>
  %1 = oriel.linear %0, %w : (tensor<12x4xf32>, tensor<4x8xf32>) -> tensor<12x8xf32>
  %2 = oriel.reshape %1 : (tensor<12x8xf32>) -> tensor<2x6x2x4xf32>
  return %2 : tensor<2x6x2x4xf32>
}

// -----

// Positions are split into two sequences between two transposes: one is left.
// CHECK-LABEL: func.func @transposed_twice_around_a_split
// CHECK-SAME: (%[[X:.*]]: tensor<6x4x8xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<6x4x8xf32>) -> tensor<2x3x4x8xf32>
// CHECK-NEXT: %[[T:.*]] = oriel.transpose %[[R]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: return %[[T]]
func.func @transposed_twice_around_a_split(%x: tensor<6x4x8xf32>) -> tensor<2x4x3x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<6x4x8xf32>) -> tensor<4x6x8xf32>
  %1 = oriel.reshape %0 : (tensor<4x6x8xf32>) -> tensor<4x2x3x8xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<4x2x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %2 : tensor<2x4x3x8xf32>
}

// -----

// Dimensions that are merged belong together only as transposed.
// CHECK-LABEL: func.func @merged_after_a_transpose
// CHECK: oriel.transpose
// CHECK-NEXT: oriel.reshape
// CHECK-NEXT: return
func.func @merged_after_a_transpose(%x: tensor<6x4x8xf32>) -> tensor<24x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<6x4x8xf32>) -> tensor<4x6x8xf32>
  %1 = oriel.reshape %0 : (tensor<4x6x8xf32>) -> tensor<24x8xf32>
  return %1 : tensor<24x8xf32>
}

// -----

// Query, key and value of one projection, brought to the front to be sliced: each is sliced where it is.
// CHECK-LABEL: func.func @sliced_from_one_value
// CHECK-SAME: (%[[X:.*]]: tensor<6x3x4x8xf32>)
// CHECK-NEXT: %[[S:.*]] = oriel.slice %[[X]] {limits = array<i64: 6, 2, 4, 8>, starts = array<i64: 0, 1, 0, 0>
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[S]] : (tensor<6x1x4x8xf32>) -> tensor<6x4x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @sliced_from_one_value(%x: tensor<6x3x4x8xf32>) -> tensor<6x4x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2, 3>} : (tensor<6x3x4x8xf32>) -> tensor<3x6x4x8xf32>
  %1 = oriel.slice %0 {starts = array<i64: 1, 0, 0, 0>, limits = array<i64: 2, 6, 4, 8>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x6x4x8xf32>) -> tensor<1x6x4x8xf32>
  %2 = oriel.reshape %1 : (tensor<1x6x4x8xf32>) -> tensor<6x4x8xf32>
  return %2 : tensor<6x4x8xf32>
}

// -----

// New dimensions of size 1, before, between and behind.
// CHECK-LABEL: func.func @unit_dimensions_around_a_transpose
// CHECK-SAME: (%[[X:.*]]: tensor<6x4x1xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<6x4x1xf32>) -> tensor<1x6x4x1x1xf32>
// CHECK-NEXT: %[[T:.*]] = oriel.transpose
// CHECK-SAME: -> tensor<1x4x6x1x1xf32>
// CHECK-NEXT: return %[[T]]
func.func @unit_dimensions_around_a_transpose(%x: tensor<6x4x1xf32>) -> tensor<1x4x6x1x1xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<6x4x1xf32>) -> tensor<4x6x1xf32>
  %1 = oriel.reshape %0 : (tensor<4x6x1xf32>) -> tensor<1x4x6x1x1xf32>
  return %1 : tensor<1x4x6x1x1xf32>
}

// -----

// The dimension of size 1 moves by a reshape; heads and positions change places by the transpose.
// CHECK-LABEL: func.func @unit_dimension_moved
// CHECK-SAME: (%[[X:.*]]: tensor<6x1x4x8xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<6x1x4x8xf32>) -> tensor<1x6x4x8xf32>
// CHECK-NEXT: %[[T:.*]] = oriel.transpose %[[R]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: return %[[T]]
func.func @unit_dimension_moved(%x: tensor<6x1x4x8xf32>) -> tensor<1x4x6x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 2, 0, 3>} : (tensor<6x1x4x8xf32>) -> tensor<1x4x6x8xf32>
  return %0 : tensor<1x4x6x8xf32>
}

// -----

// Taken by its number, a row is a slice.
// CHECK-LABEL: func.func @one_known_row
// CHECK: %[[S:.*]] = oriel.slice %{{.*}} {limits = array<i64: 6, 3, 8>, starts = array<i64: 0, 2, 0>
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[S]] : (tensor<6x1x8xf32>) -> tensor<6x8xf32>
// CHECK-NEXT: return %[[R]]
func.func @one_known_row(%x: tensor<6x3x8xf32>) -> tensor<6x8xf32> {
  %two = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %0 = oriel.gather %x, %two {dim = 1 : i64} : (tensor<6x3x8xf32>, tensor<i64>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// -----

// Two transposes are one, which meets the one behind it.
// CHECK-LABEL: func.func @joined_heads
// CHECK-SAME: (%[[X:.*]]: tensor<1x3x4x8xf32>, %[[Y:.*]]: tensor<1x5x4x8xf32>)
// CHECK-NEXT: %[[Z:.*]] = oriel.concat %[[X]], %[[Y]] {dim = 1 : i64}
// CHECK-NEXT: return %[[Z]]
func.func @joined_heads(%x: tensor<1x3x4x8xf32>, %y: tensor<1x5x4x8xf32>) -> tensor<1x8x4x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x3x4x8xf32>) -> tensor<1x4x3x8xf32>
  %1 = oriel.transpose %y {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x5x4x8xf32>) -> tensor<1x4x5x8xf32>
  %2 = oriel.concat %0, %1 {dim = 2 : i64} : (tensor<1x4x3x8xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x8x8xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x4x8x8xf32>) -> tensor<1x8x4x8xf32>
  return %3 : tensor<1x8x4x8xf32>
}

// -----

// Counted from the end, too.
// CHECK-LABEL: func.func @last_row
// CHECK: oriel.slice %{{.*}} {limits = array<i64: 6, 3, 8>, starts = array<i64: 0, 2, 0>
func.func @last_row(%x: tensor<6x3x8xf32>) -> tensor<6x8xf32> {
  %last = oriel.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %0 = oriel.gather %x, %last {dim = 1 : i64} : (tensor<6x3x8xf32>, tensor<i64>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// -----

// Samples and positions change places before the layer, and behind it with the heads.
// CHECK-LABEL: func.func @samples_behind_positions
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x6x16xf32>, %[[W:[a-z0-9]+]]: tensor<16x16xf32>)
// CHECK-NEXT: %[[A:.*]] = oriel.linear %[[X]], %[[W]] : (tensor<2x6x16xf32>
// CHECK-NEXT: %[[B:.*]] = oriel.reshape %[[A]] : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
// CHECK-NEXT: %[[C:.*]] = oriel.transpose %[[B]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: return %[[C]]
func.func @samples_behind_positions(%x: tensor<2x6x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x2x6x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x6x16xf32>) -> tensor<6x2x16xf32>
  %1 = oriel.linear %0, %w : (tensor<6x2x16xf32>, tensor<16x16xf32>) -> tensor<6x2x16xf32>
  %2 = oriel.reshape %1 : (tensor<6x2x16xf32>) -> tensor<6x2x2x8xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 1, 2, 0, 3>} : (tensor<6x2x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %3 : tensor<2x2x6x8xf32>
}

// -----

// Likewise behind attention, where heads are merged before the layer.
// CHECK-LABEL: func.func @samples_behind_positions_of_heads
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x6x2x8xf32>, %[[W:[a-z0-9]+]]: tensor<16x16xf32>)
// CHECK-NEXT: %[[A:.*]] = oriel.reshape %[[X]] : (tensor<2x6x2x8xf32>) -> tensor<2x6x16xf32>
// CHECK-NEXT: %[[B:.*]] = oriel.linear %[[A]], %[[W]] : (tensor<2x6x16xf32>
// CHECK-NEXT: return %[[B]]
func.func @samples_behind_positions_of_heads(%x: tensor<2x6x2x8xf32>, %w: tensor<16x16xf32>) -> tensor<2x6x16xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2, 3>} : (tensor<2x6x2x8xf32>) -> tensor<6x2x2x8xf32>
  %1 = oriel.reshape %0 : (tensor<6x2x2x8xf32>) -> tensor<6x2x16xf32>
  %2 = oriel.linear %1, %w : (tensor<6x2x16xf32>, tensor<16x16xf32>) -> tensor<6x2x16xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 1, 0, 2>} : (tensor<6x2x16xf32>) -> tensor<2x6x16xf32>
  return %3 : tensor<2x6x16xf32>
}

// -----

// The input was permuted once, and what follows keeps the order: no transpose undoes it.
// CHECK-LABEL: func.func @permuted_once
// CHECK: %[[T:.*]] = oriel.transpose %{{.*}} {permutation = array<i64: 1, 0, 2>}
// CHECK-NEXT: oriel.linear %[[T]]
// CHECK: oriel.transpose %{{.*}} {permutation = array<i64: 0, 2, 1, 3>}
func.func @permuted_once(%x: tensor<6x2x16xf32>, %w: tensor<16x16xf32>) -> tensor<2x2x6x8xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<6x2x16xf32>) -> tensor<2x6x16xf32>
  %1 = oriel.linear %0, %w : (tensor<2x6x16xf32>, tensor<16x16xf32>) -> tensor<2x6x16xf32>
  %2 = oriel.reshape %1 : (tensor<2x6x16xf32>) -> tensor<2x6x2x8xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x8xf32>) -> tensor<2x2x6x8xf32>
  return %3 : tensor<2x2x6x8xf32>
}

// -----

// Queries, keys and values are in front of samples and positions before they are sliced apart.
// CHECK-LABEL: func.func @samples_behind_positions_of_slices
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x6x16xf32>
// CHECK-NEXT: oriel.linear %[[X]]
// CHECK-NOT: oriel.transpose
// CHECK: return
func.func @samples_behind_positions_of_slices(%x: tensor<2x6x16xf32>, %w: tensor<16x32xf32>) -> (tensor<2x6x16xf32>, tensor<2x6x16xf32>) {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x6x16xf32>) -> tensor<6x2x16xf32>
  %1 = oriel.linear %0, %w : (tensor<6x2x16xf32>, tensor<16x32xf32>) -> tensor<6x2x32xf32>
  %2 = oriel.reshape %1 : (tensor<6x2x32xf32>) -> tensor<6x2x2x16xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 2, 0, 1, 3>} : (tensor<6x2x2x16xf32>) -> tensor<2x6x2x16xf32>
  %4 = oriel.slice %3 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 6, 2, 16>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x6x2x16xf32>) -> tensor<1x6x2x16xf32>
  %5 = oriel.slice %3 {starts = array<i64: 1, 0, 0, 0>, limits = array<i64: 2, 6, 2, 16>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x6x2x16xf32>) -> tensor<1x6x2x16xf32>
  %6 = oriel.reshape %4 : (tensor<1x6x2x16xf32>) -> tensor<6x2x16xf32>
  %7 = oriel.reshape %5 : (tensor<1x6x2x16xf32>) -> tensor<6x2x16xf32>
  %8 = oriel.transpose %6 {permutation = array<i64: 1, 0, 2>} : (tensor<6x2x16xf32>) -> tensor<2x6x16xf32>
  %9 = oriel.transpose %7 {permutation = array<i64: 1, 0, 2>} : (tensor<6x2x16xf32>) -> tensor<2x6x16xf32>
  return %8, %9 : tensor<2x6x16xf32>, tensor<2x6x16xf32>
}

// -----

// Nothing is won where a layer is only sliced: its result may be larger than its input, as logits are.
// CHECK-LABEL: func.func @transposed_for_logits
// CHECK: oriel.transpose
// CHECK-NEXT: oriel.linear
// CHECK-NEXT: oriel.slice
func.func @transposed_for_logits(%x: tensor<2x6x16xf32>, %w: tensor<16x64xf32>) -> tensor<5x2x64xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x6x16xf32>) -> tensor<6x2x16xf32>
  %1 = oriel.linear %0, %w : (tensor<6x2x16xf32>, tensor<16x64xf32>) -> tensor<6x2x64xf32>
  %2 = oriel.slice %1 {starts = array<i64: 0, 0, 0>, limits = array<i64: 5, 2, 64>, strides = array<i64: 1, 1, 1>} : (tensor<6x2x64xf32>) -> tensor<5x2x64xf32>
  return %2 : tensor<5x2x64xf32>
}

// -----

// What reads the layer has no transpose: it would have to be made for nothing.
// CHECK-LABEL: func.func @transposed_for_a_sum
// CHECK: oriel.transpose
// CHECK-NEXT: oriel.linear
// CHECK-NEXT: oriel.add
func.func @transposed_for_a_sum(%x: tensor<2x6x16xf32>, %w: tensor<16x16xf32>) -> tensor<6x2x16xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<2x6x16xf32>) -> tensor<6x2x16xf32>
  %1 = oriel.linear %0, %w : (tensor<6x2x16xf32>, tensor<16x16xf32>) -> tensor<6x2x16xf32>
  %2 = oriel.add %1, %1 : (tensor<6x2x16xf32>, tensor<6x2x16xf32>) -> tensor<6x2x16xf32>
  return %2 : tensor<6x2x16xf32>
}

// -----

// A dimension of size 1 that the reshape drops moves no element.
// CHECK-LABEL: func.func @unit_dimension_dropped
// CHECK-SAME: (%[[X:.*]]: tensor<2x6x1x4xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<2x6x1x4xf32>) -> tensor<2x6x4xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.transpose %[[R]] {permutation = array<i64: 1, 0, 2>}
// CHECK-NEXT: return %[[Y]]
func.func @unit_dimension_dropped(%x: tensor<2x6x1x4xf32>) -> tensor<6x2x4xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2, 3>} : (tensor<2x6x1x4xf32>) -> tensor<6x2x1x4xf32>
  %1 = oriel.reshape %0 : (tensor<6x2x1x4xf32>) -> tensor<6x2x4xf32>
  return %1 : tensor<6x2x4xf32>
}

// -----

// Products read a factor as it is stored.
// CHECK-LABEL: func.func @transposed_factors
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x6x8xf32>, %[[Z:[a-z0-9]+]]: tensor<2x3x6xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.matmul %[[X]], %[[Z]] {transpose_lhs = true, transpose_rhs = true}
// CHECK-NEXT: return %[[Y]]
func.func @transposed_factors(%x: tensor<2x6x8xf32>, %z: tensor<2x3x6xf32>) -> tensor<2x8x3xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %1 = oriel.transpose %z {permutation = array<i64: 0, 2, 1>} : (tensor<2x3x6xf32>) -> tensor<2x6x3xf32>
  %2 = oriel.matmul %0, %1 : (tensor<2x8x6xf32>, tensor<2x6x3xf32>) -> tensor<2x8x3xf32>
  return %2 : tensor<2x8x3xf32>
}

// -----

// Back to how they were; rows of several dimensions are exchanged together.
// CHECK-LABEL: func.func @transposed_rows
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<5x2x4x6xf32>, %[[Z:[a-z0-9]+]]: tensor<5x6x3xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.matmul %[[X]], %[[Z]] {row_dims = 2 : i64} :
// CHECK-NEXT: return %[[Y]]
func.func @transposed_rows(%x: tensor<5x2x4x6xf32>, %z: tensor<5x6x3xf32>) -> tensor<5x2x4x3xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 0, 3, 1, 2>} : (tensor<5x2x4x6xf32>) -> tensor<5x6x2x4xf32>
  %1 = oriel.matmul %0, %z {transpose_lhs = true, row_dims = 2 : i64} : (tensor<5x6x2x4xf32>, tensor<5x6x3xf32>) -> tensor<5x2x4x3xf32>
  return %1 : tensor<5x2x4x3xf32>
}

// -----

// Another exchange than that of the two groups.
// CHECK-LABEL: func.func @transposed_batch
// CHECK: %[[T:.*]] = oriel.transpose
// CHECK-NEXT: oriel.matmul %[[T]]
func.func @transposed_batch(%x: tensor<6x2x8xf32>, %z: tensor<2x8x3xf32>) -> tensor<2x6x3xf32> {
  %0 = oriel.transpose %x {permutation = array<i64: 1, 0, 2>} : (tensor<6x2x8xf32>) -> tensor<2x6x8xf32>
  %1 = oriel.matmul %0, %z : (tensor<2x6x8xf32>, tensor<2x8x3xf32>) -> tensor<2x6x3xf32>
  return %1 : tensor<2x6x3xf32>
}

// -----

// What is repeated is moved before it is.
// CHECK-LABEL: func.func @transposed_repetition
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x1x8xf32>)
// CHECK: %[[T:.*]] = oriel.reshape %[[X]] : (tensor<2x3x1x8xf32>) -> tensor<2x1x1x3x8xf32>
// CHECK: oriel.broadcast %[[T]] : (tensor<2x1x1x3x8xf32>) -> tensor<2x4x1x3x8xf32>
// CHECK-NOT: oriel.transpose
func.func @transposed_repetition(%x: tensor<2x3x1x8xf32>) -> tensor<2x4x1x3x8xf32> {
  %0 = oriel.broadcast %x : (tensor<2x3x1x8xf32>) -> tensor<2x3x4x8xf32>
  %1 = oriel.reshape %0 : (tensor<2x3x4x8xf32>) -> tensor<2x3x1x4x8xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 3, 2, 1, 4>} : (tensor<2x3x1x4x8xf32>) -> tensor<2x4x1x3x8xf32>
  return %2 : tensor<2x4x1x3x8xf32>
}

// -----

// The flattening of rows goes, though the columns are split.
// CHECK-LABEL: func.func @split_columns
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<4x8xf32>)
// CHECK: %[[Y:.*]] = oriel.linear %[[X]], %[[W]] : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
// CHECK: oriel.reshape %[[Y]] : (tensor<2x3x8xf32>) -> tensor<2x3x2x4xf32>
func.func @split_columns(%x: tensor<2x3x4xf32>, %w: tensor<4x8xf32>) -> tensor<2x3x2x4xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = oriel.linear %0, %w : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
  %2 = oriel.reshape %1 : (tensor<6x8xf32>) -> tensor<2x3x2x4xf32>
  return %2 : tensor<2x3x2x4xf32>
}

// -----

// What reshapes the columns of the input into others is another layer.
// CHECK-LABEL: func.func @other_rows
// CHECK: oriel.linear %{{.*}}, %{{.*}} : (tensor<2x12xf32>, tensor<12x8xf32>)
func.func @other_rows(%x: tensor<2x3x4xf32>, %w: tensor<12x8xf32>) -> tensor<2x2x4xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x4xf32>) -> tensor<2x12xf32>
  %1 = oriel.linear %0, %w : (tensor<2x12xf32>, tensor<12x8xf32>) -> tensor<2x8xf32>
  %2 = oriel.reshape %1 : (tensor<2x8xf32>) -> tensor<2x2x4xf32>
  return %2 : tensor<2x2x4xf32>
}
