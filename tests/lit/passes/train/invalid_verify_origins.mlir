// Ops of the backward are derivatives of numbered ops of the forward.
// RUN: oriel-opt %s --oriel-verify-train --split-input-file --verify-diagnostics

// Forward ops are numbered apart.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    // expected-error @below {{'oriel.reduce_sum' op has the origin 0 of another op of @forward}}
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 0 : i64} : (tensor<4xf32>) -> tensor<f32>
    %2 = oriel.add %s, %1 {origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %0, %2 : tensor<4xf32>, tensor<f32>
  }
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}

// -----

// A backward op comes from a forward op.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    %2 = oriel.add %s, %1 {origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %0, %2 : tensor<4xf32>, tensor<f32>
  }
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    // expected-error @below {{'oriel.add' op in @backward has the origin 7, which no op of @forward has}}
    %0 = oriel.add %g, %e {origin = 7 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}

// -----

// A backward op comes from some op.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    %2 = oriel.add %s, %1 {origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %0, %2 : tensor<4xf32>, tensor<f32>
  }
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    // expected-error @below {{'oriel.add' op in @backward has the origin -1, which no op of @forward has}}
    %0 = oriel.add %g, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}

// -----

// What no trainable parameter feeds has no backward.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    %2 = oriel.add %s, %1 {origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    // expected-note @below {{the op with origin 8}}
    %3 = oriel.tanh %s {origin = 8 : i64} : (tensor<f32>) -> tensor<f32>
    return %0, %2 : tensor<4xf32>, tensor<f32>
  }
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    // expected-error @below {{'oriel.add' op in @backward comes from an op that has no gradient}}
    %0 = oriel.add %g, %e {origin = 8 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}
