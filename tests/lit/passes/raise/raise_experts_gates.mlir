// How it is known that experts that a row does not choose count 0. Sizes as in raise_experts.mlir.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-layout,oriel-raise-experts,canonicalize))" --split-input-file | FileCheck %s

// Weights scattered to zeros, as positions of samples; the sum over experts as a product.
// CHECK-LABEL: func.func @scattered
// CHECK: oriel.expert_linear %{{.*}} : (tensor<2x3x4xf32>, tensor<5x4x3xf32>, tensor<2x3x2xi64>) -> tensor<2x3x2x3xf32>
// CHECK: oriel.expert_linear %{{.*}} {transpose_weight = true} : (tensor<2x3x2x3xf32>
// CHECK-NOT: oriel.matmul
// CHECK-NOT: oriel.scatter_add
// CHECK: oriel.reduce_sum %{{.*}} {dims = array<i64: 2>}
func.func @scattered(%x: tensor<2x3x4xf32>, %s: tensor<2x3x5xf32>, %p: tensor<2x3x2xf32>, %w1: tensor<4x15xf32>, %w2: tensor<5x4x3xf32>) -> tensor<2x3x4xf32> {
  %c = oriel.topk %s {k = 2 : i64, dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x2xi64>
  %placed = oriel.scatter_add %c, %p {batch_dims = 2 : i64, dim = 2 : i64} : (tensor<2x3x2xi64>, tensor<2x3x2xf32>) -> tensor<2x3x5xf32>
  %g = oriel.reshape %placed : (tensor<2x3x5xf32>) -> tensor<2x3x1x5xf32>
  %hm = oriel.linear %x, %w1 : (tensor<2x3x4xf32>, tensor<4x15xf32>) -> tensor<2x3x15xf32>
  %hs = oriel.reshape %hm : (tensor<2x3x15xf32>) -> tensor<2x3x5x3xf32>
  %a = oriel.activation %hs {kind = "gelu"} : (tensor<2x3x5x3xf32>) -> tensor<2x3x5x3xf32>
  %e = oriel.transpose %a {permutation = array<i64: 2, 0, 1, 3>} : (tensor<2x3x5x3xf32>) -> tensor<5x2x3x3xf32>
  %y = oriel.matmul %e, %w2 {row_dims = 2 : i64, transpose_rhs = true} : (tensor<5x2x3x3xf32>, tensor<5x4x3xf32>) -> tensor<5x2x3x4xf32>
  %t = oriel.transpose %y {permutation = array<i64: 1, 2, 0, 3>} : (tensor<5x2x3x4xf32>) -> tensor<2x3x5x4xf32>
  %z = oriel.matmul %g, %t : (tensor<2x3x1x5xf32>, tensor<2x3x5x4xf32>) -> tensor<2x3x1x4xf32>
  %r = oriel.reshape %z : (tensor<2x3x1x4xf32>) -> tensor<2x3x4xf32>
  return %r : tensor<2x3x4xf32>
}

// -----

// A mask of the choices times weights of all experts, each over their sum: numbers are picked.
// CHECK-LABEL: func.func @masked
// CHECK-COUNT-2: oriel.expert_linear
// CHECK-NOT: oriel.matmul
// CHECK: oriel.gather %{{.*}} {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<6x5xf32>, tensor<6x2xi64>) -> tensor<6x2xf32>
func.func @masked(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %q: tensor<6x5xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %k = oriel.reduce_sum %one {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %soft = oriel.softmax %q {dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %kept = oriel.mul %soft, %k : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
  %sum = oriel.reduce_sum %kept {dims = array<i64: 1>, keep_dims = true} : (tensor<6x5xf32>) -> tensor<6x1xf32>
  %g = oriel.div %kept, %sum : (tensor<6x5xf32>, tensor<6x1xf32>) -> tensor<6x5xf32>
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

// Softmax of scores of which those that are not chosen are infinitely low.
// CHECK-LABEL: func.func @softmax_of_chosen
// CHECK-COUNT-2: oriel.expert_linear
// CHECK-NOT: oriel.matmul
func.func @softmax_of_chosen(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %k = oriel.reduce_sum %one {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %in = oriel.greater %k, %zero : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xi1>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
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

// Gates on what experts read: 0 stays 0 through layers without bias.
// CHECK-LABEL: func.func @gated_rows
// CHECK: oriel.mul %{{.*}} : (tensor<6x1x4xf32>, tensor<6x2x1xf32>) -> tensor<6x2x4xf32>
// CHECK: oriel.expert_linear %{{.*}} : (tensor<6x2x4xf32>
// CHECK: oriel.expert_linear
// CHECK: oriel.reduce_sum %{{.*}} {dims = array<i64: 1>} : (tensor<6x2x4xf32>)
func.func @gated_rows(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %k = oriel.reduce_sum %one {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %in = oriel.greater %k, %zero : (tensor<6x5xf32>, tensor<f32>) -> tensor<6x5xi1>
  %off = oriel.not %in : (tensor<6x5xi1>) -> tensor<6x5xi1>
  %low = oriel.constant {value = dense<-1.0e10> : tensor<6x5xf32>} : () -> tensor<6x5xf32>
  %kept = oriel.select %off, %low, %s : (tensor<6x5xi1>, tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
  %g = oriel.sigmoid %kept : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %xg = oriel.mul %xe, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xg, %w1 : (tensor<5x6x4xf32>, tensor<5x4x3xf32>) -> tensor<5x6x3xf32>
  %a = oriel.activation %h {kind = "gelu"} : (tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %y {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// One expert for each row.
// CHECK-LABEL: func.func @largest
// CHECK: oriel.expert_linear %{{.*}} : (tensor<6x1x4xf32>, tensor<5x4x3xf32>, tensor<6x1xi64>) -> tensor<6x1x3xf32>
// CHECK: oriel.expert_linear
func.func @largest(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.argmax %s {dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6xi64>
  %ci = oriel.reshape %c : (tensor<6xi64>) -> tensor<6x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x1xi64>, tensor<5xi64>) -> tensor<6x5xi1>
  %one = oriel.cast %eq : (tensor<6x5xi1>) -> tensor<6x5xf32>
  %soft = oriel.softmax %s {dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %g = oriel.mul %soft, %one : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
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

// Gates times other numbers, and then rows that are merged: the numbers count.
// CHECK-LABEL: func.func @gates_times_others
// CHECK: oriel.expert_linear
func.func @gates_times_others(%a0: tensor<2x3x5xf32>, %a6: tensor<2x3x2xf32>, %a10: tensor<2x3x5xf32>, %a13: tensor<6x4xf32>, %a14: tensor<4x20xf32>) -> (tensor<6x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x2xi64>
  %v2 = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %v3 = oriel.reshape %v1 : (tensor<2x3x2xi64>) -> tensor<2x3x2x1xi64>
  %v4 = oriel.equal %v3, %v2 : (tensor<2x3x2x1xi64>, tensor<5xi64>) -> tensor<2x3x2x5xi1>
  %v5 = oriel.cast %v4 : (tensor<2x3x2x5xi1>) -> tensor<2x3x2x5xf32>
  %v7 = oriel.reshape %a6 : (tensor<2x3x2xf32>) -> tensor<2x3x2x1xf32>
  %v8 = oriel.mul %v5, %v7 : (tensor<2x3x2x5xf32>, tensor<2x3x2x1xf32>) -> tensor<2x3x2x5xf32>
  %v9 = oriel.reduce_sum %v8 {dims = array<i64: 2>} : (tensor<2x3x2x5xf32>) -> tensor<2x3x5xf32>
  %v11 = oriel.mul %v9, %a10 : (tensor<2x3x5xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %v12 = oriel.reshape %v11 : (tensor<2x3x5xf32>) -> tensor<6x5xf32>
  %v15 = oriel.linear %a13, %a14 : (tensor<6x4xf32>, tensor<4x20xf32>) -> tensor<6x20xf32>
  %v16 = oriel.reshape %v15 : (tensor<6x20xf32>) -> tensor<6x5x4xf32>
  %v17 = oriel.reshape %v12 : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %v18 = oriel.mul %v16, %v17 : (tensor<6x5x4xf32>, tensor<6x5x1xf32>) -> tensor<6x5x4xf32>
  %v19 = oriel.reduce_sum %v18 {dims = array<i64: 1>} : (tensor<6x5x4xf32>) -> tensor<6x4xf32>
  return %v19 : tensor<6x4xf32>
}

// -----

// Choices counted as integers.
// CHECK-LABEL: func.func @counted
// CHECK: oriel.expert_linear
func.func @counted(%a0: tensor<6x5xf32>, %a7: tensor<6x5xf32>, %a11: tensor<6x4xf32>, %a12: tensor<4x20xf32>) -> (tensor<6x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %v2 = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %v3 = oriel.reshape %v1 : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %v4 = oriel.equal %v3, %v2 : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %v5 = oriel.cast %v4 : (tensor<6x2x5xi1>) -> tensor<6x2x5xi64>
  %v6 = oriel.reduce_sum %v5 {dims = array<i64: 1>} : (tensor<6x2x5xi64>) -> tensor<6x5xi64>
  %v8 = oriel.softmax %a7 {dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x5xf32>
  %v9 = oriel.cast %v6 : (tensor<6x5xi64>) -> tensor<6x5xf32>
  %v10 = oriel.mul %v9, %v8 : (tensor<6x5xf32>, tensor<6x5xf32>) -> tensor<6x5xf32>
  %v13 = oriel.linear %a11, %a12 : (tensor<6x4xf32>, tensor<4x20xf32>) -> tensor<6x20xf32>
  %v14 = oriel.reshape %v13 : (tensor<6x20xf32>) -> tensor<6x5x4xf32>
  %v15 = oriel.reshape %v10 : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %v16 = oriel.mul %v14, %v15 : (tensor<6x5x4xf32>, tensor<6x5x1xf32>) -> tensor<6x5x4xf32>
  %v17 = oriel.reduce_sum %v16 {dims = array<i64: 1>} : (tensor<6x5x4xf32>) -> tensor<6x4xf32>
  return %v17 : tensor<6x4xf32>
}

// -----

// Weights that are scattered to wider ones.
// CHECK-LABEL: func.func @narrow_weights
// CHECK: oriel.expert_linear
func.func @narrow_weights(%a0: tensor<6x5xf32>, %a4: tensor<6x2xf32>, %a8: tensor<6x4xf32>, %a9: tensor<4x20xf32>) -> (tensor<6x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %v5 = oriel.cast %a4 : (tensor<6x2xf32>) -> tensor<6x2xbf16>
  %v6 = oriel.scatter_add %v1, %v5 {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<6x2xi64>, tensor<6x2xbf16>) -> tensor<6x5xf32>
  %v10 = oriel.linear %a8, %a9 : (tensor<6x4xf32>, tensor<4x20xf32>) -> tensor<6x20xf32>
  %v11 = oriel.reshape %v10 : (tensor<6x20xf32>) -> tensor<6x5x4xf32>
  %v12 = oriel.reshape %v6 : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %v13 = oriel.mul %v11, %v12 : (tensor<6x5x4xf32>, tensor<6x5x1xf32>) -> tensor<6x5x4xf32>
  %v14 = oriel.reduce_sum %v13 {dims = array<i64: 1>} : (tensor<6x5x4xf32>) -> tensor<6x4xf32>
  return %v14 : tensor<6x4xf32>
}
