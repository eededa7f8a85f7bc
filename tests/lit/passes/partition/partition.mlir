// RUN: oriel-opt %s --oriel-propagate --oriel-partition --split-input-file | FileCheck %s --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_scatter --implicit-check-not=oriel.slice_local

// A rank's samples, and no word between ranks.
// CHECK-LABEL: @batch
// CHECK: func.func @forward(%[[X:.*]]: tensor<2x6xf32> {{{.*}}, %[[W:.*]]: tensor<6x4xf32> {{{.*}}) -> (tensor<2x4xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.linear %[[X]], %[[W]] {oriel.rule = {{.*}}, oriel.shardings = [#oriel.sharding<[{a0}, {}]>], oriel.split = {{\[\["a0"\], \[\], \[\]\]}}} : (tensor<2x6xf32>, tensor<6x4xf32>) -> tensor<2x4xf32>
// CHECK-NEXT: return %[[Y]]
module @batch attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x4xf32>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}

// -----

// Attributes that hold sizes become those of the piece: a rank reshapes its own two heads.
// CHECK-LABEL: @heads
// CHECK: oriel.linear {{.*}} -> tensor<2x3x8xf32>
// CHECK: oriel.reshape {{.*}} : (tensor<2x3x8xf32>) -> tensor<2x3x2x4xf32>
// CHECK: oriel.slice {{.*}}limits = array<i64: 2, 3, 2, 2>
module @heads attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x16xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<2x3x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.linear %x, %w : (tensor<2x3x6xf32>, tensor<6x16xf32>) -> tensor<2x3x16xf32>
    %1 = oriel.reshape %0 : (tensor<2x3x16xf32>) -> tensor<2x3x4x4xf32>
    %2 = oriel.slice %1 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 3, 4, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x2xf32>
    return
  }
}

// -----

// A total that two ops need is made once, where the first one is.
// CHECK-LABEL: @reduced_once
// CHECK: %[[SUM:.*]] = oriel.all_reduce
// CHECK: oriel.exp %[[SUM]]
// CHECK: oriel.tanh %[[SUM]]
module @reduced_once attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<64x64xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "v", type = tensor<64x64xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<8x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %v: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %v : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = oriel.linear %0, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %2 = oriel.exp %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %3 = oriel.tanh %1 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return
  }
}

// -----

// Sums that are there at the same time travel together; one that depends on another's total does not.
// CHECK-LABEL: @reduced_together
// CHECK: oriel.tanh
// CHECK: %[[A:.*]] = oriel.linear
// CHECK: %[[B:.*]] = oriel.linear
// CHECK: %[[R:.*]]:2 = oriel.all_reduce %[[A]], %[[B]] {axes = ["a0"], oriel.shardings = [#oriel.sharding<[{}, {}]>, #oriel.sharding<[{}, {}]>], reduction = "sum"}
// CHECK: %[[AB:.*]] = oriel.mul %[[R]]#0, %[[R]]#1
// CHECK: oriel.linear
// CHECK: %[[C:.*]] = oriel.linear
// CHECK: oriel.all_reduce %[[C]]
module @reduced_together attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<64x64xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<64x64xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = oriel.tanh %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %a = oriel.linear %0, %down : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %b = oriel.linear %1, %down : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %2 = oriel.mul %a, %b : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<8x64xf32>
    %3 = oriel.linear %2, %up : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %c = oriel.linear %3, %down : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %4 = oriel.exp %c : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return
  }
}

// -----

// A constant of equal elements is made in the size that is used, each size once. Of one with
// different elements a rank takes its piece.
// CHECK-LABEL: @constants
// CHECK: oriel.constant {{.*}}value = dense<2.0{{.*}}> : tensor<4x6xf32>
// CHECK: oriel.mul
// CHECK: oriel.add
// CHECK: %[[C:.*]] = oriel.constant {{.*}} : tensor<8x2xf32>
// CHECK: oriel.slice_local %[[C]] {axes = ["a0"], dim = 0 : i64, {{.*}} -> tensor<4x2xf32>
// CHECK: oriel.add
module @constants attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %y: tensor<8x2xf32> {oriel.kind = "input", oriel.ref = "y"}) {
    %c = oriel.constant {value = dense<2.0> : tensor<8x6xf32>} : () -> tensor<8x6xf32>
    %0 = oriel.mul %x, %c : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.add %0, %c : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %d = oriel.constant {value = dense<[[0.0, 1.0], [2.0, 3.0], [4.0, 5.0], [6.0, 7.0], [8.0, 9.0], [10.0, 11.0], [12.0, 13.0], [14.0, 15.0]]> : tensor<8x2xf32>} : () -> tensor<8x2xf32>
    %2 = oriel.add %y, %d : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
    return
  }
}

// -----

// A lookup in a table that is split by rows: a rank adds what it has. Its first row comes from a
// table by rank, as all ranks run one program.
// CHECK-LABEL: @lookup
// CHECK: %[[FIRSTS:.*]] = oriel.constant {{.*}}dense<[0, 8, 16, 24]> : tensor<4xi64>
// CHECK: %[[PAIR:.*]] = oriel.slice_local %[[FIRSTS]] {axes = ["a0"], dim = 0 : i64{{.*}}} : (tensor<4xi64>) -> tensor<2xi64>
// CHECK: %[[ONE:.*]] = oriel.slice_local %[[PAIR]] {axes = ["a1"], dim = 0 : i64{{.*}}} : (tensor<2xi64>) -> tensor<1xi64>
// CHECK: %[[FIRST:.*]] = oriel.reshape %[[ONE]] {{.*}} -> tensor<i64>
// CHECK: %[[ROWS:.*]] = oriel.gather %{{.*}}, %{{.*}}, %[[FIRST]] {dim = 0 : i64, {{.*}}, oriel.shardings = [#oriel.sharding<[{}, {}, {}] sum {a0, a1}>], {{.*}}rows = 32 : i64} : (tensor<8x64xf32>, tensor<2x4xi64>, tensor<i64>) -> tensor<2x4x64xf32>
// CHECK: oriel.all_reduce %[[ROWS]] {axes = ["a0", "a1"]
// The second lookup begins where the first one does.
// CHECK: oriel.gather %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK: oriel.all_reduce
module @lookup attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {tp = ["a0", "a1"]}} {
  oriel.parameter @p0 {onnx_name = "table", type = tensor<32x64xf32>, use = #oriel.sharding<[{a0, a1}, {}]>, storage = #oriel.sharding<[{a0, a1}, {}]>}
  func.func @forward(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %more: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "more"},
      %table: tensor<32x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<32x64xf32>, tensor<2x4xi64>) -> tensor<2x4x64xf32>
    %1 = oriel.exp %0 : (tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    %2 = oriel.gather %table, %more {dim = 0 : i64} : (tensor<32x64xf32>, tensor<2x4xi64>) -> tensor<2x4x64xf32>
    %3 = oriel.exp %2 : (tensor<2x4x64xf32>) -> tensor<2x4x64xf32>
    return
  }
}

// -----

// A value that the backward reads is handed on completed, in the pieces that are at hand, and not as
// the sum that it was made as.
// CHECK-LABEL: @stash
// CHECK: func.func @forward
// CHECK-SAME: -> (tensor<8x64xf32> {oriel.kind = "stash", oriel.ref = "v0", oriel.sharding = #oriel.sharding<[{}, {}]>})
// CHECK: oriel.slice_local
// CHECK: %[[SUM:.*]] = oriel.all_reduce
// CHECK: return %[[SUM]]
// CHECK: func.func @backward
module @stash attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<64x64xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x64xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
    %0 = oriel.linear %x, %w : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = oriel.exp %0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return %0 : tensor<8x64xf32>
  }
  func.func @backward(%v0: tensor<8x64xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
    %0 = oriel.exp %v0 : (tensor<8x64xf32>) -> tensor<8x64xf32>
    return
  }
}

// -----

// The update steps on what is stored. Zeros that begin the next sum are made in the size of the sum,
// although nothing is pending in them.
// CHECK-LABEL: @next_sum
// CHECK: func.func @update
// CHECK: oriel.reduce_scatter {{.*}} : (tensor<64x64xf32>) -> tensor<32x64xf32>
// CHECK: oriel.sgd {{.*}} -> tensor<32x64xf32>
// CHECK: %[[ZERO:.*]] = oriel.constant {{.*}}value = dense<0.0{{.*}}> : tensor<64x64xf32>
// CHECK: return %{{.*}}, %[[ZERO]] : tensor<32x64xf32>, tensor<64x64xf32>
module @next_sum attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {fsdp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<64x64xf32>, trainable = true, storage = #oriel.sharding<[{a0}, {}]>, state = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x64xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<8x64xf32> {oriel.kind = "stash", oriel.ref = "x"}) {
    return %x : tensor<8x64xf32>
  }
  func.func @backward(%x: tensor<8x64xf32> {oriel.kind = "stash", oriel.ref = "x"},
      %g: tensor<64x64xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<64x64xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.linear_weight_grad %x, %x : (tensor<8x64xf32>, tensor<8x64xf32>) -> tensor<64x64xf32>
    %1 = oriel.add %g, %0 : (tensor<64x64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32>
    return %1 : tensor<64x64xf32>
  }
  func.func @update(%w: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %g: tensor<64x64xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
      %lr: tensor<f32> {oriel.kind = "scalar", oriel.ref = "learning_rate"})
      -> (tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
          tensor<64x64xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.sgd %w, %g, %lr, %lr {weight_decay = 0.0 : f64} : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<f32>, tensor<f32>) -> tensor<64x64xf32>
    %1 = oriel.constant {value = dense<0.0> : tensor<64x64xf32>} : () -> tensor<64x64xf32>
    return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
  }
}
