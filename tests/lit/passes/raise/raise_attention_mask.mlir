// Masks: causality and windows by tables and by comparisons, and what is left of them.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention))" --split-input-file | FileCheck %s

// Not folded: long sequences have masks that are compared at run time.
// CHECK-LABEL: func.func @comparison_of_positions
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale = 1.000000e+00 : f64} :
func.func @comparison_of_positions(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less_equal %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %1, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %3 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %4 = oriel.add %3, %2 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.softmax %4 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.matmul %5, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %6 : tensor<1x2x4100x4xf32>
}

// -----

// Hidden where the key is later; the lowest number is as good as -infinity, as each query sees itself.
// CHECK-LABEL: func.func @hidden_after_position
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale
func.func @hidden_after_position(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.greater %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %2 = oriel.not %1 : (tensor<4100x4100xi1>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %3 = oriel.select %2, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %4 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.add %4, %3 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %7 : tensor<1x2x4100x4xf32>
}

// -----

// One key more than causality allows.
// CHECK-LABEL: func.func @shifted_by_one
// CHECK: %[[M:.*]] = oriel.reshape %{{.*}} -> tensor<1x1x4100x4100xi1>
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale
func.func @shifted_by_one(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %one = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %1 = oriel.add %0, %one : (tensor<4100x1xi64>, tensor<i64>) -> tensor<4100x1xi64>
  %2 = oriel.less_equal %p, %1 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %3 = oriel.select %2, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %4 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.add %4, %3 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %7 : tensor<1x2x4100x4xf32>
}

// -----

// One key less: the first query sees nothing.
// CHECK-LABEL: func.func @strictly_before
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale
func.func @strictly_before(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %1, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %3 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %4 = oriel.add %3, %2 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.softmax %4 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.matmul %5, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %6 : tensor<1x2x4100x4xf32>
}

// -----

// A window of 3: i - 3 < j <= i.
// CHECK-LABEL: func.func @causal_window
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @causal_window(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less_equal %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %three = oriel.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %2 = oriel.sub %0, %three : (tensor<4100x1xi64>, tensor<i64>) -> tensor<4100x1xi64>
  %3 = oriel.greater %p, %2 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %4 = oriel.and %1, %3 : (tensor<4100x4100xi1>, tensor<4100x4100xi1>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %5 = oriel.select %4, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %6 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.add %6, %5 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %8 = oriel.softmax %7 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %9 = oriel.matmul %8, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %9 : tensor<1x2x4100x4xf32>
}

// -----

// It hides nothing.
// CHECK-LABEL: func.func @window_wider_than_the_sequence
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale = 1.000000e+00 : f64} :
func.func @window_wider_than_the_sequence(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less_equal %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %wide = oriel.constant {value = dense<6400> : tensor<i64>} : () -> tensor<i64>
  %2 = oriel.sub %0, %wide : (tensor<4100x1xi64>, tensor<i64>) -> tensor<4100x1xi64>
  %3 = oriel.greater %p, %2 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %4 = oriel.and %1, %3 : (tensor<4100x4100xi1>, tensor<4100x4100xi1>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %5 = oriel.select %4, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %6 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.add %6, %5 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %8 = oriel.softmax %7 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %9 = oriel.matmul %8, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %9 : tensor<1x2x4100x4xf32>
}

// -----

// The same told by what is hidden: not (j > i or j <= i - 3).
// CHECK-LABEL: func.func @hidden_outside_a_window
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale = 1.000000e+00 : f64, window = 3 : i64}
func.func @hidden_outside_a_window(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.greater %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %three = oriel.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %2 = oriel.sub %0, %three : (tensor<4100x1xi64>, tensor<i64>) -> tensor<4100x1xi64>
  %3 = oriel.less_equal %p, %2 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %4 = oriel.or %1, %3 : (tensor<4100x4100xi1>, tensor<4100x4100xi1>) -> tensor<4100x4100xi1>
  %5 = oriel.not %4 : (tensor<4100x4100xi1>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %6 = oriel.select %5, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %7 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %8 = oriel.add %7, %6 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %9 = oriel.softmax %8 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %10 = oriel.matmul %9, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %10 : tensor<1x2x4100x4xf32>
}

// -----

// Folded: a band below the diagonal, added as numbers.
// CHECK-LABEL: func.func @window_table
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale = 1.000000e+00 : f64, window = 2 : i64}
func.func @window_table(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32> {
  %m = oriel.constant {value = dense<[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [-3.40282347E+38, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [-3.40282347E+38, -3.40282347E+38, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38], [-3.40282347E+38, -3.40282347E+38, -3.40282347E+38, 0.0, 0.0, -3.40282347E+38], [-3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, 0.0, 0.0]]> : tensor<6x6xf32>} : () -> tensor<6x6xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = oriel.add %0, %m : (tensor<1x2x6x6xf32>, tensor<6x6xf32>) -> tensor<1x2x6x6xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %3 : tensor<1x2x6x4xf32>
}

// -----

// Not a band: the mask stays.
// CHECK-LABEL: func.func @table_with_a_hole
// CHECK: %[[M:.*]] = oriel.constant {{.*}} tensor<1x1x6x6xi1>
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale
func.func @table_with_a_hole(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32> {
  %m = oriel.constant {value = dense<[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf32>} : () -> tensor<6x6xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = oriel.add %0, %m : (tensor<1x2x6x6xf32>, tensor<6x6xf32>) -> tensor<1x2x6x6xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %3 : tensor<1x2x6x4xf32>
}

// -----

// What is left beside causality is the padding of keys.
// CHECK-LABEL: func.func @causal_and_padding
// CHECK-SAME: %[[PAD:[a-z0-9]*]]: tensor<1x1x1x4100xi1>
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[PAD]] {causal = true, scale
func.func @causal_and_padding(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>, %pad: tensor<1x1x1x4100xi1>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less_equal %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %2 = oriel.and %1, %pad : (tensor<4100x4100xi1>, tensor<1x1x1x4100xi1>) -> tensor<1x1x4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %3 = oriel.select %2, %zero, %low : (tensor<1x1x4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x4100x4100xf32>
  %4 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.add %4, %3 : (tensor<1x2x4100x4100xf32>, tensor<1x1x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %7 : tensor<1x2x4100x4xf32>
}

// -----

// A query that sees nothing but padding attends to all keys then: no boolean mask does.
// CHECK-LABEL: func.func @causal_and_padding_by_the_lowest_number
// CHECK: %[[M:.*]] = oriel.select
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale
func.func @causal_and_padding_by_the_lowest_number(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>, %pad: tensor<1x1x1x4100xi1>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less_equal %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %2 = oriel.and %1, %pad : (tensor<4100x4100xi1>, tensor<1x1x1x4100xi1>) -> tensor<1x1x4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %3 = oriel.select %2, %zero, %low : (tensor<1x1x4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x4100x4100xf32>
  %4 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.add %4, %3 : (tensor<1x2x4100x4100xf32>, tensor<1x1x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %7 : tensor<1x2x4100x4xf32>
}

// -----

// masked_fill with a comparison.
// CHECK-LABEL: func.func @replaced_by_position
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale
func.func @replaced_by_position(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %1 = oriel.less %0, %p : (tensor<4100x1xi64>, tensor<4100xi64>) -> tensor<4100x4100xi1>
  %2 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %3 = oriel.select %1, %low, %2 : (tensor<4100x4100xi1>, tensor<f32>, tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %4 = oriel.softmax %3 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.matmul %4, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %5 : tensor<1x2x4100x4xf32>
}

// -----

// Queries are the last 4050 of 4100 positions.
// CHECK-LABEL: func.func @last_queries
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale
func.func @last_queries(%q: tensor<1x2x4050x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4050x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.slice %p {starts = array<i64: 50>, limits = array<i64: 4100>, strides = array<i64: 1>} : (tensor<4100xi64>) -> tensor<4050xi64>
  %1 = oriel.reshape %0 : (tensor<4050xi64>) -> tensor<4050x1xi64>
  %2 = oriel.less_equal %p, %1 : (tensor<4100xi64>, tensor<4050x1xi64>) -> tensor<4050x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %3 = oriel.select %2, %zero, %low : (tensor<4050x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4050x4100xf32>
  %4 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4050x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4050x4100xf32>
  %5 = oriel.add %4, %3 : (tensor<1x2x4050x4100xf32>, tensor<4050x4100xf32>) -> tensor<1x2x4050x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4050x4100xf32>) -> tensor<1x2x4050x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4050x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4050x4xf32>
  return %7 : tensor<1x2x4050x4xf32>
}

// -----

// Queries are the first 4050 of 4100 positions: the op's causality is aligned at the last key.
// CHECK-LABEL: func.func @first_queries
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale
func.func @first_queries(%q: tensor<1x2x4050x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>) -> tensor<1x2x4050x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.slice %p {starts = array<i64: 0>, limits = array<i64: 4050>, strides = array<i64: 1>} : (tensor<4100xi64>) -> tensor<4050xi64>
  %1 = oriel.reshape %0 : (tensor<4050xi64>) -> tensor<4050x1xi64>
  %2 = oriel.less_equal %p, %1 : (tensor<4100xi64>, tensor<4050x1xi64>) -> tensor<4050x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %3 = oriel.select %2, %zero, %low : (tensor<4050x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4050x4100xf32>
  %4 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4050x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4050x4100xf32>
  %5 = oriel.add %4, %3 : (tensor<1x2x4050x4100xf32>, tensor<4050x4100xf32>) -> tensor<1x2x4050x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4050x4100xf32>) -> tensor<1x2x4050x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4050x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4050x4xf32>
  return %7 : tensor<1x2x4050x4xf32>
}

// -----

// A bias by distance is added as it is; causality is not part of it.
// CHECK-LABEL: func.func @bias_and_causality
// CHECK-SAME: %[[BIAS:[a-z0-9]*]]: tensor<1x2x1x4100xf32>
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[BIAS]] {causal = true, scale
func.func @bias_and_causality(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>, %bias: tensor<1x2x1x4100xf32>) -> tensor<1x2x4100x4xf32> {
  %p = oriel.iota {dim = 0 : i64} : () -> tensor<4100xi64>
  %0 = oriel.reshape %p : (tensor<4100xi64>) -> tensor<4100x1xi64>
  %1 = oriel.less_equal %p, %0 : (tensor<4100xi64>, tensor<4100x1xi64>) -> tensor<4100x4100xi1>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %1, %zero, %low : (tensor<4100x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<4100x4100xf32>
  %3 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %4 = oriel.add %3, %bias : (tensor<1x2x4100x4100xf32>, tensor<1x2x1x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.add %4, %2 : (tensor<1x2x4100x4100xf32>, tensor<4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %7 : tensor<1x2x4100x4xf32>
}

// -----

// A known bias hides nothing.
// CHECK-LABEL: func.func @known_bias_and_causality_by_the_lowest_number
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {causal = true, scale
func.func @known_bias_and_causality_by_the_lowest_number(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32> {
  %bias = oriel.constant {value = dense<[[[[0.1, 0.2, 0.3, 0.4, 0.5, 0.6]], [[0.2, 0.4, 0.6, 0.8, 1.0, 1.2]]]]> : tensor<1x2x1x6xf32>} : () -> tensor<1x2x1x6xf32>
  %m = oriel.constant {value = dense<[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf32>} : () -> tensor<6x6xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = oriel.add %0, %bias : (tensor<1x2x6x6xf32>, tensor<1x2x1x6xf32>) -> tensor<1x2x6x6xf32>
  %2 = oriel.add %1, %m : (tensor<1x2x6x6xf32>, tensor<6x6xf32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %4 : tensor<1x2x6x4xf32>
}

// -----

// Another bias may hide what a query sees by causality: softmax then falls back on later keys.
// CHECK-LABEL: func.func @unknown_bias_and_causality_by_the_lowest_number
// CHECK: %[[M:.*]] = oriel.add
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale
func.func @unknown_bias_and_causality_by_the_lowest_number(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>, %bias: tensor<1x2x1x6xf32>) -> tensor<1x2x6x4xf32> {
  %m = oriel.constant {value = dense<[[0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, -3.40282347E+38, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, -3.40282347E+38], [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]]> : tensor<6x6xf32>} : () -> tensor<6x6xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = oriel.add %0, %bias : (tensor<1x2x6x6xf32>, tensor<1x2x1x6xf32>) -> tensor<1x2x6x6xf32>
  %2 = oriel.add %1, %m : (tensor<1x2x6x6xf32>, tensor<6x6xf32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = oriel.matmul %3, %v : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %4 : tensor<1x2x6x4xf32>
}

// -----

// Both a bias and a boolean mask: as one sum.
// CHECK-LABEL: func.func @bias_and_padding
// CHECK: %[[HIDE:.*]] = oriel.select
// CHECK: %[[M:.*]] = oriel.add %{{.*}}, %[[HIDE]]
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale
func.func @bias_and_padding(%q: tensor<1x2x4100x4xf32>, %k: tensor<1x2x4100x4xf32>, %v: tensor<1x2x4100x4xf32>, %bias: tensor<1x2x1x4100xf32>, %pad: tensor<1x1x1x4100xi1>) -> tensor<1x2x4100x4xf32> {
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.select %pad, %zero, %low : (tensor<1x1x1x4100xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x1x4100xf32>
  %1 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x4100x4xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4100xf32>
  %2 = oriel.add %1, %bias : (tensor<1x2x4100x4100xf32>, tensor<1x2x1x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %3 = oriel.add %2, %0 : (tensor<1x2x4100x4100xf32>, tensor<1x1x1x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %4 = oriel.softmax %3 {dim = 3 : i64} : (tensor<1x2x4100x4100xf32>) -> tensor<1x2x4100x4100xf32>
  %5 = oriel.matmul %4, %v : (tensor<1x2x4100x4100xf32>, tensor<1x2x4100x4xf32>) -> tensor<1x2x4100x4xf32>
  return %5 : tensor<1x2x4100x4xf32>
}

// -----

// An attention of the importer takes its mask apart likewise, and repeated heads as they were.
// CHECK-LABEL: func.func @imported_with_a_mask
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x6x4xf32>, %[[K:.*]]: tensor<1x1x6x4xf32>, %[[V:.*]]: tensor<1x1x6x4xf32>)
// CHECK: oriel.attention %[[Q]], %[[K]], %[[V]] {causal = true, scale = 5.000000e-01 : f64} :
func.func @imported_with_a_mask(%q: tensor<1x2x6x4xf32>, %k: tensor<1x1x6x4xf32>, %v: tensor<1x1x6x4xf32>) -> tensor<1x2x6x4xf32> {
  %keep = oriel.constant {value = dense<[[[[true, false, false, false, false, false], [true, true, false, false, false, false], [true, true, true, false, false, false], [true, true, true, true, false, false], [true, true, true, true, true, false], [true, true, true, true, true, true]]]]> : tensor<1x1x6x6xi1>} : () -> tensor<1x1x6x6xi1>
  %0 = oriel.reshape %k : (tensor<1x1x6x4xf32>) -> tensor<1x1x1x6x4xf32>
  %1 = oriel.broadcast %0 : (tensor<1x1x1x6x4xf32>) -> tensor<1x1x2x6x4xf32>
  %2 = oriel.reshape %1 : (tensor<1x1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  %3 = oriel.reshape %v : (tensor<1x1x6x4xf32>) -> tensor<1x1x1x6x4xf32>
  %4 = oriel.broadcast %3 : (tensor<1x1x1x6x4xf32>) -> tensor<1x1x2x6x4xf32>
  %5 = oriel.reshape %4 : (tensor<1x1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  %y, %lse = oriel.attention %q, %2, %5, %keep {scale = 0.5} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>, tensor<1x1x6x6xi1>) -> (tensor<1x2x6x4xf32>, tensor<1x2x6xf32>)
  return %y : tensor<1x2x6x4xf32>
}

// -----

// Positions of each sample, with a dimension for the heads put in later.
// CHECK-LABEL: func.func @positions_of_samples
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^ ,]*}} {causal = true, scale = 1.000000e+00 : f64} :
func.func @positions_of_samples(%q: tensor<3x2x4100x4xf32>, %k: tensor<3x2x4100x4xf32>, %v: tensor<3x2x4100x4xf32>) -> tensor<3x2x4100x4xf32> {
  %i = oriel.iota {dim = 1 : i64} : () -> tensor<3x4100xi64>
  %query = oriel.reshape %i : (tensor<3x4100xi64>) -> tensor<3x4100x1xi64>
  %key = oriel.reshape %i : (tensor<3x4100xi64>) -> tensor<3x1x4100xi64>
  %all = oriel.broadcast %key : (tensor<3x1x4100xi64>) -> tensor<3x4100x4100xi64>
  %0 = oriel.less_equal %all, %query : (tensor<3x4100x4100xi64>, tensor<3x4100x1xi64>) -> tensor<3x4100x4100xi1>
  %keep = oriel.reshape %0 : (tensor<3x4100x4100xi1>) -> tensor<3x1x4100x4100xi1>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %scores = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<3x2x4100x4xf32>, tensor<3x2x4100x4xf32>) -> tensor<3x2x4100x4100xf32>
  %hidden = oriel.select %keep, %scores, %low : (tensor<3x1x4100x4100xi1>, tensor<3x2x4100x4100xf32>, tensor<f32>) -> tensor<3x2x4100x4100xf32>
  %p = oriel.softmax %hidden {dim = 3 : i64} : (tensor<3x2x4100x4100xf32>) -> tensor<3x2x4100x4100xf32>
  %y = oriel.matmul %p, %v : (tensor<3x2x4100x4100xf32>, tensor<3x2x4100x4xf32>) -> tensor<3x2x4100x4xf32>
  return %y : tensor<3x2x4100x4xf32>
}
