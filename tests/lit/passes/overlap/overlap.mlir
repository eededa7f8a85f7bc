// RUN: oriel-opt %s --oriel-overlap="bucket=64 prefetch=64" --split-input-file | FileCheck %s

// Each list of axes has a stream. A start stands behind what it takes, its wait before its user.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[A:.*]] = oriel.exp
// CHECK-NEXT: %[[R:.*]] = oriel.all_reduce %[[A]] {axes = ["a0"], oriel.stream = 1 : i64
// CHECK-NEXT: %[[S:.*]] = oriel.all_reduce %[[A]] {axes = ["a1"], oriel.stream = 2 : i64
// CHECK-NEXT: %[[B:.*]] = oriel.tanh
// CHECK-NEXT: %[[RW:.*]] = oriel.wait %[[R]]
// CHECK-NEXT: %[[C:.*]] = oriel.matmul %[[RW]], %[[B]]
// CHECK-NEXT: %[[SW:.*]] = oriel.wait %[[S]]
// CHECK-NEXT: oriel.matmul %[[SW]], %[[C]]
module attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %a = oriel.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %r = oriel.all_reduce %a {axes = ["a0"], reduction = "sum"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %s = oriel.all_reduce %a {axes = ["a1"], reduction = "sum"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %b = oriel.tanh %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %c = oriel.matmul %r, %b : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %d = oriel.matmul %s, %c : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %d : tensor<4x4xf32>
  }
}

// -----

// Parts of gradients are reduced in buckets of up to 64 bytes while the rest is computed; the sums
// step back behind that.
// CHECK-LABEL: func.func @backward(
// CHECK: %[[D0:.*]] = oriel.matmul
// CHECK-NEXT: %[[D1:.*]] = oriel.matmul
// CHECK-NEXT: %[[R0:.*]] = oriel.reduce_scatter %[[D0]] {axes = ["a0"], dim = 0 : i64, oriel.bucket = 0 : i64, oriel.stream = 1 : i64
// CHECK-NEXT: %[[R1:.*]] = oriel.reduce_scatter %[[D1]] {axes = ["a0"], dim = 0 : i64, oriel.bucket = 0 : i64, oriel.stream = 1 : i64
// CHECK-NEXT: %[[D2:.*]] = oriel.matmul
// CHECK-NEXT: %[[R2:.*]] = oriel.reduce_scatter %[[D2]] {axes = ["a0"], dim = 0 : i64, oriel.stream = 1 : i64
// One bucket's bytes may be on their way: the older one is waited for.
// CHECK-NEXT: %[[W:.*]]:2 = oriel.wait %[[R0]], %[[R1]]
// CHECK-NEXT: oriel.add %{{.*}}, %[[W]]#0
// CHECK-NEXT: oriel.add %{{.*}}, %[[W]]#1
// CHECK-NEXT: %[[X:.*]] = oriel.wait %[[R2]]
// CHECK-NEXT: oriel.add %{{.*}}, %[[X]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {}} {
  func.func @backward(%x: tensor<2x4xf32> {oriel.kind = "stash", oriel.ref = "x"}, %w: tensor<4x4xf32> {oriel.kind = "stash", oriel.ref = "w"},
                      %g0: tensor<1x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                      %g1: tensor<1x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"},
                      %g2: tensor<1x4xf32> {oriel.kind = "gradient", oriel.ref = "p2"})
      -> (tensor<1x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}, tensor<1x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"},
          tensor<1x4xf32> {oriel.kind = "gradient", oriel.ref = "p2"}) {
    %d0 = oriel.matmul %x, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %r0 = oriel.reduce_scatter %d0 {axes = ["a0"], dim = 0 : i64, reduction = "sum"} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %s0 = oriel.add %g0, %r0 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %d1 = oriel.matmul %d0, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %r1 = oriel.reduce_scatter %d1 {axes = ["a0"], dim = 0 : i64, reduction = "sum"} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %s1 = oriel.add %g1, %r1 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    %d2 = oriel.matmul %d1, %w : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %r2 = oriel.reduce_scatter %d2 {axes = ["a0"], dim = 0 : i64, reduction = "sum"} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %s2 = oriel.add %g2, %r2 : (tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<1x4xf32>
    return %s0, %s1, %s2 : tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
  }
}

// -----

// Parameters are gathered ahead of their use, 64 bytes at most; half of that travels as one.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[P0:.*]] = oriel.all_gather %{{.*}} oriel.stream = 1 : i64}
// CHECK-NEXT: %[[W0:.*]] = oriel.wait %[[P0]]
// CHECK-NEXT: %[[P1:.*]] = oriel.all_gather
// CHECK-NEXT: oriel.linear %{{.*}}, %[[W0]]
// CHECK-NEXT: %[[W1:.*]] = oriel.wait %[[P1]]
// CHECK-NEXT: %[[P2:.*]] = oriel.all_gather
// CHECK-NEXT: oriel.linear %{{.*}}, %[[W1]]
// CHECK-NEXT: %[[W2:.*]] = oriel.wait %[[P2]]
// CHECK-NEXT: oriel.linear %{{.*}}, %[[W2]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
                     %p0: tensor<2x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %p1: tensor<2x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
                     %p2: tensor<2x4xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<4x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %w0 = oriel.all_gather %p0 {axes = ["a0"], dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %0 = oriel.linear %x, %w0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %w1 = oriel.all_gather %p1 {axes = ["a0"], dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %1 = oriel.linear %0, %w1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %w2 = oriel.all_gather %p2 {axes = ["a0"], dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %2 = oriel.linear %1, %w2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}

// -----

// A receive stands before its first user, a send behind what it sends.
// CHECK-LABEL: func.func @forward.1(
// CHECK: %[[E:.*]] = oriel.exp
// CHECK-NEXT: oriel.send %[[E]]
// CHECK-NEXT: %[[T:.*]] = oriel.tanh
// CHECK-NEXT: %[[R:.*]] = oriel.receive
// CHECK-NEXT: oriel.add %[[T]], %[[R]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {}} {
  func.func @forward.1(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %r = oriel.receive {channel = "c", peer = "p0"} : () -> tensor<4xf32>
    %e = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %t = oriel.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
    %y = oriel.add %t, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    oriel.send %e {channel = "d", peer = "p2"} : (tensor<4xf32>) -> ()
    return %y : tensor<4xf32>
  }
}

// -----

// Collectives start when what they take is there, wherever they stand.
// CHECK-LABEL: func.func @update(
// CHECK: %[[A:.*]] = oriel.matmul
// CHECK-NEXT: %[[S:.*]] = oriel.all_gather %[[A]]
// CHECK-NEXT: %[[B:.*]] = oriel.matmul
// CHECK-NEXT: %[[T:.*]] = oriel.all_gather %[[B]]
// CHECK: oriel.wait %[[S]]
// CHECK: oriel.wait %[[T]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {}} {
  func.func @update(%p: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, %q: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %a = oriel.matmul %p, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %b = oriel.matmul %q, %p : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = oriel.all_gather %a {axes = ["a0"], dim = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %z = oriel.all_gather %b {axes = ["a0"], dim = 0 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    return %y, %z : tensor<8x4xf32>, tensor<8x4xf32>
  }
}
