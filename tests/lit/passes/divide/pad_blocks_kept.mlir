// RUN: oriel-opt %s --oriel-pad-blocks=strategy=%S/Inputs/tp4_padding.yaml --split-input-file --verify-diagnostics | FileCheck %s --implicit-check-not=oriel.unpadded

// Blocks that get no zeros: each says why.

// The square root of zero has no finite derivative.
// CHECK: func.func @main
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.sqrt %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  // expected-warning@+1 {{what it sums is not padded: oriel.sqrt may not be finite at zero}}
  %2 = oriel.linear %1, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %2 : tensor<2x5xf32>
}

// -----

// Something else reads the columns.
// CHECK: func.func @main
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<2xf32> {oriel.kind = "output", oriel.ref = "size"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  // expected-warning@+1 {{what it sums is not padded: oriel.reduce_sum reads it, too}}
  %1 = oriel.linear %0, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  %2 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = false} : (tensor<2x6xf32>) -> tensor<2xf32>
  return %1, %2 : tensor<2x5xf32>, tensor<2xf32>
}

// -----

// The logarithm of zero: what was made is undone.
// CHECK: func.func @main
// CHECK: oriel.linear {{.*}} -> tensor<2x6xf32>
// CHECK-NEXT: oriel.log
// CHECK-NEXT: oriel.linear
// CHECK-NEXT: return
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.log %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  // expected-warning@+1 {{what it sums is not padded: oriel.log may not be finite at zero}}
  %2 = oriel.linear %1, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %2 : tensor<2x5xf32>
}

// -----

// A layer norm over all columns, by their true number.
// CHECK: func.func @main
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "norm", type = tensor<6xf32>}
oriel.parameter @p2 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %norm: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p2"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1, %mean, %inv = oriel.layer_norm %0, %norm {epsilon = 1.0e-3} : (tensor<2x6xf32>, tensor<6xf32>) -> (tensor<2x6xf32>, tensor<2xf32>, tensor<2xf32>)
  // expected-warning@+1 {{what it sums is not padded: oriel.layer_norm needs all of it}}
  %2 = oriel.linear %1, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %2 : tensor<2x5xf32>
}

// -----

// The root mean square of a norm over all columns is read.
// CHECK: func.func @main
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "norm", type = tensor<6xf32>}
oriel.parameter @p2 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %norm: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p2"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<2xf32> {oriel.kind = "output", oriel.ref = "rms"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1, %inv = oriel.rms_norm %0, %norm {epsilon = 1.0e-3} : (tensor<2x6xf32>, tensor<6xf32>) -> (tensor<2x6xf32>, tensor<2xf32>)
  // expected-warning@+1 {{what it sums is not padded: its root mean square is read}}
  %2 = oriel.linear %1, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %2, %inv : tensor<2x5xf32>, tensor<2xf32>
}

// -----

// Columns that activations hide: of what is added all, and a softmax would have nothing to choose from.
// CHECK: func.func @main
oriel.parameter @p0 {onnx_name = "scores", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x4x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %hidden = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.linear %x, %up : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %1 = oriel.greater %0, %zero : (tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xi1>
  %2 = oriel.select %1, %0, %hidden : (tensor<2x4x6xi1>, tensor<2x4x6xf32>, tensor<f32>) -> tensor<2x4x6xf32>
  %3 = oriel.softmax %2 {dim = 1 : i64} : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  // expected-warning@+1 {{what it sums is not padded: oriel.select may not be finite at zero}}
  %4 = oriel.linear %3, %down : (tensor<2x4x6xf32>, tensor<6x5xf32>) -> tensor<2x4x5xf32>
  return %4 : tensor<2x4x5xf32>
}

// -----

// Something else reads a weight.
// CHECK: func.func @main
oriel.parameter @p0 {onnx_name = "gate", type = tensor<8x3xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<3x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %gate: tensor<8x3xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<3x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8x3xf32> {oriel.kind = "output", oriel.ref = "w"}) {
  %0 = oriel.linear %x, %gate : (tensor<2x8xf32>, tensor<8x3xf32>) -> tensor<2x3xf32>
  %1 = oriel.neg %gate : (tensor<8x3xf32>) -> tensor<8x3xf32>
  // expected-warning@+1 {{what it sums is not padded: "gate" is read elsewhere, too}}
  %2 = oriel.linear %0, %down : (tensor<2x3xf32>, tensor<3x5xf32>) -> tensor<2x5xf32>
  return %2, %1 : tensor<2x5xf32>, tensor<8x3xf32>
}
