// RUN: oriel-opt %s --oriel-lower-to-exec --split-input-file --verify-diagnostics | FileCheck %s

// The stash is one buffer over forward and backward; a chain of unary ops runs in place.
// CHECK-LABEL: exec.program @ranks
// CHECK-SAME: rank_count = 2
// CHECK-DAG: exec.buffer @[[X:.*]] : tensor<4xf32> {kind = "input", {{.*}}ref = "x"}
// CHECK-DAG: exec.buffer @[[G:.*]] : tensor<4xf32> {kind = "gradient", {{.*}}ref = "p0"}
// CHECK-DAG: exec.buffer @[[S:.*]] : tensor<4xf32> {kind = "stash", {{.*}}ref = "s0"}
// CHECK: exec.segment @forward attributes {predicted_ms = {{[0-9.eE-]+}} : f64}
// CHECK-NEXT: exec.launch "exp" [@[[X]]] -> [@[[S]]] {} from "oriel.exp"
// CHECK-NEXT: exec.launch "tanh" [@[[S]]] -> [@[[T:.*]]] {} from "oriel.tanh"
// CHECK-NEXT: exec.launch "neg" [@[[T]]] -> [@[[T]]]
// CHECK: exec.segment @backward
// The gradient is accumulated where it is.
// CHECK-NEXT: exec.launch "add" [@[[G]], @[[S]]] -> [@[[G]]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s0"}, tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.tanh %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = oriel.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %2 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @backward(%s: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.add %g, %s : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A splat that becomes the new value is filled in after the last read; the collective works in
// place; a view makes no instruction.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[P:.*]] : tensor<4xf32> {kind = "parameter"
// CHECK-DAG: exec.buffer @[[G:.*]] : tensor<4xf32> {kind = "gradient"
// CHECK: exec.segment @update
// CHECK-NEXT: exec.collective "all_reduce" "sum" ["a0"] [@[[G]]] -> [@[[G]]]
// CHECK-NEXT: exec.launch "sub" [@[[P]], @[[G]]] -> [@[[P]]]
// CHECK-NEXT: exec.launch "reduce_sum" [@[[V:.*]]] -> [@{{.*}}] {dims = array<i64: 0, 1>, keep_dims = false}
// CHECK-NEXT: exec.launch "fill" [] -> [@[[G]]] {value = 0.000000e+00 : f64}
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @update(%p: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
          tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
          tensor<f32> {oriel.kind = "output", oriel.ref = "norm"}) {
    %r = oriel.all_reduce %g {axes = ["a0"], reduction = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
    %n = oriel.sub %p, %r : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %v = oriel.reshape %r : (tensor<4xf32>) -> tensor<2x2xf32>
    %s = oriel.reduce_sum %v {dims = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<f32>
    %z = oriel.constant {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
    return %n, %z, %s : tensor<4xf32>, tensor<4xf32>, tensor<f32>
  }
}

// -----

// What moves pieces becomes one instruction each.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[X:.*]] : tensor<4x4xf32> {kind = "input"
// CHECK: exec.segment @forward
// CHECK-NEXT: exec.collective "all_gather" ["a0"] [@[[X]]] -> [@[[A:.*]]] from "oriel.all_gather" {concat_dims = array<i64: 1>}
// CHECK-NEXT: exec.collective "all_to_all" ["a1"] [@[[A]]] -> [@[[B:.*]]] from "oriel.all_to_all" {concat_dims = array<i64: 0>, split_dims = array<i64: 1>}
// CHECK-NEXT: exec.collective "reduce_scatter" "max" ["a0", "a1"] [@[[B]]] -> [@[[C:.*]]] from "oriel.reduce_scatter" {split_dims = array<i64: 0>}
// CHECK-NEXT: exec.slice 1 ["a1"] [@[[C]]] -> [@[[D:.*]]] from "oriel.slice_local"
module attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x2xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %a = oriel.all_gather %x {axes = ["a0"], dim = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x8xf32>
    %b = oriel.all_to_all %a {axes = ["a1"], concat_dim = 0 : i64, split_dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<8x4xf32>
    %c = oriel.reduce_scatter %b {axes = ["a0", "a1"], dim = 0 : i64, reduction = "max"} : (tensor<8x4xf32>) -> tensor<2x4xf32>
    %d = oriel.slice_local %c {axes = ["a1"], dim = 1 : i64} : (tensor<2x4xf32>) -> tensor<2x2xf32>
    return %d : tensor<2x2xf32>
  }
}

// -----

// What is started is waited for by its place; a bucket is one instruction. Until then nothing
// lies where its operands and results do, but that the all-reduce works in place.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[X:.*]] : tensor<4x4xf32> {kind = "input"
// CHECK: exec.segment @forward
// CHECK-NEXT: exec.launch "exp" [@[[X]]] -> [@[[E:[a-z0-9]*]]] {}
// CHECK-NEXT: exec.collective "all_gather" ["a0"] [@[[X]], @[[X]]] -> [@[[A:[a-z0-9]*]], @[[B:[a-z0-9]*]]] from "oriel.all_gather" {concat_dims = array<i64: 1, 0>, stream = 1 : i64}
// CHECK-NEXT: exec.collective "all_reduce" "sum" ["a1"] [@[[E]]] -> [@[[E]]] from "oriel.all_reduce" {stream = 2 : i64}
// CHECK-NEXT: exec.launch "tanh" [@[[X]]] -> [@[[T:[a-z0-9]*]]]
// CHECK-NEXT: exec.wait 2
// CHECK-NEXT: exec.launch "add" [@[[E]], @[[T]]]
// CHECK-NEXT: exec.wait 1
// CHECK-NEXT: exec.launch "matmul" [@[[B]], @[[A]]]
module attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4x4xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8x8xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %e = oriel.exp %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %a = oriel.all_gather %x {axes = ["a0"], dim = 1 : i64, oriel.bucket = 7 : i64, oriel.stream = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x8xf32>
    %b = oriel.all_gather %x {axes = ["a0"], dim = 0 : i64, oriel.bucket = 7 : i64, oriel.stream = 1 : i64} : (tensor<4x4xf32>) -> tensor<8x4xf32>
    %r = oriel.all_reduce %e {axes = ["a1"], oriel.stream = 2 : i64, reduction = "sum"} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %t = oriel.tanh %x : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %re = oriel.wait %r : (tensor<4x4xf32>) -> tensor<4x4xf32>
    %y = oriel.add %re, %t : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %w:2 = oriel.wait %a, %b : (tensor<4x8xf32>, tensor<8x4xf32>) -> (tensor<4x8xf32>, tensor<8x4xf32>)
    %z = oriel.matmul %w#1, %w#0 : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
    return %y, %z : tensor<4x4xf32>, tensor<8x8xf32>
  }
}

// -----

// A group of one makes the operand's type, and still no result in place of it.
// CHECK-LABEL: exec.program @ranks
// CHECK: exec.launch "exp" [@{{.*}}] -> [@[[E:[a-z0-9]*]]] {}
// CHECK-NOT: [@[[E]]] -> [@[[E]]]
// CHECK: exec.collective "all_gather" ["a0"] [@[[E]]] -> [@[[F:[a-z0-9]*]]]
module attributes {oriel.grid = {a0 = 1 : i64}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.all_gather %0 {axes = ["a0"], dim = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %2 = oriel.neg %1 : (tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}

// -----

// The schedule becomes the runs of the program.
// CHECK-LABEL: exec.program @ranks
// CHECK: exec.segment @forward
// CHECK: exec.run @forward {microbatch = 0 : i64}
// CHECK-NEXT: exec.run @forward {microbatch = 1 : i64}
module attributes {oriel.grid = {}, oriel.mesh = {}, oriel.schedule = [["forward", 0], ["forward", 1]]} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

// An operand that is read later is not overwritten.
// CHECK-LABEL: exec.program @ranks
// CHECK: exec.launch "exp" [@[[X:.*]]] -> [@[[A:.*]]] {} from
// CHECK-NEXT: exec.launch "neg" [@[[A]]] -> [@[[B:.*]]] {} from
// CHECK-NEXT: exec.launch "add" [@[[A]], @[[B]]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
    %2 = oriel.add %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}

// -----

// An old value that is read by the host is copied out before the new one is filled in.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[N:.*]] : tensor<f32> {kind = "accumulator"
// CHECK-DAG: exec.buffer @[[OUT:.*]] : tensor<f32> {kind = "output"
// CHECK: exec.segment @update
// CHECK-NEXT: exec.copy [@[[N]]] -> [@[[OUT]]]
// CHECK-NEXT: exec.launch "fill" [] -> [@[[N]]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @update(%n: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "token_count"})
      -> (tensor<f32> {oriel.kind = "accumulator", oriel.ref = "token_count"},
          tensor<f32> {oriel.kind = "output", oriel.ref = "token_count"}) {
    %z = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
    return %z, %n : tensor<f32>, tensor<f32>
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error@+1 {{reads stash 's0', which no earlier segment writes}}
  func.func @stash_without_writer(%s: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s0"}) {
    return
  }
}

// -----

module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
  // expected-error@+1 {{uses input 'x' as 'tensor<8xf32>', but another segment as 'tensor<4xf32>'}}
  func.func @type_differs(%x: tensor<8xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

// expected-error@+1 {{has no segment to lower}}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
}
