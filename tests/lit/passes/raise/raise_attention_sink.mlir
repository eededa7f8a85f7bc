// One more score of each head, whose probability is dropped, is the sink of an attention.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention,canonicalize,oriel-raise-layout,canonicalize))" --split-input-file | FileCheck %s

// As GPT-OSS has it: behind the masked scores. A row that the mask hides altogether sees the sink.
// CHECK-LABEL: func.func @learned
// CHECK-SAME: %[[SINK:[a-z0-9]*]]: tensor<4xf32>) ->
// CHECK-NEXT: %[[A:.*]], %{{.*}} = oriel.attention %{{.*}}, %{{.*}}, %{{.*}} sink %[[SINK]] {causal = true, scale = 5.000000e-01 : f64}
// CHECK-NEXT: return %[[A]]
func.func @learned(%q: tensor<2x4x3x8xf32>, %k: tensor<2x4x3x8xf32>, %v: tensor<2x4x3x8xf32>, %sinks: tensor<4xf32>) -> tensor<2x4x3x8xf32> {
  %scale = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %mask = oriel.constant {value = dense<[[0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0]]> : tensor<3x3xf32>} : () -> tensor<3x3xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x4x3x8xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x3xf32>
  %1 = oriel.mul %0, %scale : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %2 = oriel.add %1, %mask : (tensor<2x4x3x3xf32>, tensor<3x3xf32>) -> tensor<2x4x3x3xf32>
  %3 = oriel.reshape %sinks : (tensor<4xf32>) -> tensor<1x4x1x1xf32>
  %4 = oriel.broadcast %3 : (tensor<1x4x1x1xf32>) -> tensor<2x4x3x1xf32>
  %5 = oriel.concat %2, %4 {dim = 3 : i64} : (tensor<2x4x3x3xf32>, tensor<2x4x3x1xf32>) -> tensor<2x4x3x4xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<2x4x3x4xf32>) -> tensor<2x4x3x4xf32>
  %7 = oriel.slice %6 {limits = array<i64: 2, 4, 3, 3>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x3x4xf32>) -> tensor<2x4x3x3xf32>
  %8 = oriel.matmul %7, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
  return %8 : tensor<2x4x3x8xf32>
}

// -----

// The same number for all heads, in front of the scores, whose mask may hide rows altogether: these
// have the result 0, and no mean of values.
// CHECK-LABEL: func.func @number_in_front
// CHECK: %[[SINK:.*]] = oriel.constant {value = dense<0.000000e+00> : tensor<4xf32>}
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} sink %[[SINK]] {scale
// CHECK-NOT: oriel.reduce_mean
func.func @number_in_front(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.broadcast %zero : (tensor<f32>) -> tensor<1x4x2x1xf32>
  %3 = oriel.concat %2, %1 {dim = 3 : i64} : (tensor<1x4x2x1xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x3xf32>
  %4 = oriel.softmax %3 {dim = 3 : i64} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  %5 = oriel.slice %4 {limits = array<i64: 1, 4, 2, 3>, starts = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x2xf32>
  %6 = oriel.matmul %5, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %6 : tensor<1x4x2x8xf32>
}

// -----

// A folded table of a number for each head.
// CHECK-LABEL: func.func @table
// CHECK: %[[SINK:.*]] = oriel.constant {value = dense<[5.000000e-01, -1.000000e+00]> : tensor<2xf32>}
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}} sink %[[SINK]] {scale
func.func @table(%q: tensor<2x2x2x8xf32>, %k: tensor<2x2x2x8xf32>, %v: tensor<2x2x2x8xf32>) -> tensor<2x2x2x8xf32> {
  %column = oriel.constant {value = dense<[[[[0.5], [0.5]], [[-1.0], [-1.0]]], [[[0.5], [0.5]], [[-1.0], [-1.0]]]]> : tensor<2x2x2x1xf32>} : () -> tensor<2x2x2x1xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x2x2x8xf32>, tensor<2x2x2x8xf32>) -> tensor<2x2x2x2xf32>
  %1 = oriel.concat %0, %column {dim = 3 : i64} : (tensor<2x2x2x2xf32>, tensor<2x2x2x1xf32>) -> tensor<2x2x2x3xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<2x2x2x3xf32>) -> tensor<2x2x2x3xf32>
  %3 = oriel.slice %2 {limits = array<i64: 2, 2, 2, 2>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x2x2x3xf32>) -> tensor<2x2x2x2xf32>
  %4 = oriel.matmul %3, %v : (tensor<2x2x2x2xf32>, tensor<2x2x2x8xf32>) -> tensor<2x2x2x8xf32>
  return %4 : tensor<2x2x2x8xf32>
}

// -----

// A sink as low as what the mask hides: rows that see nothing would be shared by all keys.
// CHECK-LABEL: func.func @hidden
// CHECK-NOT: oriel.attention
func.func @hidden(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %none = oriel.constant {value = dense<0xFF800000> : tensor<1x4x2x1xf32>} : () -> tensor<1x4x2x1xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.concat %1, %none {dim = 3 : i64} : (tensor<1x4x2x2xf32>, tensor<1x4x2x1xf32>) -> tensor<1x4x2x3xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  %4 = oriel.slice %3 {limits = array<i64: 1, 4, 2, 2>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x2xf32>
  %5 = oriel.matmul %4, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %5 : tensor<1x4x2x8xf32>
}

// -----

// As `F.pad(scores, (0, 1))` has it; queries of a key's head are a dimension of their own.
// CHECK-LABEL: func.func @padded
// CHECK: %[[SINK:.*]] = oriel.constant {value = dense<0.000000e+00> : tensor<4xf32>}
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}} sink %[[SINK]] {scale
func.func @padded(%q: tensor<2x2x2x3x8xf32>, %k: tensor<2x2x3x8xf32>, %v: tensor<2x2x3x8xf32>) -> tensor<2x2x2x3x8xf32> {
  %0 = oriel.reshape %k : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
  %1 = oriel.broadcast %0 : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %2 = oriel.reshape %v : (tensor<2x2x3x8xf32>) -> tensor<2x2x1x3x8xf32>
  %3 = oriel.broadcast %2 : (tensor<2x2x1x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  %4 = oriel.matmul %q, %1 {transpose_rhs = true} : (tensor<2x2x2x3x8xf32>, tensor<2x2x2x3x8xf32>) -> tensor<2x2x2x3x3xf32>
  %5 = oriel.pad %4 {high = array<i64: 0, 0, 0, 0, 1>, interior = array<i64: 0, 0, 0, 0, 0>, low = array<i64: 0, 0, 0, 0, 0>} : (tensor<2x2x2x3x3xf32>) -> tensor<2x2x2x3x4xf32>
  %6 = oriel.softmax %5 {dim = 4 : i64} : (tensor<2x2x2x3x4xf32>) -> tensor<2x2x2x3x4xf32>
  %7 = oriel.slice %6 {limits = array<i64: 2, 2, 2, 3, 3>, starts = array<i64: 0, 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<2x2x2x3x4xf32>) -> tensor<2x2x2x3x3xf32>
  %8 = oriel.matmul %7, %3 : (tensor<2x2x2x3x3xf32>, tensor<2x2x2x3x8xf32>) -> tensor<2x2x2x3x8xf32>
  return %8 : tensor<2x2x2x3x8xf32>
}

// -----

// A column that differs between queries is no sink, and neither is one whose probability weighs a
// value.
// CHECK-LABEL: func.func @of_queries
// CHECK-NOT: oriel.attention
func.func @of_queries(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %column: tensor<2x1xf32>) -> tensor<1x4x2x8xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.broadcast %column : (tensor<2x1xf32>) -> tensor<1x4x2x1xf32>
  %2 = oriel.concat %0, %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>, tensor<1x4x2x1xf32>) -> tensor<1x4x2x3xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  %4 = oriel.slice %3 {limits = array<i64: 1, 4, 2, 2>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x2xf32>
  %5 = oriel.matmul %4, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %5 : tensor<1x4x2x8xf32>
}

// CHECK-LABEL: func.func @used
// CHECK-NOT: oriel.attention
func.func @used(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %sinks: tensor<4x1x1xf32>) -> tensor<1x4x2x8xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.broadcast %sinks : (tensor<4x1x1xf32>) -> tensor<1x4x2x1xf32>
  %2 = oriel.concat %0, %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>, tensor<1x4x2x1xf32>) -> tensor<1x4x2x3xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x3xf32>
  %4 = oriel.slice %3 {limits = array<i64: 1, 4, 2, 3>, starts = array<i64: 0, 0, 0, 1>, strides = array<i64: 1, 1, 1, 1>} : (tensor<1x4x2x3xf32>) -> tensor<1x4x2x2xf32>
  %5 = oriel.matmul %4, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %5 : tensor<1x4x2x8xf32>
}
