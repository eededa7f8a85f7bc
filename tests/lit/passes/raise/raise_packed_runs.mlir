// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-packed),canonicalize,cse)" --split-input-file | FileCheck %s

// What is computed otherwise, or of something else, ends a run.
// CHECK-LABEL: func.func @class_token
// CHECK-SAME: (%[[C:.*]]: tensor<1x4xf32>, %[[X:.*]]: tensor<2x4xf32>, %[[W:.*]]: tensor<4x4xf32>)
// CHECK: %[[L:.*]] = oriel.linear %[[X]], %[[W]]
// CHECK: %[[T:.*]] = oriel.tanh %[[L]]
// CHECK: %[[Y:.*]] = oriel.concat %[[C]], %[[T]]
// CHECK-NEXT: return %[[Y]]
func.func @class_token(%c: tensor<1x4xf32>, %x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
  %0 = oriel.slice %x {limits = array<i64: 1, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %1 = oriel.slice %x {limits = array<i64: 2, 4>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
  %2 = oriel.linear %0, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %3 = oriel.tanh %2 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %4 = oriel.linear %1, %w : (tensor<1x4xf32>, tensor<4x4xf32>) -> tensor<1x4xf32>
  %5 = oriel.tanh %4 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %6 = oriel.concat %c, %3, %5 {dim = 0 : i64} : (tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<3x4xf32>
  return %6 : tensor<3x4xf32>
}

// -----

// Of two layers, both are concatenated.
// CHECK-LABEL: func.func @layers
// CHECK-SAME: (%[[X:.*]]: tensor<4x4xf32>, %[[W:.*]]: tensor<4x4xf32>)
// CHECK: %[[L:.*]] = oriel.linear %[[X]], %[[W]]
// CHECK: %[[A:.*]] = oriel.tanh %[[L]]
// CHECK: %[[M:.*]] = oriel.linear %[[A]], %[[W]]
// CHECK: %[[B:.*]] = oriel.relu %[[M]]
// CHECK-NEXT: return %[[A]], %[[B]]
func.func @layers(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %1 = oriel.slice %x {limits = array<i64: 4, 4>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
  %2 = oriel.linear %0, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %3 = oriel.tanh %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = oriel.linear %1, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %5 = oriel.tanh %4 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %6 = oriel.concat %3, %5 {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %7 = oriel.linear %3, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %8 = oriel.relu %7 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %9 = oriel.linear %5, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %10 = oriel.relu %9 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %11 = oriel.concat %8, %10 {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  return %6, %11 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// Rows of queries: keys, which all share, are there once.
// CHECK-LABEL: func.func @query_chunks
// CHECK-SAME: (%[[Q:.*]]: tensor<3x4x2xf32>, %[[K:.*]]: tensor<3x4x2xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.matmul %[[Q]], %[[K]] {transpose_rhs = true}
// CHECK-NEXT: return %[[Y]]
func.func @query_chunks(%q: tensor<3x4x2xf32>, %k: tensor<3x4x2xf32>) -> tensor<3x4x4xf32> {
  %0 = oriel.slice %q {limits = array<i64: 3, 2, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<3x4x2xf32>) -> tensor<3x2x2xf32>
  %1 = oriel.slice %q {limits = array<i64: 3, 4, 2>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<3x4x2xf32>) -> tensor<3x2x2xf32>
  %2 = oriel.matmul %0, %k {transpose_rhs = true} : (tensor<3x2x2xf32>, tensor<3x4x2xf32>) -> tensor<3x2x4xf32>
  %3 = oriel.matmul %1, %k {transpose_rhs = true} : (tensor<3x2x2xf32>, tensor<3x4x2xf32>) -> tensor<3x2x4xf32>
  %4 = oriel.concat %2, %3 {dim = 1 : i64} : (tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x4x4xf32>
  return %4 : tensor<3x4x4xf32>
}

// -----

// A run's pieces are of what another run computes.
// CHECK-LABEL: func.func @runs_of_each_other
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
// CHECK: %[[E:.*]] = oriel.exp %[[X]] : (tensor<8xf32>)
// CHECK: %[[F:.*]] = oriel.slice %[[E]] {limits = array<i64: 4>
// CHECK: %[[T:.*]] = oriel.tanh %{{.*}} : (tensor<{{.*}}>)
// CHECK: oriel.concat %{{.*}}, %[[E]] {dim = 0 : i64} : (tensor<4xf32>, tensor<8xf32>)
func.func @runs_of_each_other(%x: tensor<8xf32>) -> (tensor<12xf32>, tensor<2x1xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 4>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %1 = oriel.slice %x {limits = array<i64: 8>, starts = array<i64: 4>, strides = array<i64: 1>} : (tensor<8xf32>) -> tensor<4xf32>
  %2 = oriel.exp %0 : (tensor<4xf32>) -> tensor<4xf32>
  %3 = oriel.exp %1 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = oriel.slice %2 {limits = array<i64: 2>, starts = array<i64: 0>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %5 = oriel.slice %2 {limits = array<i64: 4>, starts = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf32>) -> tensor<2xf32>
  %6 = oriel.reshape %4 : (tensor<2xf32>) -> tensor<2x1xf32>
  %7 = oriel.reshape %5 : (tensor<2xf32>) -> tensor<2x1xf32>
  %8 = oriel.tanh %6 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %9 = oriel.reshape %8 : (tensor<2x1xf32>) -> tensor<2xf32>
  %10 = oriel.tanh %7 : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %11 = oriel.reshape %10 : (tensor<2x1xf32>) -> tensor<2xf32>
  %12 = oriel.concat %9, %11, %2, %3 {dim = 0 : i64} : (tensor<2xf32>, tensor<2xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<12xf32>
  return %12, %7 : tensor<12xf32>, tensor<2x1xf32>
}

// -----

// One piece's value is what others are slices of; the last one is computed first.
// CHECK-LABEL: func.func @read_by_another_piece
// CHECK-SAME: (%[[X:.*]]: tensor<4x2xf32>)
// CHECK: %[[E:.*]] = oriel.exp %[[X]] : (tensor<4x2xf32>)
// CHECK-NOT: oriel.exp
// CHECK: return
func.func @read_by_another_piece(%x: tensor<4x2xf32>) -> (tensor<4x1xf32>, tensor<2x1xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 4, 2>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  %1 = oriel.exp %0 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %2 = oriel.slice %1 {limits = array<i64: 1, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
  %3 = oriel.slice %1 {limits = array<i64: 2, 2>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<2x2xf32>) -> tensor<1x2xf32>
  %4 = oriel.reshape %2 : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %5 = oriel.reshape %3 : (tensor<1x2xf32>) -> tensor<2x1xf32>
  %6 = oriel.slice %x {limits = array<i64: 2, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  %7 = oriel.exp %6 : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %8 = oriel.reduce_sum %7 {dims = array<i64: 1>, keep_dims = true} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %9 = oriel.reduce_sum %1 {dims = array<i64: 1>, keep_dims = true} : (tensor<2x2xf32>) -> tensor<2x1xf32>
  %10 = oriel.mul %8, %4 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %11 = oriel.mul %9, %5 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %12 = oriel.concat %10, %11 {dim = 0 : i64} : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<4x1xf32>
  return %12, %5 : tensor<4x1xf32>, tensor<2x1xf32>
}

// -----

// Three groups of the output are no piece of three groups of twice as many.
// CHECK-LABEL: func.func @grouped
// CHECK-COUNT-2: oriel.conv %{{.*}} {{.*}}group = 3
// CHECK: oriel.concat
func.func @grouped(%x: tensor<1x6x2xf32>, %w: tensor<12x2x1xf32>) -> tensor<1x12x2xf32> {
  %0 = oriel.slice %w {limits = array<i64: 6, 2, 1>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<12x2x1xf32>) -> tensor<6x2x1xf32>
  %1 = oriel.slice %w {limits = array<i64: 12, 2, 1>, starts = array<i64: 6, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<12x2x1xf32>) -> tensor<6x2x1xf32>
  %2 = oriel.conv %x, %0 {dilations = array<i64: 1>, group = 3 : i64, pads = array<i64: 0, 0>, strides = array<i64: 1>} : (tensor<1x6x2xf32>, tensor<6x2x1xf32>) -> tensor<1x6x2xf32>
  %3 = oriel.conv %x, %1 {dilations = array<i64: 1>, group = 3 : i64, pads = array<i64: 0, 0>, strides = array<i64: 1>} : (tensor<1x6x2xf32>, tensor<6x2x1xf32>) -> tensor<1x6x2xf32>
  %4 = oriel.concat %2, %3 {dim = 1 : i64} : (tensor<1x6x2xf32>, tensor<1x6x2xf32>) -> tensor<1x12x2xf32>
  return %4 : tensor<1x12x2xf32>
}

// -----

// Sums of nothing.
// CHECK-LABEL: func.func @empty
// CHECK-COUNT-2: oriel.reduce_sum %{{.*}} : (tensor<2x0x3xf32>)
// CHECK: oriel.concat
func.func @empty(%x: tensor<4x0x3xf32>) -> tensor<4x3xf32> {
  %0 = oriel.slice %x {limits = array<i64: 2, 0, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<4x0x3xf32>) -> tensor<2x0x3xf32>
  %1 = oriel.slice %x {limits = array<i64: 4, 0, 3>, starts = array<i64: 2, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<4x0x3xf32>) -> tensor<2x0x3xf32>
  %2 = oriel.reduce_sum %0 {dims = array<i64: 1>} : (tensor<2x0x3xf32>) -> tensor<2x3xf32>
  %3 = oriel.reduce_sum %1 {dims = array<i64: 1>} : (tensor<2x0x3xf32>) -> tensor<2x3xf32>
  %4 = oriel.concat %2, %3 {dim = 0 : i64} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return %4 : tensor<4x3xf32>
}
