// RUN: oriel-opt %s --oriel-verify-train --split-input-file --verify-diagnostics

// The model itself must be gone.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  // expected-error @below {{@main is left after the train phase}}
  func.func @main() {
    return
  }
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

// All four segments must be there.
// expected-error @below {{has no segment @eval}}
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
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// A role is read once.
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
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  // expected-error @below {{has two arguments for gradient 'p0'}}
  func.func @update(%w: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
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

// A role is written once.
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
  // expected-error @below {{has two results for gradient 'p0'}}
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
          tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0, %0 : tensor<4xf32>, tensor<4xf32>
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

// A new value replaces an argument of the same segment.
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
  // expected-error @below {{returns a new gradient 'p0', but has no argument that holds it}}
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
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

// Only the update writes parameters.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  // expected-error @below {{returns a new parameter 'p0'; only @update may}}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
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

// A gradient belongs to a parameter.
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
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  // expected-error @below {{no oriel.parameter for gradient 'p1'}}
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p1"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}

// -----

// What is the same has the same type: a parameter.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<5xf32>}
  // expected-error @below {{has type 'tensor<4xf32>' for parameter 'p0', which is 'tensor<5xf32>' elsewhere}}
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

// What is the same has the same type: a stash value.
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
  // expected-error @below {{has type 'tensor<2x2xf32>' for stash 'v0', which is 'tensor<4xf32>' elsewhere}}
  func.func @backward(%e: tensor<2x2xf32> {oriel.kind = "stash", oriel.ref = "v0"},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.reshape %e {origin = 0 : i64} : (tensor<2x2xf32>) -> tensor<4xf32>
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

// The backward reads what the forward writes.
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
  // expected-error @below {{reads stash 'v9', which @forward does not write}}
  func.func @backward(%e: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v9"},
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

// The forward writes what the backward reads.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  // expected-error @below {{writes stash 'v9', which @backward does not read}}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"})
      -> (tensor<f32> {oriel.kind = "stash", oriel.ref = "v9"},
          tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
    %2 = oriel.add %s, %1 {origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %1, %0, %2 : tensor<f32>, tensor<4xf32>, tensor<f32>
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

// A trainable parameter is stepped.
module {
  // expected-error @below {{trainable, but @update does not step it}}
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
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "o"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}

// -----

// A trainable parameter has a gradient.
module {
  // expected-error @below {{trainable, but @backward has no gradient for it}}
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
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "o"}) {
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

// A frozen parameter is not stepped.
module {
  // expected-error @below {{frozen, but @update steps it}}
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4xf32>}
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

// A frozen parameter has no gradient.
module {
  // expected-error @below {{frozen, but @backward has a gradient for it}}
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4xf32>}
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
    %0 = oriel.add %g, %e {origin = 0 : i64} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "o"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @eval() {
    return
  }
}

// -----

// There is a loss.
module {
  oriel.parameter @p0 {onnx_name = "w", trainable = true, type = tensor<4xf32>}
  // expected-error @below {{has no result for accumulator 'loss_sum'}}
  func.func @forward(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %s: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "other"})
      -> (tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"},
          tensor<f32> {oriel.kind = "accumulator", oriel.ref = "other"}) {
    %0 = oriel.exp %w {origin = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0>, origin = 1 : i64} : (tensor<4xf32>) -> tensor<f32>
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

// A frozen parameter.
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4x4xf32>}
  func.func @forward(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"}, %w: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, %l: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) -> (tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}) {
    %0 = oriel.linear %x, %w {oriel.stage = 0 : i64, origin = 0 : i64} : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = oriel.reduce_sum %0 {dims = array<i64: 0, 1>, keep_dims = false, oriel.stage = 1 : i64, origin = 1 : i64} : (tensor<2x4xf32>) -> tensor<f32>
    %2 = oriel.add %l, %1 {oriel.stage = 1 : i64, origin = 2 : i64} : (tensor<f32>, tensor<f32>) -> tensor<f32>
    return %2 : tensor<f32>
  }
  func.func @backward() {
    return
  }
  // expected-error @below {{reads gradient 'p0', which @backward does not write}}
  func.func @update(%g: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    return
  }
  func.func @eval() {
    return
  }
}
