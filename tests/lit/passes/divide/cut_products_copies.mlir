// RUN: oriel-opt %s --oriel-cut-products=strategy=%S/Inputs/dp2.yaml --split-input-file | FileCheck %s

// Without tensor parallelism, where slices copy more than products of pieces read again.

// CHECK: oriel.parameter @p0_0 {onnx_name = "qkv.weight", oriel.start = array<i64: 0, 0>
// CHECK-LABEL: func.func @main
// CHECK-NOT: slice
oriel.parameter @p0 {onnx_name = "qkv.weight", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Narrow pieces of a wide input stay one product.
// CHECK-NOT: oriel.start
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: slice
oriel.parameter @p0 {onnx_name = "narrow.weight", type = tensor<8x4xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x2xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 2>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<6x2xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 2>, limits = array<i64: 6, 4>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<6x2xf32>
  %y = oriel.add %a, %b : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x2xf32>
  return %y : tensor<6x2xf32>
}
