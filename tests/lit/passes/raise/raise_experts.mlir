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
  %c = oriel.topk %s {k = 2 : i64, dim = 1 : i64} : (tensor<6x5xf32>) -> tensor<6x2xi64>
  %flat = oriel.scatter_add %c, %p {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<6x2xi64>, tensor<6x2xf32>) -> tensor<6x5xf32>
  %g = oriel.reshape %flat : (tensor<6x5xf32>) -> tensor<6x5x1xf32>
  %hm = oriel.linear %x, %w1, %b1 {transpose_weight = true} : (tensor<6x4xf32>, tensor<15x4xf32>, tensor<15xf32>) -> tensor<6x15xf32>
  %hs = oriel.reshape %hm : (tensor<6x15xf32>) -> tensor<6x5x3xf32>
  %a = oriel.activation %hs {kind = "gelu"} : (tensor<6x5x3xf32>) -> tensor<6x5x3xf32>
  %z = oriel.mul %a, %g : (tensor<6x5x3xf32>, tensor<6x5x1xf32>) -> tensor<6x5x3xf32>
  %m = oriel.reshape %z : (tensor<6x5x3xf32>) -> tensor<6x15xf32>
  %r = oriel.linear %m, %w2, %b2 : (tensor<6x15xf32>, tensor<15x4xf32>, tensor<4xf32>) -> tensor<6x4xf32>
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
