// What a pass between the phases may get wrong, once values are a rank's pieces.
// RUN: oriel-opt %s --oriel-verify-segments=values=local --split-input-file --verify-diagnostics
// RUN: not oriel-opt %s --oriel-verify-segments=values=piece --split-input-file 2>&1 | FileCheck %s

// CHECK: values are whole, global or local, not 'piece'

module @whole_parameter attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4xf32>}
  func.func @forward(%x: tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    return
  }
  // expected-error@+1 {{has type 'tensor<4xf32>' for gradient 'p0', expected 'tensor<2xf32>'}}
  func.func @backward(%x: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    return
  }
}

// -----

// A piece may have any size: it need not divide again. Ops of whole values say nothing.
module @piece attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<3xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    %0 = oriel.exp %x {oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<3xf32>) -> tensor<3xf32>
    %1 = oriel.exp %x : (tensor<3xf32>) -> tensor<3xf32>
    return
  }
}

// -----

module @axis_of_another_grid attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}]>}) {
    // expected-error@+1 {{the sharding names the axis a7, which the grid lacks}}
    %0 = oriel.exp %x {oriel.shardings = [#oriel.sharding<[{a7}]>]} : (tensor<4xf32>) -> tensor<4xf32>
    return
  }
}
