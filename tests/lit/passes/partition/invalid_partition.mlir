// RUN: oriel-opt %s --oriel-partition --split-input-file --verify-diagnostics

// expected-error @below {{has no device grid: run strategize first}}
module @no_grid {
}

// -----

module @op_without_split attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>}) {
    // expected-error @below {{'oriel.exp' op does not say how it is split: run propagate first}}
    %0 = oriel.exp %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return
  }
}

// -----

// A list of axes for each factor of the op's rule, here two.
module @split_of_another_op attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>}) {
    // expected-error @below {{'oriel.exp' op does not say how it is split: run propagate first}}
    %0 = oriel.exp %x {oriel.split = [["a0"]], oriel.shardings = [#oriel.sharding<[{a0}, {}]>]} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return
  }
}

// -----

module @split_that_does_not_divide attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>}) {
    // expected-error @below {{'oriel.exp' op does not say how it is split: run propagate first}}
    %0 = oriel.exp %x {oriel.split = [[], ["a0"]], oriel.shardings = [#oriel.sharding<[{}, {a0}]>]} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return
  }
}

// -----

module @argument_without_sharding attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error @below {{has a value of type 'tensor<4x6xf32>' without a sharding: run propagate first}}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module @result_without_sharding attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error @below {{has a value of type 'tensor<4x6xf32>' without a sharding: run propagate first}}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>})
      -> (tensor<4x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return %x : tensor<4x6xf32>
  }
}

// -----

module @sharding_of_another_grid attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error @below {{has the sharding #oriel.sharding<[{a1}, {}]>, which names the axis a1, which the grid lacks}}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a1}, {}]>}) {
    return
  }
}

// -----

module @total_for_a_sum attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error @below {{a total is returned for what is kept as a sum over ranks}}
  // expected-note @below {{ranks have several stages that use one parameter}}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}]>})
      -> (tensor<4x6xf32> {oriel.kind = "accumulator", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0}>}) {
    return %x : tensor<4x6xf32>
  }
}

// -----

// Summands can be added up, but nothing makes summands of a total.
module @total_taken_as_a_sum attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0", "a1"]}} {
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>}) {
    // expected-error @below {{needs a value in the sharding [{a0}, {}] sum {a1}, which no collectives make of [{a0}, {}]}}
    %0 = oriel.exp %x {oriel.split = [["a0"], []], oriel.shardings = [#oriel.sharding<[{a0}, {}] sum {a1}>]} : (tensor<4x6xf32>) -> tensor<4x6xf32>
    return
  }
}
