// RUN: oriel-opt %s --oriel-propagate --split-input-file --verify-diagnostics

// expected-error @below {{has no device grid: run strategize first}}
module @no_grid {
}

// -----

// expected-error @below {{has no segment @forward: run the train phase first}}
module @no_forward attributes {oriel.grid = {}, oriel.mesh = {}} {
}

// -----

module @batch_does_not_divide attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error @below {{the input 'x' of type 'tensor<3x6xf32>' has no first dimension that 2 data-parallel ranks divide}}
  func.func @forward(%x: tensor<3x6xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module @batch_of_rank_0 attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {fsdp = ["a0"]}} {
  // expected-error @below {{the input 'x' of type 'tensor<f32>' has no first dimension that 2 data-parallel ranks divide}}
  func.func @forward(%x: tensor<f32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module @stash_nobody_writes attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error @below {{reads the stash value 'v0', which no earlier segment writes}}
  func.func @forward(%x: tensor<3x6xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
    return
  }
}

// -----

module @no_parameter attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error @below {{refers to @p0, which is no oriel.parameter}}
  func.func @forward(%x: tensor<3x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return
  }
}

// -----

module @unknown_axis attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  // expected-error @below {{a sharding of "w" names the axis a1, which the grid lacks}}
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4x6xf32>, storage = #oriel.sharding<[{a1}, {}]>}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return
  }
}

// -----

module @other_rank attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  // expected-error @below {{a sharding of "w" has 1 dimensions, the tensor 2}}
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4x6xf32>, use = #oriel.sharding<[{a0}]>}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return
  }
}

// -----

module @does_not_divide attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {tp = ["a0"]}} {
  // expected-error @below {{a sharding of "w" does not divide the tensor}}
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4x6xf32>, use = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return
  }
}

// -----

module @input_returned attributes {oriel.grid = {}, oriel.mesh = {}} {
  // expected-error @below {{returns 'x', which only the host writes}}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return %x : tensor<4x6xf32>
  }
}

// -----

// The accumulator holds a summand on each rank; a total would be counted twice.
module @total_for_a_sum attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %sum: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<4x6xf32>) -> tensor<f32>
    %1 = oriel.add %sum, %0 : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // expected-error @below {{a total is returned for what is kept as a sum over ranks}}
    // expected-note @below {{ranks have several stages that use one parameter}}
    %2 = oriel.exp %1 : (tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
}

// -----

module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = []} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<8xf32>, trainable = true, storage = #oriel.sharding<[{a0}]>, gradient = #oriel.sharding<[{a0}]>, state = #oriel.sharding<[{a0}]>, use = #oriel.sharding<[{}]>}
  func.func @forward() {
    return
  }
  // expected-error @below {{has gradient 'p0' of type 'tensor<f32>', but the parameter is a 'tensor<8xf32>'}}
  func.func @update(%g: tensor<f32> {oriel.kind = "gradient", oriel.ref = "p0"}) -> (tensor<f32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %g : (tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}

// -----

module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = []} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<8x8xf32>, storage = #oriel.sharding<[{}, {a0}]>}
  // expected-error @below {{has parameter 'p0' of type 'tensor<8xf32>', but the parameter is a 'tensor<8x8xf32>'}}
  func.func @forward(%w: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward() {
    return
  }
  // expected-error @below {{a segment must have a body}}
  func.func private @backward()
}

// -----

module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    // expected-error @below {{has the origin 9223372036854775807, expected -1 or the number of an op}}
    %0 = oriel.exp %x {origin = 9223372036854775807 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
