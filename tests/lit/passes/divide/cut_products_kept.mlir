// RUN: oriel-opt %s --oriel-cut-products=strategy=%S/Inputs/tp4_whole_head.yaml --split-input-file | FileCheck %s --implicit-check-not=oriel.start

// What is not cut.

// A rule of the strategy for the weight.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "head.weight", type = tensor<8x16xf32>}
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

// A rule of the strategy for the bias.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "head.bias", type = tensor<16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %c: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w, %c : (tensor<6x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// A bias of two layers.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "c", type = tensor<16xf32>}
oriel.parameter @p2 {onnx_name = "w2", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %c: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %w2: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w, %c : (tensor<6x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  %1 = oriel.linear %x, %w2, %c : (tensor<6x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %1 : tensor<6x8xf32>, tensor<6x16xf32>
}

// -----

// A bias that is no parameter.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "w2", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %w2: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %c = oriel.constant {value = dense<1.0> : tensor<16xf32>} : () -> tensor<16xf32>
  %1 = oriel.linear %x, %w2, %c : (tensor<6x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %1 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %1 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %0 : tensor<6x8xf32>, tensor<6x16xf32>
}

// -----

// A weight of two layers.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %1 : tensor<6x8xf32>, tensor<6x16xf32>
}

// -----

// Something else takes all of it.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %0 : tensor<6x8xf32>, tensor<6x16xf32>
}

// -----

// Something else takes all of it, reshaped.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x4x4xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %1 = oriel.reshape %0 : (tensor<6x16xf32>) -> tensor<6x4x4xf32>
  %2 = oriel.tanh %1 : (tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %2 : tensor<6x8xf32>, tensor<6x4x4xf32>
}

// -----

// Columns between slices that nobody takes.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x12xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 12>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x4xf32>
  %y = oriel.concat %a, %b {dim = 1 : i64} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<6x12xf32>
  return %y : tensor<6x12xf32>
}

// -----

// Columns behind slices that nobody takes.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x12xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 12>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x4xf32>
  %y = oriel.concat %a, %b {dim = 1 : i64} : (tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<6x12xf32>
  return %y : tensor<6x12xf32>
}

// -----

// Columns that are in two slices.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x20xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 4>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x12xf32>
  %y = oriel.concat %a, %b {dim = 1 : i64} : (tensor<6x8xf32>, tensor<6x12xf32>) -> tensor<6x20xf32>
  return %y : tensor<6x20xf32>
}

// -----

// Columns on which the loss does not depend.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  return %a, %b : tensor<6x8xf32>, tensor<6x8xf32>
}

// -----

// Columns on which the loss does not depend, across those on which it does.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "more0"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %c = oriel.slice %0 {starts = array<i64: 0, 4>, limits = array<i64: 6, 12>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y, %c : tensor<6x8xf32>, tensor<6x8xf32>
}

// -----

// Every second column.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 16>, strides = array<i64: 1, 2>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 1>, limits = array<i64: 6, 16>, strides = array<i64: 1, 2>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Rows, too.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<9x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<3x8xf32>
  %b = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.concat %a, %b {dim = 0 : i64} : (tensor<3x8xf32>, tensor<6x8xf32>) -> tensor<9x8xf32>
  return %y : tensor<9x8xf32>
}

// -----

// A reshape that joins columns with rows.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<48xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.reshape %0 : (tensor<6x16xf32>) -> tensor<96xf32>
  %a = oriel.slice %1 {starts = array<i64: 0>, limits = array<i64: 48>, strides = array<i64: 1>} : (tensor<96xf32>) -> tensor<48xf32>
  %b = oriel.slice %1 {starts = array<i64: 48>, limits = array<i64: 96>, strides = array<i64: 1>} : (tensor<96xf32>) -> tensor<48xf32>
  %y = oriel.add %a, %b : (tensor<48xf32>, tensor<48xf32>) -> tensor<48xf32>
  return %y : tensor<48xf32>
}

// -----

// A reshape across columns.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<12x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.reshape %0 : (tensor<6x16xf32>) -> tensor<12x8xf32>
  %a = oriel.slice %1 {starts = array<i64: 0, 0>, limits = array<i64: 12, 4>, strides = array<i64: 1, 1>} : (tensor<12x8xf32>) -> tensor<12x4xf32>
  %b = oriel.slice %1 {starts = array<i64: 0, 4>, limits = array<i64: 12, 8>, strides = array<i64: 1, 1>} : (tensor<12x8xf32>) -> tensor<12x4xf32>
  %y = oriel.add %a, %b : (tensor<12x4xf32>, tensor<12x4xf32>) -> tensor<12x4xf32>
  return %y : tensor<12x4xf32>
}

// -----

// Parts within heads: not the first of the dimensions that columns are split into.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x4x1x2xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.reshape %0 : (tensor<6x16xf32>) -> tensor<6x4x2x2xf32>
  %a = oriel.slice %1 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 6, 4, 1, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x4x2x2xf32>) -> tensor<6x4x1x2xf32>
  %b = oriel.slice %1 {starts = array<i64: 0, 0, 1, 0>, limits = array<i64: 6, 4, 2, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x4x2x2xf32>) -> tensor<6x4x1x2xf32>
  %y = oriel.add %a, %b : (tensor<6x4x1x2xf32>, tensor<6x4x1x2xf32>) -> tensor<6x4x1x2xf32>
  return %y : tensor<6x4x1x2xf32>
}

// -----

// Slices of a sum with something that is no product of a parameter.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %z: tensor<6x16xf32> {oriel.kind = "input", oriel.ref = "z"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  // CHECK: oriel.add %{{.*}}, %{{.*}} : (tensor<6x16xf32>, tensor<6x16xf32>)
  %1 = oriel.add %0, %z : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %1 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %1 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// Slices of a product added to itself: what is read twice.
// CHECK-LABEL: func.func @main
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.add %0, %0 : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %1 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %1 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %y = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}
