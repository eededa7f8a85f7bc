// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-updates),canonicalize)" --split-input-file | FileCheck %s

// `y[:, 0] = p; y[:, 1] = q; y[:, 2] = r` of zeros: each update makes a copy, the last has all.
// CHECK-LABEL: func.func @updates
// CHECK-SAME: (%[[P:.*]]: tensor<2x1x5xf32>, %[[Q:.*]]: tensor<2x1x5xf32>, %[[R:.*]]: tensor<2x1x5xf32>)
// CHECK-NOT: oriel.slice
// CHECK: %[[ZEROS:.*]] = oriel.constant {{.*}} tensor<2x1x5xf32>
// CHECK-NOT: oriel.slice
// CHECK: %[[Y:.*]] = oriel.concat %[[P]], %[[Q]], %[[R]], %[[ZEROS]] {dim = 1 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @updates(%p: tensor<2x1x5xf32>, %q: tensor<2x1x5xf32>, %r: tensor<2x1x5xf32>) -> tensor<2x4x5xf32> {
  %zeros = oriel.constant {value = dense<0.0> : tensor<2x3x5xf32>} : () -> tensor<2x3x5xf32>
  %0 = oriel.concat %p, %zeros {dim = 1 : i64} : (tensor<2x1x5xf32>, tensor<2x3x5xf32>) -> tensor<2x4x5xf32>
  %1 = oriel.slice %0 {limits = array<i64: 2, 1, 5>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<2x1x5xf32>
  %2 = oriel.slice %0 {limits = array<i64: 2, 4, 5>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<2x2x5xf32>
  %3 = oriel.concat %1, %q, %2 {dim = 1 : i64} : (tensor<2x1x5xf32>, tensor<2x1x5xf32>, tensor<2x2x5xf32>) -> tensor<2x4x5xf32>
  %4 = oriel.slice %3 {limits = array<i64: 2, 2, 5>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<2x2x5xf32>
  %5 = oriel.slice %3 {limits = array<i64: 2, 4, 5>, starts = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x5xf32>) -> tensor<2x1x5xf32>
  %6 = oriel.concat %4, %r, %5 {dim = 1 : i64} : (tensor<2x2x5xf32>, tensor<2x1x5xf32>, tensor<2x1x5xf32>) -> tensor<2x4x5xf32>
  return %6 : tensor<2x4x5xf32>
}

// -----

// Halves of a concatenation that follow each other are the whole, without a copy.
// CHECK-LABEL: func.func @parts_of_one
// CHECK-SAME: (%[[P:.*]]: tensor<2x4xf32>, %[[Q:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.concat %[[P]], %[[Q]] {dim = 1 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @parts_of_one(%p: tensor<2x4xf32>, %q: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = oriel.concat %p, %q {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = oriel.slice %0 {limits = array<i64: 2, 3>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x3xf32>
  %2 = oriel.slice %0 {limits = array<i64: 2, 8>, starts = array<i64: 0, 3>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x5xf32>
  %3 = oriel.concat %1, %2 {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2x5xf32>) -> tensor<2x8xf32>
  return %3 : tensor<2x8xf32>
}

// -----

// What came before is read, too: both stay as they are.
// CHECK-LABEL: func.func @read_before
// CHECK: %[[A:.*]] = oriel.concat
// CHECK: %[[S:.*]] = oriel.slice %[[A]]
// CHECK: %[[B:.*]] = oriel.concat %[[S]], %{{.*}} {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>)
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @read_before(%x: tensor<1x4xf32>, %y: tensor<2x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = oriel.concat %x, %x, %y {dim = 0 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = oriel.slice %0 {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = oriel.concat %1, %y {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  return %0, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Split and joined again, but for the last piece.
// CHECK-LABEL: func.func @joined_again
// CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32>, %[[Y:.*]]: tensor<2x4xf32>)
// CHECK-NEXT: %[[S:.*]] = oriel.slice %[[X]] {limits = array<i64: 4, 4>, starts = array<i64: 0, 0>
// CHECK-NEXT: %[[Z:.*]] = oriel.concat %[[S]], %[[Y]] {dim = 0 : i64}
// CHECK-NEXT: return %[[Z]], %[[X]]
func.func @joined_again(%x: tensor<6x4xf32>, %y: tensor<2x4xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %1 = oriel.slice %x {limits = array<i64: 4, 4>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %2 = oriel.slice %x {limits = array<i64: 6, 4>, starts = array<i64: 4, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<2x4xf32>
  %3 = oriel.concat %0, %1, %y {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  %4 = oriel.concat %0, %1, %2 {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<6x4xf32>
  return %3, %4 : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// Of another dimension, and of every second column: not the pieces of this one.
// CHECK-LABEL: func.func @other_slices
// CHECK-COUNT-2: oriel.slice
// CHECK: oriel.concat
func.func @other_slices(%p: tensor<2x4xf32>, %q: tensor<2x4xf32>) -> tensor<2x5xf32> {
  %0 = oriel.concat %p, %q {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = oriel.slice %0 {limits = array<i64: 3, 3>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x3xf32>
  %2 = oriel.concat %p, %q {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %3 = oriel.slice %2 {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 2>} : (tensor<2x8xf32>) -> tensor<2x2xf32>
  %4 = oriel.concat %1, %3 {dim = 1 : i64} : (tensor<2x3xf32>, tensor<2x2xf32>) -> tensor<2x5xf32>
  return %4 : tensor<2x5xf32>
}

// -----

// Two cuts for one: a rotation of what was concatenated stays.
// CHECK-LABEL: func.func @would_cut_more
// CHECK: %[[C:.*]] = oriel.concat
// CHECK: oriel.slice %[[C]]
// CHECK: oriel.concat
func.func @would_cut_more(%p: tensor<2x4xf32>, %q: tensor<2x4xf32>, %r: tensor<2x1xf32>) -> tensor<2x5xf32> {
  %0 = oriel.concat %p, %q {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %1 = oriel.slice %0 {limits = array<i64: 2, 6>, starts = array<i64: 0, 2>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x4xf32>
  %2 = oriel.concat %1, %r {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x1xf32>) -> tensor<2x5xf32>
  return %2 : tensor<2x5xf32>
}
