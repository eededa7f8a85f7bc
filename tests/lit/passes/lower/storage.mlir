// RUN: oriel-opt %s --oriel-lower-to-exec --split-input-file | FileCheck %s
// Which values may share bytes: see passes/lower/storage.cc.

// A view keeps the old value in use: the sum is not computed over it.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[G:[a-z0-9]*]] : tensor<4xf32> {kind = "gradient"
// CHECK: exec.segment @view_is_read_later
// CHECK-NEXT: exec.launch "exp" [@[[G]]] -> [@[[SUM:.*]]] {}
// CHECK-NEXT: exec.launch "reduce_sum"
// CHECK-NEXT: exec.copy [@[[SUM]]] -> [@[[G]]] from "return"
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @view_is_read_later(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}, tensor<f32> {oriel.kind = "output", oriel.ref = "y"}) {
    %view = oriel.reshape %g : (tensor<4xf32>) -> tensor<2x2xf32>
    %new = oriel.exp %g : (tensor<4xf32>) -> tensor<4xf32>
    %sum = oriel.reduce_sum %view {dims = array<i64: 0, 1>} : (tensor<2x2xf32>) -> tensor<f32>
    return %new, %sum : tensor<4xf32>, tensor<f32>
  }
}

// -----

// An operand that is the same bytes under another shape is read at other positions: no overwrite.
// CHECK-LABEL: exec.program @ranks
// CHECK: exec.segment @broadcast_view
// CHECK-NEXT: exec.launch "exp" [@{{.*}}] -> [@[[T:.*]]] {}
// CHECK-NEXT: exec.launch "add" [@[[T]], @[[VIEW:.*]]] -> [@[[SUM:.*]]] {}
// CHECK-NOT: exec.launch
// CHECK-DAG: exec.buffer @[[T]] : tensor<1x4xf32> {kind = "temporary", offset = [[AT:[0-9]+]] : i64}
// CHECK-DAG: exec.buffer @[[VIEW]] : tensor<4xf32> {kind = "temporary", offset = [[AT]] : i64}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @broadcast_view(%x: tensor<1x4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<1x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<1x4xf32>) -> tensor<1x4xf32>
    %1 = oriel.reshape %0 : (tensor<1x4xf32>) -> tensor<4xf32>
    %2 = oriel.add %0, %1 : (tensor<1x4xf32>, tensor<4xf32>) -> tensor<1x4xf32>
    return %2 : tensor<1x4xf32>
  }
}

// -----

// What the host, another segment or the next step still wants is not overwritten: an input, a
// constant, a parameter that gets no new value.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[X:[a-z0-9]*]] : tensor<2xf32> {kind = "input"
// CHECK-DAG: exec.buffer @[[P:[a-z0-9]*]] : tensor<2xf32> {kind = "parameter"
// CHECK-DAG: exec.buffer @[[C:[a-z0-9]*]] : tensor<2xf32> {kind = "constant"
// CHECK: exec.segment @kept
// CHECK-NEXT: exec.launch "exp" [@[[X]]] -> [@[[A:.*]]] {}
// CHECK-NEXT: exec.launch "exp" [@[[P]]] -> [@[[B:.*]]] {}
// CHECK-NEXT: exec.launch "exp" [@[[C]]] -> [@[[D:.*]]] {}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @kept(%x: tensor<2xf32> {oriel.kind = "input", oriel.ref = "x"},
                  %p: tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2xf32> {oriel.kind = "output", oriel.ref = "a"}, tensor<2xf32> {oriel.kind = "output", oriel.ref = "b"},
          tensor<2xf32> {oriel.kind = "output", oriel.ref = "d"}) {
    %c = oriel.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %0 = oriel.exp %x : (tensor<2xf32>) -> tensor<2xf32>
    %1 = oriel.exp %p : (tensor<2xf32>) -> tensor<2xf32>
    %2 = oriel.exp %c : (tensor<2xf32>) -> tensor<2xf32>
    return %0, %1, %2 : tensor<2xf32>, tensor<2xf32>, tensor<2xf32>
  }
}

// -----

// Three results of one op, each over the operand that it replaces.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[P:[a-z0-9]*]] : tensor<4xf32> {kind = "parameter"
// CHECK-DAG: exec.buffer @[[M:[a-z0-9]*]] : tensor<4xf32> {kind = "optimizer_state", {{.*}}slot = "exp_avg"}
// CHECK-DAG: exec.buffer @[[V:[a-z0-9]*]] : tensor<4xf32> {kind = "optimizer_state", {{.*}}slot = "exp_avg_sq"}
// CHECK: exec.segment @update
// CHECK-NEXT: exec.launch "adamw" [@[[P]], @{{.*}}, @[[M]], @[[V]], {{.*}}] -> [@[[P]], @[[M]], @[[V]]]
// CHECK-NOT: exec.copy
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @update(%p: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                    %m: tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "exp_avg"},
                    %v: tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "exp_avg_sq"},
                    %s: tensor<f32> {oriel.kind = "scalar", oriel.ref = "step"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
          tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "exp_avg"},
          tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "p0", oriel.slot = "exp_avg_sq"}) {
    %0:3 = oriel.adamw %p, %g, %m, %v, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.99 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %0#0, %0#1, %0#2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// An operand of a collective that stands there twice: neither result lies over it.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[A:[a-z0-9]*]] : tensor<4xf32> {kind = "output", {{.*}}ref = "a"}
// CHECK-DAG: exec.buffer @[[B:[a-z0-9]*]] : tensor<4xf32> {kind = "output", {{.*}}ref = "b"}
// CHECK: exec.segment @operand_twice
// CHECK-NEXT: exec.launch "exp" [@{{.*}}] -> [@[[T:.*]]] {}
// CHECK-NEXT: exec.collective "all_reduce" "sum" ["a0"] [@[[T]], @[[T]]] -> [@[[A]], @[[B]]]
// CHECK-DAG: exec.buffer @[[T]] : tensor<4xf32> {kind = "temporary"
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @operand_twice(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "a"}, tensor<4xf32> {oriel.kind = "output", oriel.ref = "b"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1:2 = oriel.all_reduce %0, %0 {axes = ["a0"], reduction = "sum"} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
    return %1#0, %1#1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// An old value that is an output: the new one waits aside, and the old one is copied out first.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[P:[a-z0-9]*]] : tensor<4xf32> {kind = "parameter"
// CHECK-DAG: exec.buffer @[[OLD:[a-z0-9]*]] : tensor<4xf32> {kind = "output"
// CHECK: exec.segment @old_value_out
// CHECK-NEXT: exec.launch "exp" [@[[P]]] -> [@[[NEW:.*]]] {}
// CHECK-NEXT: exec.copy [@[[P]]] -> [@[[OLD]]]
// CHECK-NEXT: exec.copy [@[[NEW]]] -> [@[[P]]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @old_value_out(%p: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, tensor<4xf32> {oriel.kind = "output", oriel.ref = "old"}) {
    %0 = oriel.exp %p : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %p : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// One new value of two gradients and an output: computed in one place, copied to the others.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[A:[a-z0-9]*]] : tensor<4xf32> {kind = "gradient", {{.*}}ref = "a"}
// CHECK-DAG: exec.buffer @[[B:[a-z0-9]*]] : tensor<4xf32> {kind = "gradient", {{.*}}ref = "b"}
// CHECK-DAG: exec.buffer @[[Y:[a-z0-9]*]] : tensor<4xf32> {kind = "output"
// CHECK: exec.segment @one_value_of_three
// CHECK-NEXT: exec.launch "exp" [@{{.*}}] -> [@[[A]]] {}
// CHECK-NEXT: exec.copy [@[[A]]] -> [@[[Y]]]
// CHECK-NEXT: exec.copy [@[[A]]] -> [@[[B]]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @one_value_of_three(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "a"}, tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "b"},
          tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return %0, %0, %0 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A value and a view of it as two stash values: two buffers, since each may be freed by itself.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[S:[a-z0-9]*]] : tensor<4xf32> {kind = "stash", {{.*}}ref = "s"}
// CHECK-DAG: exec.buffer @[[T:[a-z0-9]*]] : tensor<2x2xf32> {kind = "stash", {{.*}}ref = "t"}
// CHECK: exec.segment @forward
// CHECK-NEXT: exec.launch "exp" [@{{.*}}] -> [@[[S]]] {}
// CHECK-NEXT: exec.copy [@{{.*}}] -> [@[[T]]]
// CHECK: exec.segment @backward
// The stash is read-only, also at its last use.
// CHECK-NEXT: exec.launch "neg" [@[[S]]] -> [@[[N:.*]]] {}
// CHECK-NEXT: exec.launch "neg" [@[[T]]] -> [@[[M:.*]]] {}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s"}, tensor<2x2xf32> {oriel.kind = "stash", oriel.ref = "t"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reshape %0 : (tensor<4xf32>) -> tensor<2x2xf32>
    return %0, %1 : tensor<4xf32>, tensor<2x2xf32>
  }
  func.func @backward(%s: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "s"}, %t: tensor<2x2xf32> {oriel.kind = "stash", oriel.ref = "t"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<2x2xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.neg %s : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.neg %t : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %0, %1 : tensor<4xf32>, tensor<2x2xf32>
  }
}

// -----

// Splats that are only returned are filled in by the number as its type has it: true is 1, 200 of
// ui8 is not negative. One that a double does not hold is a constant.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[BIG:[a-z0-9]*]] : tensor<2xi64> {kind = "constant", {{.*}}value = dense<9007199254740993>
// CHECK: exec.segment @splats
// CHECK-NEXT: exec.launch "fill" [] -> [@{{.*}}] {value = 1.000000e+00 : f64}
// CHECK-NEXT: exec.launch "fill" [] -> [@{{.*}}] {value = 2.000000e+02 : f64}
// CHECK-NEXT: exec.launch "fill" [] -> [@{{.*}}] {value = -5.600000e+01 : f64}
// CHECK-NEXT: exec.copy [@[[BIG]]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @splats()
      -> (tensor<4xi1> {oriel.kind = "output", oriel.ref = "a"}, tensor<4xui8> {oriel.kind = "output", oriel.ref = "b"},
          tensor<4xi8> {oriel.kind = "output", oriel.ref = "c"}, tensor<2xi64> {oriel.kind = "output", oriel.ref = "d"}) {
    %0 = oriel.constant {value = dense<true> : tensor<4xi1>} : () -> tensor<4xi1>
    %1 = oriel.constant {value = dense<200> : tensor<4xui8>} : () -> tensor<4xui8>
    %2 = oriel.constant {value = dense<-56> : tensor<4xi8>} : () -> tensor<4xi8>
    %3 = oriel.constant {value = dense<9007199254740993> : tensor<2xi64>} : () -> tensor<2xi64>
    return %0, %1, %2, %3 : tensor<4xi1>, tensor<4xui8>, tensor<4xi8>, tensor<2xi64>
  }
}

// -----

// What runs for the last microbatch has the stash where the other segment has it, where that has
// others once it has read it; what it sends leaves from the same buffer. Input, gradient, transfer
// and two more.
// CHECK-LABEL: exec.program @ranks attributes {arena_bytes = 1280 : i64
// CHECK-DAG: exec.buffer @[[S:[a-z0-9]*]] : tensor<64xf32> {kind = "stash"
// CHECK-DAG: exec.buffer @[[T:[a-z0-9]*]] : tensor<64xf32> {kind = "transfer"
// CHECK: exec.segment @backward attributes
// CHECK-NEXT: exec.launch "transpose" [@[[S]]]
// CHECK: exec.send "c" to "p0" [@[[T]]]
// CHECK: exec.segment @backward_last
// CHECK-NEXT: exec.launch "transpose" [@[[S]]]
// CHECK: exec.send "c" to "p0" [@[[T]]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<64xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<64xf32> {oriel.kind = "stash", oriel.ref = "s"}) {
    %0 = oriel.exp %x : (tensor<64xf32>) -> tensor<64xf32>
    return %0 : tensor<64xf32>
  }
  func.func @backward(%s: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "s"}, %g: tensor<64xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<64xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.transpose %s {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    oriel.send %0 {channel = "c", peer = "p0"} : (tensor<64xf32>) -> ()
    %1 = oriel.transpose %0 {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    %2 = oriel.add %g, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    return %2 : tensor<64xf32>
  }
  func.func @backward_last(%s: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "s"}, %g: tensor<64xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<64xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.transpose %s {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    oriel.send %0 {channel = "c", peer = "p0"} : (tensor<64xf32>) -> ()
    %1 = oriel.transpose %0 {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    %2 = oriel.add %g, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    return %2 : tensor<64xf32>
  }
}

// -----

// What a stash or a gradient shows as a view is computed right there, by the segment that writes it
// first and by the one that takes its place for the last microbatch.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[S:[a-z0-9]*]] : tensor<64xf32> {kind = "stash", offset = [[AT:[0-9]+]] : i64
// CHECK-DAG: exec.buffer @[[G:[a-z0-9]*]] : tensor<8x8xf32> {kind = "gradient", offset = [[GRADIENT:[0-9]+]] : i64
// CHECK: exec.segment @backward attributes
// CHECK-NEXT: exec.launch "exp" [@{{.*}}] -> [@[[VIEW:[a-z0-9]*]]] {}
// CHECK-NEXT: exec.launch "add" {{.*}} -> [@[[NEW:[a-z0-9]*]]] {}
// CHECK-NEXT: {{^ *}$}}
// CHECK-DAG: exec.buffer @[[NEW]] : tensor<64xf32> {kind = "temporary", offset = [[GRADIENT]] : i64
// CHECK-DAG: exec.buffer @[[VIEW]] : tensor<8x8xf32> {kind = "temporary", offset = [[AT]] : i64
// CHECK: exec.segment @backward_last
// CHECK-NEXT: exec.launch "exp" [@{{.*}}] -> [@[[VIEW]]] {}
// CHECK-NEXT: exec.launch "add" {{.*}} -> [@[[NEW]]] {}
// CHECK-NEXT: {{^ *}$}}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @backward(%x: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "x"}, %g: tensor<8x8xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<64xf32> {oriel.kind = "stash", oriel.ref = "s"}, tensor<8x8xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = oriel.reshape %0 : (tensor<8x8xf32>) -> tensor<64xf32>
    %2 = oriel.reshape %g : (tensor<8x8xf32>) -> tensor<64xf32>
    %3 = oriel.add %2, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %4 = oriel.reshape %3 : (tensor<64xf32>) -> tensor<8x8xf32>
    return %1, %4 : tensor<64xf32>, tensor<8x8xf32>
  }
  func.func @backward_last(%x: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "x"}, %g: tensor<8x8xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<64xf32> {oriel.kind = "stash", oriel.ref = "s"}, tensor<8x8xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.exp %x : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = oriel.reshape %0 : (tensor<8x8xf32>) -> tensor<64xf32>
    %2 = oriel.reshape %g : (tensor<8x8xf32>) -> tensor<64xf32>
    %3 = oriel.add %2, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %4 = oriel.reshape %3 : (tensor<64xf32>) -> tensor<8x8xf32>
    return %1, %4 : tensor<64xf32>, tensor<8x8xf32>
  }
}

// -----

// Stash is written over by what reads it last, if that op may: not while another op or a later segment
// still reads it, and not by what is returned.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[A:[a-z0-9]*]] : tensor<64xf32> {kind = "stash", offset = [[AT_A:[0-9]+]] : i64, ref = "a"}
// CHECK-DAG: exec.buffer @[[B:[a-z0-9]*]] : tensor<64xf32> {kind = "stash", offset = [[AT_B:[0-9]+]] : i64, ref = "b"}
// CHECK-DAG: exec.buffer @[[C:[a-z0-9]*]] : tensor<64xf32> {kind = "stash", offset = [[AT_C:[0-9]+]] : i64, ref = "c"}
// CHECK-DAG: exec.buffer @[[D:[a-z0-9]*]] : tensor<64xf32> {{{.*}}ref = "d"}
// CHECK-DAG: exec.buffer @[[E:[a-z0-9]*]] : tensor<64xf32> {{{.*}}ref = "e"}
// CHECK: exec.segment @backward_input attributes
// CHECK-NEXT: exec.launch "exp" [@[[A]]] -> [@[[EXP:[a-z0-9]*]]] {}
// CHECK-NEXT: exec.launch "sin" [@[[B]]] -> [@[[SIN:[a-z0-9]*]]] {}
// CHECK-NEXT: exec.launch "mul" [@[[B]], @[[SIN]]] -> [@[[MUL:[a-z0-9]*]]] {}
// CHECK-NEXT: exec.launch "cos" [@[[C]]] -> [@[[COS:[a-z0-9]*]]] {}
// CHECK-NEXT: exec.launch "exp" [@[[D]]] -> [@[[E]]] {}
// CHECK: exec.buffer @[[EXP]] : tensor<64xf32> {kind = "temporary", offset = [[AT_A]] : i64}
// CHECK-NEXT: exec.buffer @[[SIN]] : tensor<64xf32> {kind = "temporary", offset = [[FREE:[0-9]+]] : i64}
// CHECK-NEXT: exec.buffer @[[MUL]] : tensor<64xf32> {kind = "temporary", offset = [[AT_B]] : i64}
// CHECK-NEXT: exec.buffer @[[COS]] : tensor<64xf32> {kind = "temporary", offset = [[FREE]] : i64}
// CHECK: exec.segment @backward_weight attributes
// CHECK-NEXT: exec.launch "add" [@[[C]], @[[E]]] -> [@[[ADD:[a-z0-9]*]]] {}
// CHECK: exec.buffer @[[ADD]] : tensor<64xf32> {kind = "temporary", offset = [[AT_C]] : i64}
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<64xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<64xf32> {oriel.kind = "stash", oriel.ref = "a"}, tensor<64xf32> {oriel.kind = "stash", oriel.ref = "b"},
          tensor<64xf32> {oriel.kind = "stash", oriel.ref = "c"}, tensor<64xf32> {oriel.kind = "stash", oriel.ref = "d"}) {
    %0 = oriel.exp %x : (tensor<64xf32>) -> tensor<64xf32>
    %1 = oriel.sin %0 : (tensor<64xf32>) -> tensor<64xf32>
    %2 = oriel.cos %1 : (tensor<64xf32>) -> tensor<64xf32>
    %3 = oriel.tan %2 : (tensor<64xf32>) -> tensor<64xf32>
    return %0, %1, %2, %3 : tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>
  }
  func.func @backward_input(%a: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "a"}, %b: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "b"},
                            %c: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "c"}, %d: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "d"})
      -> (tensor<64xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<64xf32> {oriel.kind = "stash", oriel.ref = "e"}) {
    %0 = oriel.exp %a : (tensor<64xf32>) -> tensor<64xf32>
    %1 = oriel.sin %b : (tensor<64xf32>) -> tensor<64xf32>
    %2 = oriel.mul %b, %1 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %3 = oriel.cos %c : (tensor<64xf32>) -> tensor<64xf32>
    %4 = oriel.exp %d : (tensor<64xf32>) -> tensor<64xf32>
    %5 = oriel.add %2, %3 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %6 = oriel.transpose %5 {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    %7 = oriel.add %6, %0 : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %8 = oriel.transpose %7 {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    return %8, %4 : tensor<64xf32>, tensor<64xf32>
  }
  func.func @backward_weight(%c: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "c"}, %e: tensor<64xf32> {oriel.kind = "stash", oriel.ref = "e"})
      -> (tensor<64xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.add %c, %e : (tensor<64xf32>, tensor<64xf32>) -> tensor<64xf32>
    %1 = oriel.transpose %0 {permutation = array<i64: 0>} : (tensor<64xf32>) -> tensor<64xf32>
    return %1 : tensor<64xf32>
  }
}

// -----

// A gradient that the one backward of a step sets lies where the stash was, and update computes over
// it as soon as it has read it.
// CHECK-LABEL: exec.program @ranks
// CHECK-DAG: exec.buffer @[[S:[a-z0-9]*]] : tensor<32xf32> {kind = "stash", offset = [[AT:[0-9]+]] : i64
// CHECK-DAG: exec.buffer @[[G:[a-z0-9]*]] : tensor<32xf32> {kind = "step_gradient", offset = [[AT]] : i64, ref = "p0"}
// CHECK: exec.segment @update
// CHECK-NEXT: exec.launch "exp" [@[[G]]] -> [@[[G]]] {}
module attributes {oriel.grid = {}, oriel.mesh = {}, oriel.schedule = [["forward", 0], ["backward", 0], ["update", 0]]} {
  func.func @forward(%x: tensor<32xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<32xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
    %0 = oriel.exp %x : (tensor<32xf32>) -> tensor<32xf32>
    return %0 : tensor<32xf32>
  }
  func.func @backward(%s: tensor<32xf32> {oriel.kind = "stash", oriel.ref = "v0"})
      -> (tensor<32xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.reduce_sum %s {dims = array<i64: 0>} : (tensor<32xf32>) -> tensor<f32>
    %1 = oriel.broadcast %0 : (tensor<f32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
  func.func @update(%p: tensor<32xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, %g: tensor<32xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<32xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.exp %g : (tensor<32xf32>) -> tensor<32xf32>
    %1 = oriel.sub %p, %0 : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
    return %1 : tensor<32xf32>
  }
}
