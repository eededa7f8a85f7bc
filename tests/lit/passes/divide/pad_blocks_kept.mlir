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
