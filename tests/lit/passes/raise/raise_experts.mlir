// Experts on the rows that choose them. Rows t = 6, of depth 4, choose 2 of 5 experts of width 3.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-layout,oriel-raise-experts,canonicalize))" --split-input-file | FileCheck %s

// Products by expert, gates as sums of one-hot rows.
// CHECK-LABEL: func.func @batched
// CHECK: %[[C:.*]] = oriel.topk
// CHECK-NEXT: %[[G:.*]] = oriel.reshape %{{.*}} : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
// CHECK-NEXT: %[[H:.*]] = oriel.expert_linear %{{.*}}, %{{.*}}, %[[C]] : (tensor<6x4xf32>, tensor<5x4x3xf32>, tensor<6x2xi64>) -> tensor<6x2x3xf32>
// CHECK-NEXT: %[[A:.*]] = oriel.activation %[[H]]
// CHECK-NEXT: %[[Y:.*]] = oriel.expert_linear %[[A]], %{{.*}}, %[[C]] {transpose_weight = true} : (tensor<6x2x3xf32>, tensor<5x4x3xf32>, tensor<6x2xi64>) -> tensor<6x2x4xf32>
// CHECK-NEXT: %[[Z:.*]] = oriel.mul %[[Y]], %[[G]]
// CHECK-NEXT: %[[R:.*]] = oriel.reduce_sum %[[Z]] {dims = array<i64: 1>}
// CHECK-NEXT: return %[[R]]
func.func @batched(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w1: tensor<5x4x3xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
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
  %z = oriel.mul %y, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// Weights scattered to zeros, as positions of samples; the sum over experts as a product.
// CHECK-LABEL: func.func @scattered
// CHECK: oriel.expert_linear %{{.*}} : (tensor<2x3x4xf32>, tensor<5x4x3xf32>, tensor<2x3x2xi64>) -> tensor<2x3x2x3xf32>
// CHECK: oriel.expert_linear %{{.*}} {transpose_weight = true} : (tensor<2x3x2x3xf32>
// CHECK-NOT: oriel.matmul
// CHECK-NOT: oriel.scatter_add
// CHECK: oriel.reduce_sum %{{.*}} {dims = array<i64: 2>}
func.func @scattered(%x: tensor<2x3x4xf32>, %s: tensor<2x3x5xf32>, %p: tensor<2x3x2xf32>, %w1: tensor<4x15xf32>, %w2: tensor<5x4x3xf32>) -> tensor<2x3x4xf32> {
  %off = oriel.constant {value = dense<[[[0, 0], [5, 5], [10, 10]], [[15, 15], [20, 20], [25, 25]]]> : tensor<2x3x2xi64>} : () -> tensor<2x3x2xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x2xi64>
  %at = oriel.add %c, %off : (tensor<2x3x2xi64>, tensor<2x3x2xi64>) -> tensor<2x3x2xi64>
  %flat = oriel.scatter_add %at, %p {dim = 0 : i64} : (tensor<2x3x2xi64>, tensor<2x3x2xf32>) -> tensor<30xf32>
  %g = oriel.reshape %flat : (tensor<30xf32>) -> tensor<2x3x1x5xf32>
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

// Gate and up side by side are products by parts of the weight; so is their bias.
// Rows that are merged behind the gates.
// CHECK-LABEL: func.func @gated
// CHECK: %[[C:.*]] = oriel.reshape %{{.*}} : (tensor<2x3x2xi64>) -> tensor<6x2xi64>
// CHECK: oriel.slice %{{.*}} {limits = array<i64: 5, 3, 4>
// CHECK-NEXT: %[[H:.*]] = oriel.expert_linear %{{.*}}, %{{.*}}, %[[C]] {transpose_weight = true} : (tensor<6x4xf32>, tensor<5x3x4xf32>
// CHECK: oriel.gather %{{.*}}, %[[C]] {dim = 0 : i64} : (tensor<5x3xf32>, tensor<6x2xi64>) -> tensor<6x2x3xf32>
// CHECK: oriel.gated_activation
// CHECK: oriel.expert_linear
// CHECK: oriel.gather %{{.*}}, %[[C]] {dim = 0 : i64} : (tensor<5x4xf32>, tensor<6x2xi64>) -> tensor<6x2x4xf32>
// CHECK-NOT: oriel.matmul
func.func @gated(%x: tensor<6x4xf32>, %s: tensor<2x3x5xf32>, %p: tensor<2x3x2xf32>, %w1: tensor<5x6x4xf32>, %b1: tensor<5x6xf32>, %w2: tensor<5x4x3xf32>, %b2: tensor<5x4xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x2xi64>
  %ci = oriel.reshape %c : (tensor<2x3x2xi64>) -> tensor<2x3x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<2x3x2x1xi64>, tensor<5xi64>) -> tensor<2x3x2x5xi1>
  %one = oriel.cast %eq : (tensor<2x3x2x5xi1>) -> tensor<2x3x2x5xf32>
  %pi = oriel.reshape %p : (tensor<2x3x2xf32>) -> tensor<2x3x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<2x3x2x5xf32>, tensor<2x3x2x1xf32>) -> tensor<2x3x2x5xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 2>} : (tensor<2x3x2x5xf32>) -> tensor<2x3x5xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x5xf32>) -> tensor<5x2x3xf32>
  %gb = oriel.reshape %ge : (tensor<5x2x3xf32>) -> tensor<5x6x1xf32>
  %wm = oriel.reshape %w1 : (tensor<5x6x4xf32>) -> tensor<30x4xf32>
  %hm = oriel.linear %x, %wm {transpose_weight = true} : (tensor<6x4xf32>, tensor<30x4xf32>) -> tensor<6x30xf32>
  %hs = oriel.reshape %hm : (tensor<6x30xf32>) -> tensor<6x5x6xf32>
  %hb = oriel.add %hs, %b1 : (tensor<6x5x6xf32>, tensor<5x6xf32>) -> tensor<6x5x6xf32>
  %u = oriel.slice %hb {starts = array<i64: 0, 0, 0>, limits = array<i64: 6, 5, 3>, strides = array<i64: 1, 1, 1>} : (tensor<6x5x6xf32>) -> tensor<6x5x3xf32>
  %v = oriel.slice %hb {starts = array<i64: 0, 0, 3>, limits = array<i64: 6, 5, 6>, strides = array<i64: 1, 1, 1>} : (tensor<6x5x6xf32>) -> tensor<6x5x3xf32>
  %a = oriel.gated_activation %u, %v {kind = "silu"} : (tensor<6x5x3xf32>, tensor<6x5x3xf32>) -> tensor<6x5x3xf32>
  %e = oriel.transpose %a {permutation = array<i64: 1, 0, 2>} : (tensor<6x5x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %e, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %b = oriel.reshape %b2 : (tensor<5x4xf32>) -> tensor<5x1x4xf32>
  %yb = oriel.add %y, %b : (tensor<5x6x4xf32>, tensor<5x1x4xf32>) -> tensor<5x6x4xf32>
  %z = oriel.mul %yb, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// Gates on what the last layer reads, which sums over experts and their columns at once.
// CHECK-LABEL: func.func @gated_input
// CHECK: oriel.expert_linear %{{.*}} {transpose_weight = true} : (tensor<6x4xf32>, tensor<5x3x4xf32>
// CHECK: oriel.gather %{{.*}} : (tensor<5x3xf32>, tensor<6x2xi64>) -> tensor<6x2x3xf32>
// CHECK: oriel.expert_linear %{{.*}} : (tensor<6x2x3xf32>, tensor<5x3x4xf32>, tensor<6x2xi64>) -> tensor<6x2x4xf32>
// CHECK: oriel.reduce_sum %{{.*}} {dims = array<i64: 1>} : (tensor<6x2x4xf32>) -> tensor<6x4xf32>
// CHECK: oriel.add
// CHECK-NOT: oriel.linear
func.func @gated_input(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w1: tensor<15x4xf32>, %b1: tensor<15xf32>, %w2: tensor<15x4xf32>, %b2: tensor<4xf32>) -> tensor<6x4xf32> {
  %off = oriel.constant {value = dense<[[0, 0], [5, 5], [10, 10], [15, 15], [20, 20], [25, 25]]> : tensor<6x2xi64>} : () -> tensor<6x2xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %at = oriel.add %c, %off : (tensor<6x2xi64>, tensor<6x2xi64>) -> tensor<6x2xi64>
  %flat = oriel.scatter_add %at, %p {dim = 0 : i64} : (tensor<6x2xi64>, tensor<6x2xf32>) -> tensor<30xf32>
  %g = oriel.reshape %flat : (tensor<30xf32>) -> tensor<6x5x1xf32>
  %hm = oriel.linear %x, %w1, %b1 {transpose_weight = true} : (tensor<6x4xf32>, tensor<15x4xf32>, tensor<15xf32>) -> tensor<6x15xf32>
  %hs = oriel.reshape %hm : (tensor<6x15xf32>) -> tensor<6x5x3xf32>
  %a = oriel.activation %hs {kind = "gelu"} : (tensor<6x5x3xf32>) -> tensor<6x5x3xf32>
  %z = oriel.mul %a, %g : (tensor<6x5x3xf32>, tensor<6x5x1xf32>) -> tensor<6x5x3xf32>
  %m = oriel.reshape %z : (tensor<6x5x3xf32>) -> tensor<6x15xf32>
  %r = oriel.linear %m, %w2, %b2 : (tensor<6x15xf32>, tensor<15x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
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

// Gates that lie between what they gate, and a column of one-hot rows for each expert.
// CHECK-LABEL: func.func @interleaved
// CHECK: oriel.expert_linear %{{.*}} : (tensor<6x4xf32>, tensor<5x4x6xf32>, tensor<6x2xi64>) -> tensor<6x2x6xf32>
// CHECK: oriel.reshape %{{.*}} : (tensor<6x2x6xf32>) -> tensor<6x2x3x2xf32>
// CHECK: oriel.expert_linear
func.func @interleaved(%x: tensor<6x4xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w1: tensor<5x4x6xf32>, %w2: tensor<5x4x3xf32>) -> tensor<6x4xf32> {
  %iota = oriel.constant {value = dense<[[[0], [1], [2], [3], [4]]]> : tensor<1x5x1xi64>} : () -> tensor<1x5x1xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x1x2xi64>
  %eq = oriel.equal %iota, %ci : (tensor<1x5x1xi64>, tensor<6x1x2xi64>) -> tensor<6x5x2xi1>
  %one = oriel.cast %eq : (tensor<6x5x2xi1>) -> tensor<6x5x2xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x1x2xf32>
  %pe = oriel.mul %pi, %one : (tensor<6x1x2xf32>, tensor<6x5x2xf32>) -> tensor<6x5x2xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 2>} : (tensor<6x5x2xf32>) -> tensor<6x5xf32>
  %xb = oriel.reshape %x : (tensor<6x4xf32>) -> tensor<1x6x4xf32>
  %xe = oriel.broadcast %xb : (tensor<1x6x4xf32>) -> tensor<5x6x4xf32>
  %h = oriel.matmul %xe, %w1 : (tensor<5x6x4xf32>, tensor<5x4x6xf32>) -> tensor<5x6x6xf32>
  %u = oriel.slice %h {starts = array<i64: 0, 0, 0>, limits = array<i64: 5, 6, 6>, strides = array<i64: 1, 1, 2>} : (tensor<5x6x6xf32>) -> tensor<5x6x3xf32>
  %v = oriel.slice %h {starts = array<i64: 0, 0, 1>, limits = array<i64: 5, 6, 6>, strides = array<i64: 1, 1, 2>} : (tensor<5x6x6xf32>) -> tensor<5x6x3xf32>
  %a = oriel.gated_activation %u, %v {kind = "silu"} : (tensor<5x6x3xf32>, tensor<5x6x3xf32>) -> tensor<5x6x3xf32>
  %y = oriel.matmul %a, %w2 {transpose_rhs = true} : (tensor<5x6x3xf32>, tensor<5x4x3xf32>) -> tensor<5x6x4xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x6x1xf32>
  %z = oriel.mul %y, %gb : (tensor<5x6x4xf32>, tensor<5x6x1xf32>) -> tensor<5x6x4xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x6x4xf32>) -> tensor<6x4xf32>
  return %r : tensor<6x4xf32>
}

// -----

// Weights on the left of a product, whose rows are columns.
// CHECK-LABEL: func.func @weights_on_the_left
// CHECK: oriel.expert_linear %{{.*}} {transpose_weight = true} : (tensor<6x4xf32>, tensor<5x3x4xf32>, tensor<6x2xi64>) -> tensor<6x2x3xf32>
// CHECK-NOT: oriel.matmul
func.func @weights_on_the_left(%x: tensor<4x6xf32>, %s: tensor<6x5xf32>, %p: tensor<6x2xf32>, %w: tensor<5x3x4xf32>) -> tensor<3x6xf32> {
  %iota = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %ci = oriel.reshape %c : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %eq = oriel.equal %ci, %iota : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %one = oriel.cast %eq : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %pi = oriel.reshape %p : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %pe = oriel.mul %one, %pi : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %g = oriel.reduce_sum %pe {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %xb = oriel.reshape %x : (tensor<4x6xf32>) -> tensor<1x4x6xf32>
  %xe = oriel.broadcast %xb : (tensor<1x4x6xf32>) -> tensor<5x4x6xf32>
  %h = oriel.matmul %w, %xe : (tensor<5x3x4xf32>, tensor<5x4x6xf32>) -> tensor<5x3x6xf32>
  %a = oriel.tanh %h : (tensor<5x3x6xf32>) -> tensor<5x3x6xf32>
  %ge = oriel.transpose %g {permutation = array<i64: 1, 0>} : (tensor<6x5xf32>) -> tensor<5x6xf32>
  %gb = oriel.reshape %ge : (tensor<5x6xf32>) -> tensor<5x1x6xf32>
  %z = oriel.mul %a, %gb : (tensor<5x3x6xf32>, tensor<5x1x6xf32>) -> tensor<5x3x6xf32>
  %r = oriel.reduce_sum %z {dims = array<i64: 0>} : (tensor<5x3x6xf32>) -> tensor<3x6xf32>
  return %r : tensor<3x6xf32>
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

// One of the two that are gated is the same for all experts.
// CHECK-LABEL: func.func @shared_by_all_experts
// CHECK: oriel.broadcast
// CHECK: oriel.gated_activation
func.func @shared_by_all_experts(%a0: tensor<6x5xf32>, %a6: tensor<6x2xf32>, %a10: tensor<6x4xf32>, %a11: tensor<4x20xf32>, %a14: tensor<4x4xf32>) -> (tensor<6x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %v2 = oriel.constant {value = dense<[0, 1, 2, 3, 4]> : tensor<5xi64>} : () -> tensor<5xi64>
  %v3 = oriel.reshape %v1 : (tensor<6x2xi64>) -> tensor<6x2x1xi64>
  %v4 = oriel.equal %v3, %v2 : (tensor<6x2x1xi64>, tensor<5xi64>) -> tensor<6x2x5xi1>
  %v5 = oriel.cast %v4 : (tensor<6x2x5xi1>) -> tensor<6x2x5xf32>
  %v7 = oriel.reshape %a6 : (tensor<6x2xf32>) -> tensor<6x2x1xf32>
  %v8 = oriel.mul %v5, %v7 : (tensor<6x2x5xf32>, tensor<6x2x1xf32>) -> tensor<6x2x5xf32>
  %v9 = oriel.reduce_sum %v8 {dims = array<i64: 1>} : (tensor<6x2x5xf32>) -> tensor<6x5xf32>
  %v12 = oriel.linear %a10, %a11 : (tensor<6x4xf32>, tensor<4x20xf32>) -> tensor<6x20xf32>
  %v13 = oriel.reshape %v12 : (tensor<6x20xf32>) -> tensor<6x5x4xf32>
  %v15 = oriel.linear %a10, %a14 : (tensor<6x4xf32>, tensor<4x4xf32>) -> tensor<6x4xf32>
  %v16 = oriel.reshape %v15 : (tensor<6x4xf32>) -> tensor<6x1x4xf32>
  %v17 = oriel.broadcast %v16 : (tensor<6x1x4xf32>) -> tensor<6x5x4xf32>
  %v18 = oriel.gated_activation %v13, %v17 {kind = "silu"} : (tensor<6x5x4xf32>, tensor<6x5x4xf32>) -> tensor<6x5x4xf32>
  %v19 = oriel.reshape %v9 : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %v20 = oriel.mul %v18, %v19 : (tensor<6x5x4xf32>, tensor<6x5x1xf32>) -> tensor<6x5x4xf32>
  %v21 = oriel.reduce_sum %v20 {dims = array<i64: 1>} : (tensor<6x5x4xf32>) -> tensor<6x4xf32>
  return %v21 : tensor<6x4xf32>
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

// -----

// Weights that are scattered to wider ones.
// CHECK-LABEL: func.func @narrow_weights
// CHECK: oriel.expert_linear
func.func @narrow_weights(%a0: tensor<6x5xf32>, %a4: tensor<6x2xf32>, %a8: tensor<6x4xf32>, %a9: tensor<4x20xf32>) -> (tensor<6x4xf32>) {
  %v1 = oriel.topk %a0 {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %v2 = oriel.constant {value = dense<[[0, 0], [5, 5], [10, 10], [15, 15], [20, 20], [25, 25]]> : tensor<6x2xi64>} : () -> tensor<6x2xi64>
  %v3 = oriel.add %v1, %v2 : (tensor<6x2xi64>, tensor<6x2xi64>) -> tensor<6x2xi64>
  %v5 = oriel.cast %a4 : (tensor<6x2xf32>) -> tensor<6x2xbf16>
  %v6 = oriel.scatter_add %v3, %v5 {dim = 0 : i64} : (tensor<6x2xi64>, tensor<6x2xbf16>) -> tensor<30xf32>
  %v7 = oriel.reshape %v6 : (tensor<30xf32>) -> tensor<6x5xf32>
  %v10 = oriel.linear %a8, %a9 : (tensor<6x4xf32>, tensor<4x20xf32>) -> tensor<6x20xf32>
  %v11 = oriel.reshape %v10 : (tensor<6x20xf32>) -> tensor<6x5x4xf32>
  %v12 = oriel.reshape %v7 : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %v13 = oriel.mul %v11, %v12 : (tensor<6x5x4xf32>, tensor<6x5x1xf32>) -> tensor<6x5x4xf32>
  %v14 = oriel.reduce_sum %v13 {dims = array<i64: 1>} : (tensor<6x5x4xf32>) -> tensor<6x4xf32>
  return %v14 : tensor<6x4xf32>
}
