// RUN: oriel-opt %s --split-input-file --oriel-remat=policy=full | FileCheck %s --check-prefixes=CHECK,FULL
// RUN: oriel-opt %s --split-input-file --oriel-remat=policy=selective | FileCheck %s --check-prefixes=CHECK,SELECTIVE

// An MLP: what enters the block is kept, and the clones are right in front of their first users.
// Nothing is quadratic here.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[X:.*]] = oriel.add
// FULL: return %[[X]] : tensor<4x8xf32>
// SELECTIVE: return %[[X]], %{{.*}}, %{{.*}} :
// CHECK-LABEL: func.func @backward(
// FULL-SAME: %[[KEPT:[^:]*]]: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "v0"}
// FULL: %[[G:.*]] = oriel.linear %{{.*}}, %[[V:[^ ]*]] {origin = 3 : i64, transpose_weight = true}
// FULL: %[[H:.*]] = oriel.linear %[[KEPT]], %{{[^ ]*}} {oriel.recomputed, origin = 1 : i64}
// FULL: %[[A:.*]] = oriel.activation %[[H]] {kind = "gelu", oriel.recomputed, origin = 2 : i64}
// FULL: oriel.linear_weight_grad %[[A]],
// FULL: oriel.activation_grad %[[G]], %[[H]]
// FULL: oriel.linear_weight_grad %[[KEPT]],
// FULL-NOT: oriel.recomputed
// SELECTIVE-NOT: oriel.recomputed
module attributes {oriel.blocks = array<i64: -1, 0, 0, 0>} {
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %b: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %v: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "v"})
      -> (tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "v1"},
          tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "v2"}) {
    %0 = oriel.add %x, %b {origin = 0 : i64} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = oriel.linear %0, %w {origin = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.activation %1 {kind = "gelu", origin = 2 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = oriel.linear %2, %v {origin = 3 : i64} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    return %0, %1, %2 : tensor<4x8xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
  func.func @backward(%v0: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "v0"},
      %v1: tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "v1"},
      %v2: tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "v2"},
      %c: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "c"},
      %v: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "v"})
      -> (tensor<16x8xf32> {oriel.kind = "gradient", oriel.ref = "v"},
          tensor<8x16xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.linear %c, %v {origin = 3 : i64, transpose_weight = true} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    %1 = oriel.linear_weight_grad %v2, %c {origin = 3 : i64} : (tensor<4x16xf32>, tensor<4x8xf32>) -> tensor<16x8xf32>
    %2 = oriel.activation_grad %0, %v1 {kind = "gelu", origin = 2 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = oriel.linear_weight_grad %v0, %2 {origin = 1 : i64} : (tensor<4x8xf32>, tensor<4x16xf32>) -> tensor<8x16xf32>
    return %1, %3 : tensor<16x8xf32>, tensor<8x16xf32>
  }
}

// -----

// Attention: the probabilities are computed again from the kept query and key, by both policies.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[Q:.*]] = oriel.exp
// CHECK: %[[K:.*]] = oriel.tanh
// SELECTIVE: return %[[Q]], %[[K]], %{{[0-9]+}} : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>
// CHECK-LABEL: func.func @backward(
// SELECTIVE-SAME: %[[Q:[^:]*]]: tensor<2x8x4xf32> {oriel.kind = "stash", oriel.ref = "q"}
// SELECTIVE-SAME: %[[K:[^:]*]]: tensor<2x8x4xf32> {oriel.kind = "stash", oriel.ref = "k"}
// SELECTIVE: %[[C:.*]] = oriel.constant {{.*}}oriel.recomputed
// SELECTIVE: %[[S:.*]] = oriel.matmul %[[Q]], %[[K]] {oriel.recomputed
// SELECTIVE: %[[M:.*]] = oriel.mul %[[S]], %[[C]] {oriel.recomputed
// SELECTIVE: %[[P:.*]] = oriel.softmax %[[M]] {dim = 2 : i64, oriel.recomputed
// SELECTIVE-NOT: oriel.recomputed
// SELECTIVE: oriel.softmax_grad %{{.*}}, %[[P]]
module attributes {oriel.blocks = array<i64: 0, 0, 0, 0, 0, 0>} {
  func.func @forward(%x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x8x4xf32> {oriel.kind = "stash", oriel.ref = "q"},
          tensor<2x8x4xf32> {oriel.kind = "stash", oriel.ref = "k"},
          tensor<2x8x8xf32> {oriel.kind = "stash", oriel.ref = "p"},
          tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x {origin = 0 : i64} : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %1 = oriel.tanh %x {origin = 1 : i64} : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %c = oriel.constant {origin = 2 : i64, value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
    %2 = oriel.matmul %0, %1 {origin = 3 : i64, transpose_rhs = true} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>) -> tensor<2x8x8xf32>
    %3 = oriel.mul %2, %c {origin = 3 : i64} : (tensor<2x8x8xf32>, tensor<f32>) -> tensor<2x8x8xf32>
    %4 = oriel.softmax %3 {dim = 2 : i64, origin = 4 : i64} : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %5 = oriel.matmul %4, %x {origin = 5 : i64} : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    return %0, %1, %4, %5 : tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x8xf32>, tensor<2x8x4xf32>
  }
  func.func @backward(%q: tensor<2x8x4xf32> {oriel.kind = "stash", oriel.ref = "q"},
      %k: tensor<2x8x4xf32> {oriel.kind = "stash", oriel.ref = "k"},
      %p: tensor<2x8x8xf32> {oriel.kind = "stash", oriel.ref = "p"},
      %c: tensor<2x8x8xf32> {oriel.kind = "input", oriel.ref = "c"})
      -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "dk"},
          tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "dq"}) {
    %0 = oriel.softmax_grad %c, %p {dim = 2 : i64, origin = 4 : i64} : (tensor<2x8x8xf32>, tensor<2x8x8xf32>) -> tensor<2x8x8xf32>
    %1 = oriel.matmul %0, %q {origin = 3 : i64, transpose_lhs = true} : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    %2 = oriel.matmul %0, %k {origin = 3 : i64} : (tensor<2x8x8xf32>, tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    return %1, %2 : tensor<2x8x4xf32>, tensor<2x8x4xf32>
  }
}

// -----

// A parameter that is gathered for the clone too is gathered once, in front of the clone. What is
// received comes but once, so it is kept.
// CHECK-LABEL: func.func @forward.0(
// FULL: %[[X:.*]] = oriel.receive
// FULL: return %[[X]] :
// CHECK-LABEL: func.func @backward.0(
// FULL-SAME: %[[X:[^ ]*]]: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "remat.0.forward.0"}
// FULL: %[[W:.*]] = oriel.all_gather
// FULL: %[[H:.*]] = oriel.linear %[[X]], %[[W]] {oriel.recomputed
// FULL: %[[E:.*]] = oriel.exp %[[H]] {oriel.recomputed
// FULL: %[[D:.*]] = oriel.mul %{{.*}}, %[[E]]
// FULL-NOT: oriel.all_gather
// FULL: oriel.linear %[[D]], %[[W]] {
module attributes {oriel.blocks = array<i64: -1, 0, 0>} {
  module @p0 attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
    func.func @forward.0(%w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
        -> (tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "e"}) {
      %x = oriel.receive {channel = "c", peer = "p1", origin = 0 : i64} : () -> tensor<4x8xf32>
      %0 = oriel.all_gather %w {axes = ["a0"], dim = 1 : i64, origin = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x16xf32>
      %1 = oriel.linear %x, %0 {origin = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
      %2 = oriel.exp %1 {origin = 2 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
      return %2 : tensor<4x16xf32>
    }
    func.func @backward.0(%e: tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "e"},
        %c: tensor<4x16xf32> {oriel.kind = "input", oriel.ref = "c"},
        %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
        -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "dx"}) {
      %0 = oriel.mul %c, %e {origin = 2 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
      %1 = oriel.all_gather %w {axes = ["a0"], dim = 1 : i64, origin = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x16xf32>
      %2 = oriel.linear %0, %1 {origin = 1 : i64, transpose_weight = true} : (tensor<4x16xf32>, tensor<8x16xf32>) -> tensor<4x8xf32>
      return %2 : tensor<4x8xf32>
    }
  }
}

// -----

// What other segments read from the stash stays, and serves the clones. A value that is in a block
// for one of the halves of a backward is computed by each half that needs it.
// CHECK-LABEL: func.func @forward.0(
// FULL: %[[H:.*]] = oriel.exp
// FULL: return %[[H]] :
// CHECK-LABEL: func.func @backward_input.0(
// FULL-SAME: %[[H:[^ ]*]]: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "h"}
// FULL: oriel.exp %[[H]] {oriel.recomputed
// CHECK-LABEL: func.func @backward_weight.0(
// FULL-SAME: %[[H:[^ ]*]]: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "h"}
// FULL: oriel.exp %[[H]] {oriel.recomputed
module attributes {oriel.blocks = array<i64: 0, 0>} {
  func.func @forward.0(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "h"},
          tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "e"}) {
    %0 = oriel.exp %x {origin = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.exp %0 {origin = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
  }
  func.func @forward.1(%h: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "h"}) {
    return
  }
  func.func @backward_input.0(%e: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "e"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "dx"}) {
    %0 = oriel.neg %e {origin = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
  func.func @backward_weight.0(%e: tensor<4x8xf32> {oriel.kind = "stash", oriel.ref = "e"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "dw"}) {
    %0 = oriel.abs %e {origin = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0 : tensor<4x8xf32>
  }
}
