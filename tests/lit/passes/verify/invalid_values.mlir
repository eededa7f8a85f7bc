// What a pass between the phases may get wrong, once values have shardings.
// RUN: oriel-opt %s --oriel-verify-segments=values=global --split-input-file --verify-diagnostics

// expected-error@+1 {{has no device grid: run strategize first}}
module @no_grid {
}

// -----

module @argument_without_sharding attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error@+1 {{input 'x' of type 'tensor<4xf32>': has no sharding}}
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) {
    return
  }
}

// -----

module @axis_of_another_grid attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  // expected-error@+1 {{input 'x' of type 'tensor<4xf32>': the sharding names the axis a1, which the grid lacks}}
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a1}]>}) {
    return
  }
}

// -----

module @two_shardings_of_an_input attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    return
  }
  // expected-error@+1 {{has the sharding #oriel.sharding<[{}]> for input 'x', which is #oriel.sharding<[{a0}]> elsewhere}}
  func.func @eval(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}]>}) {
    return
  }
}

// -----

module @op_without_shardings attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    // expected-error@+1 {{has no shardings}}
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

module @result_that_does_not_divide attributes {oriel.grid = {a0 = 3 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}]>}) {
    // expected-error@+1 {{has a result of type 'tensor<4xf32>': the sharding does not divide the tensor}}
    %0 = oriel.exp %x {oriel.split = [[]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// An axis cuts once.
module @axis_that_cuts_twice attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>}) {
    // expected-error@+1 {{does not say how it is cut, or not by its rule: [["a0"], ["a0"]]}}
    %0 = oriel.exp %x {oriel.split = [["a0"], ["a0"]], oriel.shardings = [#oriel.sharding<[{a0}, {}]>]} : (tensor<4x4xf32>) -> tensor<4x4xf32>
    return
  }
}

// -----

module @split_of_another_rule attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    // expected-error@+1 {{does not say how it is cut, or not by its rule: [["a0"], ["a0"], ["a0"]]}}
    %0 = oriel.exp %x {oriel.split = [["a0"], ["a0"], ["a0"]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}
