// Where all experts count, or the sum is better made of all. Sizes as in raise_experts.mlir.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-layout,oriel-raise-experts,canonicalize))" --split-input-file | FileCheck %s

// The same where scores are only somewhat lower: all experts count.
// CHECK-LABEL: func.func @softmax_of_lowered
// CHECK-NOT: oriel.expert_linear
func.func @softmax_of_lowered(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %k = oriel.reduce_sum %one {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %in = oriel.greater %k, %zero : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xi1>
  %low = oriel.constant {value = dense<-1.0e2> : tensor<f32>} : () -> tensor<f32>
  %kept = oriel.select %in, %s, %low : (tensor<6x5xi1>, tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xf32>
  %g = oriel.softmax %kept {dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %z = oriel.mul %y, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// A bias behind the gates is not 0: all experts count.
// CHECK-LABEL: func.func @gated_rows_and_bias
// CHECK-NOT: oriel.expert_linear
func.func @gated_rows_and_bias(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w: tensor<5x4x3xf32>, %b: tensor<5x1x3xf32>) -> tensor<6x3xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %xg = oriel.mul %xe, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xg, %w : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %hb = oriel.add %h, %b : (tensor<5x6x3xf32>, tensor<5x1x3xf32>) -> tensor<5x6x3xf32>
  %r = oriel.reduce_sum %hb {dims = array<i64: 0>} : (tensor<5x6x3xf32>) -> tensor<6x3xf32>
  return %r : tensor<6x3xf32>
}

// -----

// An expert for each choice, not their sum.
// CHECK-LABEL: func.func @sum_for_each_choice
// CHECK-NOT: oriel.expert_linear
func.func @sum_for_each_choice(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x2x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %yt = oriel.transpose %y {permutation = array<i64: 1, 0, 2>} : (tensor<5x6x4xf32>) -> tensor<6x5x4xf32>
  %r = oriel.matmul %one, %yt : (tensor<6x2x5xf32>, tensor<6x5x4xf32>) -> tensor<6x2x4xf32>
  return %r : tensor<6x2x4xf32>
}

// -----

// What is not 0 where the gates are: all experts count.
// CHECK-LABEL: func.func @added
// CHECK-NOT: oriel.expert_linear
func.func @added(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %z = oriel.add %y, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// Choices of another number of experts than there are matrices: which they are is not known.
// CHECK-LABEL: func.func @other_numbers
// CHECK-NOT: oriel.expert_linear
func.func @other_numbers(%x: tensor<6x4xf32>, %s: tensor<6x7xf32>, %p: tensor<6x2xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x7xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %z = oriel.mul %y, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// Softmax over the experts mixes those that are not chosen.
// CHECK-LABEL: func.func @mixed
// CHECK-NOT: oriel.expert_linear
func.func @mixed(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %soft = oriel.softmax %y {dim = 0 : i64} : (tensor<5x6x4xf32>) -> tensor<5x6x4xf32>
  %z = oriel.mul %soft, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// More than half of the experts are chosen: products with all are fewer, and larger.
// CHECK-LABEL: func.func @most
// CHECK-NOT: oriel.expert_linear
func.func @most(%x: tensor<6x4xf32>, %s: tensor<6x3xf32>, %p: tensor<6x2xf32>, %w1: tensor<3x4x3xf32>, %w2: tensor<3x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2]> : tensor<3xi64>} : () -> tensor<3xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x3xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<3xi64>) -> tensor<6x2x3xi1>
  %one = oriel.cast %eq : (tensor<6x2x3xi1>) -> tensor<6x2x3xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<6x2x3xf32>, tensor<6x2x1xf32>) -> tensor<6x2x3xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 1>} : (tensor<6x2x3xf32>) -> tensor<6x3xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<3x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<3x6x4xf32>, tensor<3x4x3xf32>) -> tensor<3x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<3x6x3xf32>) -> tensor<3x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<3x6x3xf32>, tensor<3x4x3xf32>) -> tensor<3x6x4xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x3xf32>) -> tensor<3x6xf32>
  %gb = oriel.reshape %ge : (tensor<3x6xf32>) -> tensor<3x6x1xf32>
  %z = oriel.mul %y, %gb : (tensor<3x6x4xf32>, tensor<3x6x1xf32>) -> tensor<3x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<3x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// Rows in another order than those of the gates, before a layer that sums over all.
// CHECK-LABEL: func.func @rows_in_another_order
// CHECK-NOT: oriel.expert_linear
func.func @rows_in_another_order(%a0: tensor<2x3x5xf32>, %a6: tensor<2x3x2xf32>, %a10: tensor<3x2x4xf32>, %a11: tensor<4x15xf32>, %a19: tensor<15x4xf32>) -> (tensor<3x2x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x2xi64>
  %v2 = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %v3 = oriel.reshape %v1 : (tensor<2x3x2xi64>) -> tensor<2x3x2x1xi64>
  %v4 = oriel.equal %v3, %v2 : (tensor<2x3x2x1xi64>, tensor<5xi64>) -> tensor<2x3x2x5xi1>
  %v5 = oriel.cast %v4 : (tensor<2x3x2x5xi1>) -> tensor<2x3x2x5xf32>
  %v7 = oriel.reshape %a6 : (tensor<2x3x2xf32>) -> tensor<2x3x2x1xf32>
  %v8 = oriel.mul %v5, %v7 : (tensor<2x3x2x5xf32>, tensor<2x3x2x1xf32>) -> tensor<2x3x2x5xf32>
  %v9 = oriel.reduce_sum %v8 {dims = array<i64: 2>} : (tensor<2x3x2x5xf32>) -> tensor<2x3x5xf32>
  %v12 = oriel.linear %a10, %a11 : (tensor<3x2x4xf32>, tensor<4x15xf32>) -> tensor<3x2x15xf32>
  %v13 = oriel.reshape %v12 : (tensor<3x2x15xf32>) -> tensor<3x2x5x3xf32>
  %v14 = oriel.activation %v13 {kind = "gelu"} : (tensor<3x2x5x3xf32>) -> tensor<3x2x5x3xf32>
  %v15 = oriel.transpose %v9 {permutation = array<i64: 1, 0, 2>} : (tensor<2x3x5xf32>) -> tensor<3x2x5xf32>
  %v16 = oriel.reshape %v15 : (tensor<3x2x5xf32>) -> tensor<3x2x5x1xf32>
  %v17 = oriel.mul %v14, %v16 : (tensor<3x2x5x3xf32>, tensor<3x2x5x1xf32>) -> tensor<3x2x5x3xf32>
  %v18 = oriel.reshape %v17 : (tensor<3x2x5x3xf32>) -> tensor<3x2x15xf32>
  %v20 = oriel.linear %v18, %a19 : (tensor<3x2x15xf32>, tensor<15x4xf32>) -> tensor<3x2x4xf32>
  return %v20 : tensor<3x2x4xf32>
}

// -----

// Choices as booleans are others.
// CHECK-LABEL: func.func @narrowed_choices
// CHECK-NOT: oriel.expert_linear
func.func @narrowed_choices(%a0: tensor<6x5xf32>, %a8: tensor<6x2xf32>, %a12: tensor<6x4xf32>, %a13: tensor<4x20xf32>) -> (tensor<6x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %v2 = oriel.cast %v1 : (tensor<6x2xi64>) -> tensor<6x2xi1>
  %v3 = oriel.cast %v2 : (tensor<6x2xi1>) -> tensor<6x2xi64>
  %v4 = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %v5 = oriel.reshape %v3 : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %v6 = oriel.equal %v5, %v4 : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %v7 = oriel.cast %v6 : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %v9 = oriel.reshape %a8 : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %v10 = oriel.mul %v7, %v9 : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %v11 = oriel.reduce_sum %v10 {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %v14 = oriel.linear %a12, %a13 : (tensor<6x4xf32>, tensor<4x20xf32>) -> tensor<6x20xf32>
  %v15 = oriel.reshape %v14 : (tensor<6x20xf32>) -> tensor<6x5x4xf32>
  %v16 = oriel.reshape %v11 : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %v17 = oriel.mul %v15, %v16 : (tensor<6x5x4xf32>, tensor<6x5x1xf32>) -> tensor<6x5x4xf32>
  %v18 = oriel.reduce_sum %v17 {dims = array<i64: 1>} : (tensor<6x5x4xf32>) -> tensor<6x4xf32>
  return %v18 : tensor<6x4xf32>
}
