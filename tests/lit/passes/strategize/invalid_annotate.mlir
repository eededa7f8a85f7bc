// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml --split-input-file --verify-diagnostics

// Three heads do not split over two ranks, although their 12 columns do.
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<8x12xf32>}
  oriel.parameter @p1 {onnx_name = "output", type = tensor<12x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %output: tensor<12x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %query : (tensor<2x6x8xf32>, tensor<8x12xf32>) -> tensor<2x6x12xf32>
    %q = oriel.reshape %0 : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %1, %lse = oriel.attention %q, %q, %q {scale = 0.5, sequence_first = true} : (tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) -> (tensor<2x6x3x4xf32>, tensor<2x3x6xf32>)
    %2 = oriel.reshape %1 : (tensor<2x6x3x4xf32>) -> tensor<2x6x12xf32>
    // expected-error @below {{tp = 2 does not divide the 3 elements or heads at oriel.reshape}}
    %3 = oriel.linear %2, %output : (tensor<2x6x12xf32>, tensor<12x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}

// -----

module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x15xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<15x8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x15xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<15x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<2x4x8xf32>, tensor<8x15xf32>) -> tensor<2x4x15xf32>
    // expected-error @below {{tp = 2 does not divide the 15 elements or heads at oriel.linear, over which "up" of type 'tensor<8x15xf32>' would be split along dimension 1, and such weights have 100.0 % of the parameters, more than the 3 % that stay whole unasked: choose another tp, have zeros added by `padding: true` in the strategy (`--padding`), or keep it whole by `shardings: [{parameters: "up", tp: none}]`}}
    %1 = oriel.linear %0, %down : (tensor<2x4x15xf32>, tensor<15x8xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

// expected-error @below {{has no segment @forward: run the train phase first}}
module @no_forward {
}

// -----

// Of several layers one rule is for all.
module {
  oriel.parameter @p0 {onnx_name = "layers.0.up", type = tensor<8x15xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.down", type = tensor<15x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.1.up", type = tensor<8x15xf32>}
  oriel.parameter @p3 {onnx_name = "layers.1.down", type = tensor<15x8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up0: tensor<8x15xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down0: tensor<15x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %up1: tensor<8x15xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down1: tensor<15x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %x, %up0 : (tensor<2x4x8xf32>, tensor<8x15xf32>) -> tensor<2x4x15xf32>
    // expected-error @below {{over which "layers.0.up" of type 'tensor<8x15xf32>' would be split along dimension 1, and such weights have 100.0 % of the parameters, more than the 3 % that stay whole unasked: choose another tp, have zeros added by `padding: true` in the strategy (`--padding`), or keep such weights whole by `shardings: [{parameters: "layers.*.up", tp: none}]` in the strategy}}
    %1 = oriel.linear %0, %down0 : (tensor<2x4x15xf32>, tensor<15x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.linear %1, %up1 : (tensor<2x4x8xf32>, tensor<8x15xf32>) -> tensor<2x4x15xf32>
    %3 = oriel.linear %2, %down1 : (tensor<2x4x15xf32>, tensor<15x8xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

// Half of a weight's columns are trained.
module {
  oriel.parameter @p0_0 {onnx_name = "w", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 16>, trainable = true, type = tensor<8x8xf32>}
  // expected-error @below {{of "w", which is cut into parts, only some columns have a gradient; keep it whole: `shardings: [{parameters: "w", tp: none}]` in the strategy}}
  oriel.parameter @p0_1 {onnx_name = "w", oriel.start = array<i64: 0, 8>, oriel.whole = array<i64: 8, 16>, type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %first: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0_0"},
      %second: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0_1"}) {
    %0 = oriel.linear %x, %first : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %1 = oriel.linear %x, %second : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

module {
  // expected-error @below {{argument 0 of @forward lacks the string attribute oriel.kind}}
  func.func @forward(%x: f32) -> f32 {
    return %x : f32
  }
}
