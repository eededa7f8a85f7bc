// Scores that are replaced by a large negative number where some queries may see nothing: these get
// the mean of all values, and no cotangent reaches their scores.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention,canonicalize,oriel-raise-layout,canonicalize))" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @where_unknown
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<1x4x2x8xf32>, %[[KEEP:[a-z0-9]*]]: tensor<1x1x2x2xi1>
// CHECK: %[[A:.*]], %{{.*}} = oriel.attention %{{.*}}, %{{.*}}, %[[V]], %[[KEEP]] {scale
// CHECK: %[[MOST:.*]] = oriel.reduce_max %{{.*}} {dims = array<i64: 3>, keep_dims = true}
// CHECK: %[[SEEING:.*]] = oriel.greater %[[MOST]]
// CHECK: %[[MEAN:.*]] = oriel.reduce_mean %[[V]] {dims = array<i64: 2>, keep_dims = true}
// CHECK: oriel.select %[[SEEING]], %[[A]], %[[MEAN]]
func.func @where_unknown(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// Causal, and the first key is padding, so the first query sees nothing. Heads stay behind
// positions, and two of them share a key.
// CHECK-LABEL: func.func @causal_and_padding
// CHECK-SAME: %[[V:[a-z0-9]*]]: tensor<2x3x2x8xf32>, %{{[a-z0-9]*}}: tensor<2x1x1x3xi1>
// CHECK-NOT: oriel.transpose
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %[[V]], %{{.*}} {causal = true, scale = 1.000000e+00 : f64, sequence_first = true}
// CHECK: oriel.reduce_mean %[[V]] {dims = array<i64: 1>, keep_dims = true}
// CHECK-NOT: oriel.transpose
// CHECK: oriel.select %{{.*}} : (tensor<2x3x1x1xi1>, tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>) -> tensor<2x3x4x8xf32>
// CHECK-NOT: oriel.transpose
// CHECK: return
func.func @causal_and_padding(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x2x8xf32>, %v: tensor<2x3x2x8xf32>, %pad: tensor<2x1x1x3xi1>) -> tensor<2x3x4x8xf32> {
  %low = oriel.constant {value = dense<-1.0e9> : tensor<f32>} : () -> tensor<f32>
  %causal = oriel.constant {value = dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>} : () -> tensor<3x3xi1>
  %first = oriel.constant {value = dense<[[[[false, true, true]]]]> : tensor<1x1x1x3xi1>} : () -> tensor<1x1x1x3xi1>
  %padding = oriel.and %pad, %first : (tensor<2x1x1x3xi1>, tensor<1x1x1x3xi1>) -> tensor<2x1x1x3xi1>
  %keep = oriel.and %causal, %padding : (tensor<3x3xi1>, tensor<2x1x1x3xi1>) -> tensor<2x1x3x3xi1>
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  %1 = oriel.reshape %k : (tensor<2x3x2x8xf32>) -> tensor<2x3x2x1x8xf32>
  %2 = oriel.broadcast %1 : (tensor<2x3x2x1x8xf32>) -> tensor<2x3x2x2x8xf32>
  %3 = oriel.reshape %2 : (tensor<2x3x2x2x8xf32>) -> tensor<2x3x4x8xf32>
  %4 = oriel.transpose %3 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  %5 = oriel.reshape %v : (tensor<2x3x2x8xf32>) -> tensor<2x3x2x1x8xf32>
  %6 = oriel.broadcast %5 : (tensor<2x3x2x1x8xf32>) -> tensor<2x3x2x2x8xf32>
  %7 = oriel.reshape %6 : (tensor<2x3x2x2x8xf32>) -> tensor<2x3x4x8xf32>
  %8 = oriel.transpose %7 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x8xf32>) -> tensor<2x4x3x8xf32>
  %9 = oriel.matmul %0, %4 {transpose_rhs = true} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %10 = oriel.select %keep, %9, %low : (tensor<2x1x3x3xi1>, tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %11 = oriel.softmax %10 {dim = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %12 = oriel.matmul %11, %8 : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  %13 = oriel.transpose %12 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x8xf32>) -> tensor<2x3x4x8xf32>
  return %13 : tensor<2x3x4x8xf32>
}

// -----

// What is added before is replaced with the rest.
// CHECK-LABEL: func.func @biased_before
// CHECK: oriel.attention
// CHECK: oriel.reduce_mean
func.func @biased_before(%q: tensor<1x2x2x8xf32>, %k: tensor<1x2x2x8xf32>, %v: tensor<1x2x2x8xf32>) -> tensor<1x2x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %bias = oriel.constant {value = dense<[[[[0.5, -0.5], [1.0, 0.25]]]]> : tensor<1x1x2x2xf32>} : () -> tensor<1x1x2x2xf32>
  %hide = oriel.constant {value = dense<[[[[true, true], [false, true]]]]> : tensor<1x1x2x2xi1>} : () -> tensor<1x1x2x2xi1>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x2x2xf32>
  %1 = oriel.add %0, %bias : (tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x2x2x2xf32>
  %2 = oriel.select %hide, %low, %1 : (tensor<1x1x2x2xi1>, tensor<f32>, tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x2x2x2xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x2x8xf32>
  return %4 : tensor<1x2x2x8xf32>
}

// -----

// What is added behind them tells the keys of such a query apart.
// CHECK-LABEL: func.func @biased_behind
// CHECK-NOT: oriel.attention
func.func @biased_behind(%q: tensor<1x2x2x8xf32>, %k: tensor<1x2x2x8xf32>, %v: tensor<1x2x2x8xf32>, %keep: tensor<1x1x2x2xi1>, %bias: tensor<1x1x2x2xf32>) -> tensor<1x2x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x2x8xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x2x2x2xf32>, tensor<f32>) -> tensor<1x2x2x2xf32>
  %2 = oriel.add %1, %bias : (tensor<1x2x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x2x2x2xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x2x2x2xf32>) -> tensor<1x2x2x2xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x2x2x2xf32>, tensor<1x2x2x8xf32>) -> tensor<1x2x2x8xf32>
  return %4 : tensor<1x2x2x8xf32>
}

// -----

// Probabilities that the same mask hides again: a row that sees nothing is 0, as attention has it.
// CHECK-LABEL: func.func @hidden_again
// CHECK-SAME: %[[KEEP:[a-z0-9]*]]: tensor<1x1x2x2xi1>
// CHECK: %[[A:.*]], %{{.*}} = oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[KEEP]] {scale
// CHECK-NEXT: return %[[A]]
func.func @hidden_again(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.select %keep, %2, %zero : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %4 : tensor<1x4x2x8xf32>
}

// -----

// Another mask hides probabilities that count in their sum.
// CHECK-LABEL: func.func @others_hidden
// CHECK-NOT: oriel.attention
func.func @others_hidden(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>, %drop: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.select %drop, %zero, %2 : (tensor<1x1x2x2xi1>, tensor<f32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %4 : tensor<1x4x2x8xf32>
}

// -----

// What is added may hide all that the mask shows: then its number counts beside the other's.
// CHECK-LABEL: func.func @hidden_by_both
// CHECK-NOT: oriel.attention
func.func @hidden_by_both(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>, %pad: tensor<1x1x1x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-1.0e9> : tensor<f32>} : () -> tensor<f32>
  %hidden = oriel.cast %pad : (tensor<1x1x1x2xi1>) -> tensor<1x1x1x2xf32>
  %added = oriel.mul %hidden, %low : (tensor<1x1x1x2xf32>, tensor<f32>) -> tensor<1x1x1x2xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.add %0, %added : (tensor<1x4x2x2xf32>, tensor<1x1x1x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.select %keep, %1, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %4 : tensor<1x4x2x8xf32>
}

// -----

// One of two masks hides the probabilities again: the other may hide all that it shows.
// CHECK-LABEL: func.func @one_hidden_again
// CHECK-NOT: oriel.attention
func.func @one_hidden_again(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>, %other: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %other, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.select %keep, %1, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %4 = oriel.select %keep, %3, %zero : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %5 = oriel.matmul %4, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %5 : tensor<1x4x2x8xf32>
}
