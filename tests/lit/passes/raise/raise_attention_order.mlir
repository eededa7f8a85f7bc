// Scores in an order of the model's own. Those of groups of queries that share keys get their heads
// in one dimension.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention,canonicalize,oriel-raise-layout,canonicalize))" --split-input-file | FileCheck %s

// BTNH,BSNH->BTNS and BTNS,BSNH->BTNH: queries before heads.
// CHECK-LABEL: func.func @queries_before_heads
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x4x8xf32>, %[[K:.*]]: tensor<2x3x4x8xf32>, %[[V:.*]]: tensor<2x3x4x8xf32>)
// CHECK: %[[A:.*]], %{{.*}} = oriel.attention %[[Q]], %[[K]], %[[V]] {causal = true, scale = 1.000000e+00 : f64, sequence_first = true} :
// CHECK-NEXT: return %[[A]]
func.func @queries_before_heads(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32> {
  %low = oriel.constant {value = dense<-2.38197633E+38> : tensor<f32>} : () -> tensor<f32>
  %keep = oriel.constant {value = dense<[[[[true, false, false]], [[true, true, false]], [[true, true, true]]]]> : tensor<1x3x1x3xi1>} : () -> tensor<1x3x1x3xi1>
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  %1 = oriel.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x8x3xf32>
  %2 = oriel.matmul %0, %1 : (tensor<2x4x3x8xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x3x3xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x3xf32>) -> tensor<2x3x4x3xf32>
  %4 = oriel.select %keep, %3, %low : (tensor<1x3x1x3xi1>, tensor<2x3x4x3xf32>, tensor<f32>) -> tensor<2x3x4x3xf32>
  %5 = oriel.softmax %4 {dim = 3 : i64} : (tensor<2x3x4x3xf32>) -> tensor<2x3x4x3xf32>
  %6 = oriel.transpose %5 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x3xf32>) -> tensor<2x4x3x3xf32>
  %7 = oriel.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  %8 = oriel.matmul %6, %7 : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  %9 = oriel.transpose %8 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x8xf32>) -> tensor<2x3x4x8xf32>
  return %9 : tensor<2x3x4x8xf32>
}

// -----

// BTKGH,BSKH->BKTGS and BKGTS,BSKH->BTKGH, with a mask of each sample.
// CHECK-LABEL: func.func @groups_of_queries
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x2x4x8xf32>, %[[K:.*]]: tensor<2x3x2x8xf32>, %[[V:.*]]: tensor<2x3x2x8xf32>, %{{.*}}: tensor<2x1x1x3x3xi1>)
// CHECK: %[[HEADS:.*]] = oriel.reshape %[[Q]] : (tensor<2x3x2x4x8xf32>) -> tensor<2x3x8x8xf32>
// CHECK: oriel.attention %[[HEADS]], %[[K]], %[[V]], %{{.*}} {scale = 1.000000e+00 : f64, sequence_first = true} :
// CHECK-NOT: oriel.transpose
func.func @groups_of_queries(%q: tensor<2x3x2x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x8xf32>, %keep: tensor<2x1x1x3x3xi1>) -> tensor<2x3x2x4x8xf32> {
  %low = oriel.constant {value = dense<-2.38197633E+38> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x3x2x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %1 = oriel.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x2x8xf32>) -> tensor<2x2x8x3xf32>
  %2 = oriel.matmul %0, %1 {row_dims = 2 : i64} : (tensor<2x2x3x4x8xf32>, tensor<2x2x8x3xf32>) -> tensor<2x2x3x4x3xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 0, 1, 3, 2, 4>} : (tensor<2x2x3x4x3xf32>) -> tensor<2x2x4x3x3xf32>
  %4 = oriel.select %keep, %3, %low : (tensor<2x1x1x3x3xi1>, tensor<2x2x4x3x3xf32>, tensor<f32>) -> tensor<2x2x4x3x3xf32>
  %5 = oriel.softmax %4 {dim = 4 : i64} : (tensor<2x2x4x3x3xf32>) -> tensor<2x2x4x3x3xf32>
  %6 = oriel.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x2x8xf32>) -> tensor<2x2x3x8xf32>
  %7 = oriel.matmul %5, %6 {row_dims = 2 : i64} : (tensor<2x2x4x3x3xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x4x3x8xf32>
  %8 = oriel.transpose %7 {permutation = array<i64: 0, 3, 1, 2, 4>} : (tensor<2x2x4x3x8xf32>) -> tensor<2x3x2x4x8xf32>
  return %8 : tensor<2x3x2x4x8xf32>
}

// -----

// BTKGH,BSKH->BTKGS and BTKGS,BSKH->BTKGH, capped: which of the rows are queries, the mask says.
// CHECK-LABEL: func.func @queries_before_groups
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x2x4x8xf32>, %[[K:.*]]: tensor<2x3x2x8xf32>, %[[V:.*]]: tensor<2x3x2x8xf32>)
// CHECK: %[[HEADS:.*]] = oriel.reshape %[[Q]] : (tensor<2x3x2x4x8xf32>) -> tensor<2x3x8x8xf32>
// CHECK: oriel.attention %[[HEADS]], %[[K]], %[[V]] {causal = true, scale = 1.000000e+00 : f64, sequence_first = true, softcap = 5.000000e+01 : f64} :
// CHECK-NOT: oriel.transpose
func.func @queries_before_groups(%q: tensor<2x3x2x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x8xf32>) -> tensor<2x3x2x4x8xf32> {
  %low = oriel.constant {value = dense<-2.38197633E+38> : tensor<f32>} : () -> tensor<f32>
  %cap = oriel.constant {value = dense<5.0e+1> : tensor<f32>} : () -> tensor<f32>
  %keep = oriel.constant {value = dense<[[[[true, false, false]]], [[[true, true, false]]], [[[true, true, true]]]]> : tensor<3x1x1x3xi1>} : () -> tensor<3x1x1x3xi1>
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x3x2x4x8xf32>) -> tensor<2x2x3x4x8xf32>
  %1 = oriel.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x2x8xf32>) -> tensor<2x2x8x3xf32>
  %2 = oriel.matmul %0, %1 {row_dims = 2 : i64} : (tensor<2x2x3x4x8xf32>, tensor<2x2x8x3xf32>) -> tensor<2x2x3x4x3xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x2x3x4x3xf32>) -> tensor<2x3x2x4x3xf32>
  %4 = oriel.div %3, %cap : (tensor<2x3x2x4x3xf32>, tensor<f32>) -> tensor<2x3x2x4x3xf32>
  %5 = oriel.tanh %4 : (tensor<2x3x2x4x3xf32>) -> tensor<2x3x2x4x3xf32>
  %6 = oriel.mul %5, %cap : (tensor<2x3x2x4x3xf32>, tensor<f32>) -> tensor<2x3x2x4x3xf32>
  %7 = oriel.select %keep, %6, %low : (tensor<3x1x1x3xi1>, tensor<2x3x2x4x3xf32>, tensor<f32>) -> tensor<2x3x2x4x3xf32>
  %8 = oriel.softmax %7 {dim = 4 : i64} : (tensor<2x3x2x4x3xf32>) -> tensor<2x3x2x4x3xf32>
  %9 = oriel.transpose %8 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x3x2x4x3xf32>) -> tensor<2x2x3x4x3xf32>
  %10 = oriel.transpose %v {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x2x8xf32>) -> tensor<2x2x3x8xf32>
  %11 = oriel.matmul %9, %10 {row_dims = 2 : i64} : (tensor<2x2x3x4x3xf32>, tensor<2x2x3x8xf32>) -> tensor<2x2x3x4x8xf32>
  %12 = oriel.transpose %11 {permutation = array<i64: 0, 2, 1, 3, 4>} : (tensor<2x2x3x4x8xf32>) -> tensor<2x3x2x4x8xf32>
  return %12 : tensor<2x3x2x4x8xf32>
}

// -----

// Keys times queries, transposed.
// CHECK-LABEL: func.func @keys_first
// CHECK-SAME: (%[[Q:.*]]: tensor<1x4x3x8xf32>, %[[K:.*]]: tensor<1x4x5x8xf32>, %[[V:.*]]: tensor<1x4x5x8xf32>)
// CHECK: oriel.attention %[[Q]], %[[K]], %[[V]] {scale = 5.000000e-01 : f64} :
func.func @keys_first(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x5x8xf32>, %v: tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %k, %q {transpose_rhs = true} : (tensor<1x4x5x8xf32>, tensor<1x4x3x8xf32>) -> tensor<1x4x5x3xf32>
  %1 = oriel.mul %0, %half : (tensor<1x4x5x3xf32>, tensor<f32>) -> tensor<1x4x5x3xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 1, 3, 2>} : (tensor<1x4x5x3xf32>) -> tensor<1x4x3x5xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x4x3x5xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %4 : tensor<1x4x3x8xf32>
}

// -----

// A bias that is scaled with the scores.
// CHECK-LABEL: func.func @scaled_bias
// CHECK: %[[HALF:.*]] = oriel.constant {value = dense<5.000000e-01> : tensor<f32>}
// CHECK: %[[B:.*]] = oriel.mul %{{.*}}, %[[HALF]] : (tensor<1x4x1x5xf32>, tensor<f32>)
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[B]] {scale = 5.000000e-01 : f64} :
func.func @scaled_bias(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x5x8xf32>, %v: tensor<1x4x5x8xf32>, %bias: tensor<1x4x1x5xf32>) -> tensor<1x4x3x8xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x3x8xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x5xf32>
  %1 = oriel.add %0, %bias : (tensor<1x4x3x5xf32>, tensor<1x4x1x5xf32>) -> tensor<1x4x3x5xf32>
  %2 = oriel.mul %1, %half : (tensor<1x4x3x5xf32>, tensor<f32>) -> tensor<1x4x3x5xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x4x3x5xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x8xf32>
  return %4 : tensor<1x4x3x8xf32>
}

// -----

// What splits heads and their columns anew is no order of groups.
// CHECK-LABEL: func.func @other_heads
// CHECK: oriel.attention
// CHECK: oriel.reshape %{{.*}} -> tensor<2x4x2x6x2xf32>
// CHECK: oriel.transpose
func.func @other_heads(%q: tensor<2x4x6x4xf32>, %k: tensor<2x4x6x4xf32>, %v: tensor<2x4x6x4xf32>) -> tensor<2x6x4x2x2xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x4x6x4xf32>, tensor<2x4x6x4xf32>) -> tensor<2x4x6x6xf32>
  %1 = oriel.softmax %0 {dim = 3 : i64} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = oriel.matmul %1, %v : (tensor<2x4x6x6xf32>, tensor<2x4x6x4xf32>) -> tensor<2x4x6x4xf32>
  %3 = oriel.reshape %2 : (tensor<2x4x6x4xf32>) -> tensor<2x4x2x6x2xf32>
  %4 = oriel.transpose %3 {permutation = array<i64: 0, 3, 1, 2, 4>} : (tensor<2x4x2x6x2xf32>) -> tensor<2x6x4x2x2xf32>
  return %4 : tensor<2x6x4x2x2xf32>
}

// -----

// Values times probabilities.
// CHECK-LABEL: func.func @values_first
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.000000e+00 : f64
// CHECK-NOT: oriel.matmul
func.func @values_first(%q: tensor<1x4x3x8xf32>, %k: tensor<1x4x5x8xf32>, %v: tensor<1x4x8x5xf32>) -> tensor<1x4x8x3xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x3x8xf32>, tensor<1x4x5x8xf32>) -> tensor<1x4x3x5xf32>
  %1 = oriel.softmax %0 {dim = 3 : i64} : (tensor<1x4x3x5xf32>) -> tensor<1x4x3x5xf32>
  %2 = oriel.matmul %v, %1 {transpose_rhs = true} : (tensor<1x4x8x5xf32>, tensor<1x4x3x5xf32>) -> tensor<1x4x8x3xf32>
  return %2 : tensor<1x4x8x3xf32>
}

// -----

// Of a batch in two dimensions the positions lie between these: no groups of heads.
// CHECK-LABEL: func.func @batch_in_two
// CHECK-SAME: (%{{.*}}: tensor<4x8x5x8xf32>, %[[K:.*]]: tensor<2x3x2x4x8xf32>
// CHECK: %[[T:.*]] = oriel.transpose %[[K]] {permutation = array<i64: 0, 2, 3, 1, 4>}
// CHECK: %[[KEYS:.*]] = oriel.reshape %[[T]] : (tensor<2x2x4x3x8xf32>) -> tensor<4x4x3x8xf32>
// CHECK: oriel.attention %{{.*}}, %[[KEYS]], %{{.*}}
func.func @batch_in_two(%q: tensor<4x8x5x8xf32>, %k: tensor<2x3x2x4x8xf32>, %v: tensor<4x4x3x8xf32>) -> tensor<4x8x5x8xf32> {
  %0 = oriel.transpose %k {permutation = array<i64: 0, 2, 3, 1, 4>} : (tensor<2x3x2x4x8xf32>) -> tensor<2x2x4x3x8xf32>
  %1 = oriel.reshape %0 : (tensor<2x2x4x3x8xf32>) -> tensor<4x4x1x3x8xf32>
  %2 = oriel.broadcast %1 : (tensor<4x4x1x3x8xf32>) -> tensor<4x4x2x3x8xf32>
  %3 = oriel.reshape %2 : (tensor<4x4x2x3x8xf32>) -> tensor<4x8x3x8xf32>
  %4 = oriel.reshape %v : (tensor<4x4x3x8xf32>) -> tensor<4x4x1x3x8xf32>
  %5 = oriel.broadcast %4 : (tensor<4x4x1x3x8xf32>) -> tensor<4x4x2x3x8xf32>
  %6 = oriel.reshape %5 : (tensor<4x4x2x3x8xf32>) -> tensor<4x8x3x8xf32>
  %7 = oriel.matmul %q, %3 {transpose_rhs = true} : (tensor<4x8x5x8xf32>, tensor<4x8x3x8xf32>) -> tensor<4x8x5x3xf32>
  %8 = oriel.softmax %7 {dim = 3 : i64} : (tensor<4x8x5x3xf32>) -> tensor<4x8x5x3xf32>
  %9 = oriel.matmul %8, %6 : (tensor<4x8x5x3xf32>, tensor<4x8x3x8xf32>) -> tensor<4x8x5x8xf32>
  return %9 : tensor<4x8x5x8xf32>
}
