// RUN: oriel-opt %s --oriel-propagate --split-input-file | FileCheck %s

// Samples are cut over the axes dp and fsdp, and everything behind them; the parameter is whole.
// CHECK-LABEL: @batch
// CHECK: func.func @forward(
// CHECK-SAME: oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0, a1}, {}]>}
// CHECK-SAME: oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}, {}]>}
// CHECK-SAME: -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a0, a1}, {}]>})
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{a0, a1}, {}]>], oriel.split = {{\[\[}}"a0", "a1"], [], []]
// CHECK: oriel.relu {{.*}}oriel.shardings = [#oriel.sharding<[{a0, a1}, {}]>]
module @batch attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0"], fsdp = ["a1"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x4xf32>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %1 = oriel.relu %0 : (tensor<8x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

// Columns, then rows: pieces of features in between, a sum behind, that the ranks complete for an op
// that is not linear.
// CHECK-LABEL: @column_then_row
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}]>]
// CHECK: oriel.relu {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>], oriel.split = {{\[\[}}], [], ["a0"]]
// CHECK: oriel.exp {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
module @column_then_row attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<6x16xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<6x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %up : (tensor<8x6xf32>, tensor<6x16xf32>) -> tensor<8x16xf32>
    %1 = oriel.relu %0 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = oriel.linear %1, %down : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %3 = oriel.exp %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %3 : tensor<8x6xf32>
  }
}

// -----

// A sum of two pending values stays pending, and so does what is linear in it; an op that multiplies
// two of them needs the totals.
// CHECK-LABEL: @pending_through_adds
// CHECK: %[[A:.*]] = oriel.linear {{.*}}sum {a0}>]
// CHECK: %[[B:.*]] = oriel.linear {{.*}}sum {a0}>]
// CHECK: %[[SUM:.*]] = oriel.add %[[A]], %[[B]] {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>], oriel.split = {{\[\[}}], [], ["a0", 0]]
// CHECK: oriel.neg %[[SUM]] {{.*}}sum {a0}>]
// CHECK: oriel.mul {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
module @pending_through_adds attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "a", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "b", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %a: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %a : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.linear %x, %b : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %2 = oriel.add %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %3 = oriel.neg %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %4 = oriel.mul %3, %3 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %4 : tensor<8x6xf32>
  }
}

// -----

// A residual: one of the operands is a total, so the other one becomes one, too.
// CHECK-LABEL: @residual
// CHECK: oriel.linear {{.*}}sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
module @residual attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "a", type = tensor<6x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %a: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %a : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.add %x, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %1 : tensor<8x6xf32>
  }
}

// -----

// A sum along what is cut needs it whole; what follows is cut again, as it costs nothing.
// CHECK-LABEL: @cuts_behind_an_op_that_needs_all
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}]>]
// CHECK: oriel.cumsum {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}]>], oriel.split = {{\[\[}}]]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
module @cuts_behind_an_op_that_needs_all attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<6x16xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<6x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %up : (tensor<8x6xf32>, tensor<6x16xf32>) -> tensor<8x16xf32>
    %1 = oriel.cumsum %0 {dim = 1 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = oriel.linear %1, %down : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// A softmax of what is cut takes steps: maxima and sums of pieces, which ranks complete.
// CHECK-LABEL: @softmax_in_steps
// CHECK: oriel.reduce_max {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] max {a0}>]
// CHECK: oriel.exp {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}]>]
// CHECK: oriel.reduce_sum {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.div {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}]>]
// CHECK-NOT: oriel.softmax
module @softmax_in_steps attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<6x16xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<6x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %up : (tensor<8x6xf32>, tensor<6x16xf32>) -> tensor<8x16xf32>
    %1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %2 = oriel.linear %1, %down : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// A constant is whole where it is defined: each op takes of it what it needs.
// CHECK-LABEL: @constants
// CHECK: oriel.constant {oriel.shardings = [#oriel.sharding<[{}, {}]>]
// CHECK: oriel.mul {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
module @constants attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %c = oriel.constant {value = dense<2.0> : tensor<8x6xf32>} : () -> tensor<8x6xf32>
    %0 = oriel.mul %x, %c : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// The total of a forward's rows is pending over the data axes in all segments; the update uses it,
// which is where it is completed. So is a gradient, in pieces as the parameter is used.
// CHECK-LABEL: @sums_over_microbatches
// CHECK: func.func @forward(
// CHECK-SAME: oriel.ref = "loss_sum", oriel.sharding = #oriel.sharding<[] sum {a0}>}
// CHECK-SAME: -> (tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "v0", oriel.sharding = #oriel.sharding<[{a0}, {}]>},
// CHECK: func.func @backward(
// CHECK-SAME: oriel.ref = "v0", oriel.sharding = #oriel.sharding<[{a0}, {}]>}
// CHECK-SAME: oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}, {a1}] sum {a0}>}
// CHECK-SAME: -> (tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}, {a1}] sum {a0}>})
// CHECK: oriel.linear_weight_grad {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a1}] sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a1}] sum {a0}>]
// CHECK: func.func @update(
// CHECK-SAME: oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}, {a1}] sum {a0}>}
// CHECK: oriel.sgd {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a1}]>]
module @sums_over_microbatches attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0"], tp = ["a1"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x4xf32>, trainable = true, use = #oriel.sharding<[{}, {a1}]>,
      storage = #oriel.sharding<[{}, {a1}]>, gradient = #oriel.sharding<[{}, {a1}]>, state = #oriel.sharding<[{}, {a1}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %sum: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.relu %x : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0, 1>} : (tensor<8x6xf32>) -> tensor<f32>
    %2 = oriel.add %sum, %1 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %0, %2 : tensor<8x6xf32>, tensor<f32>
  }
  func.func @backward(%v0: tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "v0"},
      %w: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %g: tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.linear %v0, %w : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %1 = oriel.linear_weight_grad %v0, %0 : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %2 = oriel.add %g, %1 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    return %2 : tensor<6x4xf32>
  }
  func.func @update(%w: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %g: tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
      %sum: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"},
      %lr: tensor<f32> {oriel.kind = "scalar", oriel.ref = "learning_rate"})
      -> (tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
          tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.sgd %w, %g, %sum, %lr {weight_decay = 0.0 : f64} : (tensor<6x4xf32>, tensor<6x4xf32>, tensor<f32>, tensor<f32>) -> tensor<6x4xf32>
    return %0, %sum : tensor<6x4xf32>, tensor<f32>
  }
}

// -----

// ZeRO 2: the gradient is summed up in the pieces that a rank keeps, so that each microbatch's is
// scattered over fsdp; ZeRO 1 would leave that to the update.
// CHECK-LABEL: @gradient_storage
// CHECK: func.func @backward(
// CHECK-SAME: oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{a0}, {}]>}
// CHECK: oriel.linear_weight_grad {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
module @gradient_storage attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {fsdp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x4xf32>, trainable = true, gradient = #oriel.sharding<[{a0}, {}]>, state = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %y: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "y"})
      -> (tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "x"}, tensor<8x4xf32> {oriel.kind = "stash", oriel.ref = "y"}) {
    return %x, %y : tensor<8x6xf32>, tensor<8x4xf32>
  }
  func.func @backward(%x: tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "x"},
      %y: tensor<8x4xf32> {oriel.kind = "stash", oriel.ref = "y"},
      %g: tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.linear_weight_grad %x, %y : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %1 = oriel.add %g, %0 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    return %1 : tensor<6x4xf32>
  }
}

// -----

// What is added to a sum over microbatches comes to where the sum is kept, although it is cheaper to
// add a piece to a piece of it: the sum stays in its place.
// CHECK-LABEL: @sum_kept_whole
// CHECK: oriel.linear_weight_grad {{.*}}oriel.shardings = [#oriel.sharding<[{a1}, {}] sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
module @sum_kept_whole attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0"], tp = ["a1"]}} {
  oriel.parameter @p0 {onnx_name = "v", type = tensor<6x6xf32>, use = #oriel.sharding<[{}, {a1}]>, storage = #oriel.sharding<[{}, {a1}]>}
  oriel.parameter @p1 {onnx_name = "w", type = tensor<6x4xf32>, trainable = true}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %y: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "y"},
      %v: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "x"}, tensor<8x4xf32> {oriel.kind = "stash", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %v : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    return %0, %y : tensor<8x6xf32>, tensor<8x4xf32>
  }
  func.func @backward(%x: tensor<8x6xf32> {oriel.kind = "stash", oriel.ref = "x"},
      %y: tensor<8x4xf32> {oriel.kind = "stash", oriel.ref = "y"},
      %g: tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"})
      -> (tensor<6x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"}) {
    %0 = oriel.linear_weight_grad %x, %y : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
    %1 = oriel.add %g, %0 : (tensor<6x4xf32>, tensor<6x4xf32>) -> tensor<6x4xf32>
    return %1 : tensor<6x4xf32>
  }
}

// -----

// Sequence parallelism: a sum that comes out of a layer is taken in pieces along the positions, and
// so is the residual.
// CHECK-LABEL: @sequence
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}, {}] sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>]
// CHECK: oriel.rms_norm {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>, #oriel.sharding<[{}, {a0}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}, {a0}]>]
module @sequence attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}, oriel.sequence_types = [tensor<2x32x64xf32>]} {
  oriel.parameter @p0 {onnx_name = "down", type = tensor<64x64xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<64xf32>}
  oriel.parameter @p2 {onnx_name = "up", type = tensor<64x64xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<2x32x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %down: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<64xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %up: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %down {origin = 0 : i64} : (tensor<2x32x64xf32>, tensor<64x64xf32>) -> tensor<2x32x64xf32>
    %1 = oriel.add %x, %0 {origin = 1 : i64} : (tensor<2x32x64xf32>, tensor<2x32x64xf32>) -> tensor<2x32x64xf32>
    %2, %rms = oriel.rms_norm %1, %norm {epsilon = 1.0e-6, origin = 2 : i64} : (tensor<2x32x64xf32>, tensor<64xf32>) -> (tensor<2x32x64xf32>, tensor<2x32xf32>)
    %3 = oriel.linear %2, %up {origin = 3 : i64} : (tensor<2x32x64xf32>, tensor<64x64xf32>) -> tensor<2x32x64xf32>
    return
  }
}

// -----

// However large a parameter is, a piece of it is at hand for nothing.
// CHECK-LABEL: @sequence_with_positions
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>]
module @sequence_with_positions attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}, oriel.sequence_types = [tensor<1x4096x1024xf32>]} {
  oriel.parameter @p0 {onnx_name = "down", type = tensor<64x1024xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "positions", type = tensor<4096x1024xf32>}
  func.func @forward(%x: tensor<1x4096x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %down: tensor<64x1024xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %positions: tensor<4096x1024xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %down {origin = 0 : i64} : (tensor<1x4096x64xf32>, tensor<64x1024xf32>) -> tensor<1x4096x1024xf32>
    %1 = oriel.add %0, %positions {origin = 1 : i64} : (tensor<1x4096x1024xf32>, tensor<4096x1024xf32>) -> tensor<1x4096x1024xf32>
    return
  }
}

// -----

// Two modules on the same ranks: the first takes four shares of the samples, the second two, and
// splits its layers; what goes from one to the other is gathered over the axis that changes hands.
// CHECK-LABEL: @modules
// CHECK: oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>}
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{a0, a1}, {}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {a1}]>]
module @modules attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0"], tp = ["a1"]},
    oriel.module_meshes = {vision = {dp = ["a0", "a1"]}}} {
  oriel.parameter @p0 {onnx_name = "vision.w", module = "vision", type = tensor<6x6xf32>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<6x4xf32>, use = #oriel.sharding<[{}, {a1}]>, storage = #oriel.sharding<[{}, {a1}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w {origin = 0 : i64} : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.linear %0, %up {origin = 1 : i64} : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

// The other way round, with sequence parallelism in the first module: what was cut along the positions
// is cut along the samples.
// CHECK-LABEL: @modules_with_sequence
// CHECK: oriel.exp {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {a1}, {}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{a0, a1}, {}, {}]>]
module @modules_with_sequence attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0", "a1"]},
    oriel.module_meshes = {vision = {dp = ["a0"], tp = ["a1"]}}, oriel.sequence_types = [tensor<8x32x64xf32>]} {
  oriel.parameter @p0 {onnx_name = "vision.w", module = "vision", type = tensor<64x64xf32>, use = #oriel.sharding<[{a1}, {}]>, storage = #oriel.sharding<[{a1}, {}]>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<64x64xf32>}
  func.func @forward(%x: tensor<8x32x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x32x64xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w {origin = 0 : i64} : (tensor<8x32x64xf32>, tensor<64x64xf32>) -> tensor<8x32x64xf32>
    %1 = oriel.exp %0 {origin = 1 : i64} : (tensor<8x32x64xf32>) -> tensor<8x32x64xf32>
    %2 = oriel.linear %1, %up {origin = 2 : i64} : (tensor<8x32x64xf32>, tensor<64x64xf32>) -> tensor<8x32x64xf32>
    return %2 : tensor<8x32x64xf32>
  }
}

// -----

// What ranks of the first module compute alike is shared out over the samples of the second.
// CHECK-LABEL: @modules_without_sequence
// CHECK: oriel.exp {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{a0, a1}, {}]>]
module @modules_without_sequence attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0", "a1"]},
    oriel.module_meshes = {vision = {dp = ["a0"], tp = ["a1"]}}} {
  oriel.parameter @p0 {onnx_name = "vision.w", module = "vision", type = tensor<64x64xf32>, use = #oriel.sharding<[{a1}, {}]>, storage = #oriel.sharding<[{a1}, {}]>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<64x64xf32>}
  func.func @forward(%x: tensor<8x64xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<64x64xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x64xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w {origin = 0 : i64} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    %1 = oriel.exp %0 {origin = 1 : i64} : (tensor<8x64xf32>) -> tensor<8x64xf32>
    %2 = oriel.linear %1, %up {origin = 2 : i64} : (tensor<8x64xf32>, tensor<64x64xf32>) -> tensor<8x64xf32>
    return %2 : tensor<8x64xf32>
  }
}

// -----

// A norm over columns that are cut: a sum of squares that the ranks complete, and the rest in pieces.
// CHECK-LABEL: @norm_in_steps
// CHECK-NOT: oriel.rms_norm
// CHECK: oriel.reduce_sum {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.rsqrt {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
module @norm_in_steps attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<6x4xf32>, use = #oriel.sharding<[{}, {a0}]>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<4xf32>, use = #oriel.sharding<[{a0}]>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<4x6xf32>, use = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<4x6xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %up : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %1:2 = oriel.rms_norm %0, %norm {epsilon = 1.0e-6 : f64} : (tensor<8x4xf32>, tensor<4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>)
    %2 = oriel.linear %1#0, %down : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// Its derivative, of which nothing but the cotangent of the input is wanted: no sums over rows.
// CHECK-LABEL: @norm_grad_in_steps
// CHECK-NOT: oriel.layer_norm_grad
// CHECK-COUNT-2: oriel.reduce_sum {{.*}}dims = array<i64: 1>
// CHECK-NOT: oriel.reduce_sum
// CHECK: return
module @norm_grad_in_steps attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<6x4xf32>, use = #oriel.sharding<[{}, {a0}]>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<4xf32>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %s: tensor<8xf32> {oriel.kind = "input", oriel.ref = "s"},
      %up: tensor<6x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %up : (tensor<8x6xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %1:3 = oriel.layer_norm_grad %0, %0, %norm, %s, %s : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %1#0 : tensor<8x4xf32>
  }
}
