// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-packed),canonicalize,cse)" --split-input-file | FileCheck %s

// Two images of three patches in one sequence: a batch of two.
// CHECK-LABEL: func.func @images
// CHECK-SAME: (%[[Q:.*]]: tensor<1x6x4x8xf32>, %[[K:.*]]: tensor<1x6x2x8xf32>, %[[V:.*]]: tensor<1x6x2x5xf32>)
// CHECK-NOT: oriel.slice
// CHECK-DAG: %[[Q2:.*]] = oriel.reshape %[[Q]] : (tensor<1x6x4x8xf32>) -> tensor<2x3x4x8xf32>
// CHECK-DAG: %[[K2:.*]] = oriel.reshape %[[K]] : (tensor<1x6x2x8xf32>) -> tensor<2x3x2x8xf32>
// CHECK-DAG: %[[V2:.*]] = oriel.reshape %[[V]] : (tensor<1x6x2x5xf32>) -> tensor<2x3x2x5xf32>
// CHECK: %[[Y2:.*]], %{{.*}} = oriel.attention %[[Q2]], %[[K2]], %[[V2]] {scale = 2.500000e-01 : f64, sequence_first = true}
// CHECK: %[[Y:.*]] = oriel.reshape %[[Y2]] : (tensor<2x3x4x5xf32>) -> tensor<1x6x4x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @images(%q: tensor<1x6x4x8xf32>, %k: tensor<1x6x2x8xf32>, %v: tensor<1x6x2x5xf32>) -> tensor<1x6x4x5xf32> {
  %q0 = oriel.slice %q {limits = array<i64: 1, 3, 4, 8>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x4x8xf32>) -> tensor<1x3x4x8xf32>
  %k0 = oriel.slice %k {limits = array<i64: 1, 3, 2, 8>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x2x8xf32>) -> tensor<1x3x2x8xf32>
  %v0 = oriel.slice %v {limits = array<i64: 1, 3, 2, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x2x5xf32>) -> tensor<1x3x2x5xf32>
  %y0, %l0 = oriel.attention %q0, %k0, %v0 {scale = 0.25, sequence_first = true} : (tensor<1x3x4x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x5xf32>) -> (tensor<1x3x4x5xf32>, tensor<1x4x3xf32>)
  %q1 = oriel.slice %q {limits = array<i64: 1, 6, 4, 8>, starts = array<i64: 0, 3, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x4x8xf32>) -> tensor<1x3x4x8xf32>
  %k1 = oriel.slice %k {limits = array<i64: 1, 6, 2, 8>, starts = array<i64: 0, 3, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x2x8xf32>) -> tensor<1x3x2x8xf32>
  %v1 = oriel.slice %v {limits = array<i64: 1, 6, 2, 5>, starts = array<i64: 0, 3, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x6x2x5xf32>) -> tensor<1x3x2x5xf32>
  %y1, %l1 = oriel.attention %q1, %k1, %v1 {scale = 0.25, sequence_first = true} : (tensor<1x3x4x8xf32>, tensor<1x3x2x8xf32>, tensor<1x3x2x5xf32>) -> (tensor<1x3x4x5xf32>, tensor<1x4x3xf32>)
  %y = oriel.concat %y0, %y1 {dim = 1 : i64} : (tensor<1x3x4x5xf32>, tensor<1x3x4x5xf32>) -> tensor<1x6x4x5xf32>
  return %y : tensor<1x6x4x5xf32>
}

// -----

// Windows of 2, 2 and 1, causal, of two samples, under one mask: those of one size, of each sample.
// CHECK-LABEL: func.func @windows
// CHECK-SAME: (%[[X:.*]]: tensor<2x5x1x4xf32>, %[[M:.*]]: tensor<1x1x1x2xf32>)
// CHECK: %[[S:.*]] = oriel.slice %[[X]] {limits = array<i64: 2, 4, 1, 4>, starts = array<i64: 0, 0, 0, 0>
// CHECK: %[[B:.*]] = oriel.reshape %[[S]] : (tensor<2x4x1x4xf32>) -> tensor<4x2x1x4xf32>
// CHECK: %[[Y2:.*]], %{{.*}} = oriel.attention %[[B]], %[[B]], %[[B]], %[[M]] {causal = true
// CHECK: %[[R:.*]], %{{.*}} = oriel.attention
// CHECK: %[[Y:.*]] = oriel.reshape %[[Y2]] : (tensor<4x2x1x4xf32>) -> tensor<2x4x1x4xf32>
// CHECK: oriel.concat %[[Y]], %[[R]] {dim = 1 : i64}
func.func @windows(%x: tensor<2x5x1x4xf32>, %m: tensor<1x1x1x2xf32>) -> tensor<2x5x1x4xf32> {
  %0 = oriel.slice %x {limits = array<i64: 2, 2, 1, 4>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x5x1x4xf32>) -> tensor<2x2x1x4xf32>
  %1 = oriel.slice %x {limits = array<i64: 2, 4, 1, 4>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x5x1x4xf32>) -> tensor<2x2x1x4xf32>
  %2 = oriel.slice %x {limits = array<i64: 2, 5, 1, 4>, starts = array<i64: 0, 4, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x5x1x4xf32>) -> tensor<2x1x1x4xf32>
  %y0, %l0 = oriel.attention %0, %0, %0, %m {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>, tensor<1x1x1x2xf32>) -> (tensor<2x2x1x4xf32>, tensor<2x1x2xf32>)
  %y1, %l1 = oriel.attention %1, %1, %1, %m {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>, tensor<1x1x1x2xf32>) -> (tensor<2x2x1x4xf32>, tensor<2x1x2xf32>)
  %y2, %l2 = oriel.attention %2, %2, %2 {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> (tensor<2x1x1x4xf32>, tensor<2x1x1xf32>)
  %y = oriel.concat %y0, %y1, %y2 {dim = 1 : i64} : (tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x5x1x4xf32>
  return %y : tensor<2x5x1x4xf32>
}

// -----

// The other way round, with another scale: one by one. Positions one by one, with one head, are as
// many heads, for which a mask of each sample will do.
// CHECK-LABEL: func.func @not_a_batch
// CHECK-SAME: (%{{.*}}: tensor<2x4x1x4xf32>, %[[M:.*]]: tensor<2x1x1x1xf32>)
// CHECK-COUNT-2: oriel.attention %{{.*}} : (tensor<2x1x1x4xf32>
// CHECK: oriel.attention %{{.*}}, %[[M]] {{.*}} : (tensor<2x1x2x4xf32>
func.func @not_a_batch(%x: tensor<2x4x1x4xf32>, %m: tensor<2x1x1x1xf32>) -> (tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 2, 1, 1, 4>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x1x4xf32>) -> tensor<2x1x1x4xf32>
  %1 = oriel.slice %x {limits = array<i64: 2, 2, 1, 4>, starts = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x1x4xf32>) -> tensor<2x1x1x4xf32>
  %2 = oriel.slice %x {limits = array<i64: 2, 3, 1, 4>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x1x4xf32>) -> tensor<2x1x1x4xf32>
  %3 = oriel.slice %x {limits = array<i64: 2, 4, 1, 4>, starts = array<i64: 0, 3, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x1x4xf32>) -> tensor<2x1x1x4xf32>
  %y0, %l0 = oriel.attention %0, %0, %0 {scale = 0.5, sequence_first = true} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> (tensor<2x1x1x4xf32>, tensor<2x1x1xf32>)
  %y1, %l1 = oriel.attention %1, %1, %1 {scale = 0.25, sequence_first = true} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> (tensor<2x1x1x4xf32>, tensor<2x1x1xf32>)
  %y2, %l2 = oriel.attention %2, %2, %2, %m {scale = 0.25, sequence_first = true} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x1xf32>) -> (tensor<2x1x1x4xf32>, tensor<2x1x1xf32>)
  %y3, %l3 = oriel.attention %3, %3, %3, %m {scale = 0.25, sequence_first = true} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>, tensor<2x1x1x1xf32>) -> (tensor<2x1x1x4xf32>, tensor<2x1x1xf32>)
  %a = oriel.concat %y1, %y0 {dim = 1 : i64} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x2x1x4xf32>
  %b = oriel.concat %y2, %y3 {dim = 1 : i64} : (tensor<2x1x1x4xf32>, tensor<2x1x1x4xf32>) -> tensor<2x2x1x4xf32>
  return %a, %b : tensor<2x2x1x4xf32>, tensor<2x2x1x4xf32>
}

// -----

// The rows of each of two images by the same order, of pairs: no row goes to another image.
// CHECK-LABEL: func.func @rows_of_images
// CHECK-SAME: (%[[X:.*]]: tensor<3x8x5xf32>)
// CHECK-DAG: %[[I:.*]] = oriel.constant {value = dense<[2, 0, 3, 1]> : tensor<4xi64>}
// CHECK-DAG: %[[S:.*]] = oriel.reshape %[[X]] : (tensor<3x8x5xf32>) -> tensor<3x2x4x5xf32>
// CHECK: %[[G:.*]] = oriel.gather %[[S]], %[[I]] {dim = 2 : i64} : (tensor<3x2x4x5xf32>, tensor<4xi64>) -> tensor<3x2x4x5xf32>
// CHECK: %[[Y:.*]] = oriel.reshape %[[G]] : (tensor<3x2x4x5xf32>) -> tensor<3x8x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @rows_of_images(%x: tensor<3x8x5xf32>) -> tensor<3x8x5xf32> {
  %i = oriel.constant {value = dense<[2, 0, 3, 1, 6, 4, 7, 5]> : tensor<8xi64>} : () -> tensor<8xi64>
  %y = oriel.gather %x, %i {dim = 1 : i64} : (tensor<3x8x5xf32>, tensor<8xi64>) -> tensor<3x8x5xf32>
  return %y : tensor<3x8x5xf32>
}

// -----

// Of each three rows two; all rows in order; rows that change images.
// CHECK-LABEL: func.func @other_rows
// CHECK-SAME: (%[[X:.*]]: tensor<6x5xf32>)
// CHECK-DAG: %[[S:.*]] = oriel.reshape %[[X]] : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
// CHECK-DAG: %[[I:.*]] = oriel.constant {value = dense<[0, 2]> : tensor<2xi64>}
// CHECK: %[[G:.*]] = oriel.gather %[[S]], %[[I]] {dim = 1 : i64} : (tensor<2x3x5xf32>, tensor<2xi64>) -> tensor<2x2x5xf32>
// CHECK: %[[Y:.*]] = oriel.reshape %[[G]] : (tensor<2x2x5xf32>) -> tensor<4x5xf32>
// CHECK: %[[Z:.*]] = oriel.gather %[[X]], %{{.*}} {dim = 0 : i64} : (tensor<6x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
// CHECK-NEXT: return %[[Y]], %[[X]], %[[Z]]
func.func @other_rows(%x: tensor<6x5xf32>) -> (tensor<4x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>) {
  %i = oriel.constant {value = dense<[0, 2, 3, 5]> : tensor<4xi64>} : () -> tensor<4xi64>
  %j = oriel.constant {value = dense<[0, 1, 2, 3, 4, 5]> : tensor<6xi64>} : () -> tensor<6xi64>
  %k = oriel.constant {value = dense<[0, 1, 3, 2, 4, 5]> : tensor<6xi64>} : () -> tensor<6xi64>
  %0 = oriel.gather %x, %i {dim = 0 : i64} : (tensor<6x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  %1 = oriel.gather %x, %j {dim = 0 : i64} : (tensor<6x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
  %2 = oriel.gather %x, %k {dim = 0 : i64} : (tensor<6x5xf32>, tensor<6xi64>) -> tensor<6x5xf32>
  return %0, %1, %2 : tensor<4x5xf32>, tensor<6x5xf32>, tensor<6x5xf32>
}

// -----

// Pairs of rows, of each image alike.
// CHECK-LABEL: func.func @pairs
// CHECK-SAME: (%[[X:.*]]: tensor<6x5xf32>)
// CHECK-DAG: %[[I:.*]] = oriel.constant {value = dense<{{\[\[}}0, 2], [1, 2{{\]\]}}> : tensor<2x2xi64>}
// CHECK-DAG: %[[S:.*]] = oriel.reshape %[[X]] : (tensor<6x5xf32>) -> tensor<2x3x5xf32>
// CHECK: %[[G:.*]] = oriel.gather %[[S]], %[[I]] {dim = 1 : i64} : (tensor<2x3x5xf32>, tensor<2x2xi64>) -> tensor<2x2x2x5xf32>
// CHECK: %[[Y:.*]] = oriel.reshape %[[G]] : (tensor<2x2x2x5xf32>) -> tensor<4x2x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @pairs(%x: tensor<6x5xf32>) -> tensor<4x2x5xf32> {
  %i = oriel.constant {value = dense<[[0, 2], [1, 2], [3, 5], [4, 5]]> : tensor<4x2xi64>} : () -> tensor<4x2xi64>
  %y = oriel.gather %x, %i {dim = 0 : i64} : (tensor<6x5xf32>, tensor<4x2xi64>) -> tensor<4x2x5xf32>
  return %y : tensor<4x2x5xf32>
}
