// RUN: oriel-opt %s --oriel-cut-products=strategy=%S/Inputs/tp4.yaml --split-input-file | FileCheck %s

// Slices of a weight, of which the second holds keys and values: so does torch.nn.MultiheadAttention
// where queries are of another input.

// CHECK: oriel.parameter @{{[a-z0-9_]+}} {onnx_name = "in_proj", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 24, 8>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @{{[a-z0-9_]+}} {onnx_name = "in_proj", oriel.start = array<i64: 8, 0>, oriel.whole = array<i64: 24, 8>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @{{[a-z0-9_]+}} {onnx_name = "in_proj", oriel.start = array<i64: 16, 0>, oriel.whole = array<i64: 24, 8>, type = tensor<8x8xf32>}
// CHECK-LABEL: func.func @main
// CHECK-NOT: oriel.slice
// CHECK-COUNT-3: oriel.linear {{.*}} {transpose_weight = true}
// CHECK-NOT: oriel.slice
// CHECK: return
oriel.parameter @p0 {onnx_name = "in_proj", type = tensor<24x8xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %y: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "y"},
    %w: tensor<24x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x24xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %wq = oriel.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 8, 8>, strides = array<i64: 1, 1>} : (tensor<24x8xf32>) -> tensor<8x8xf32>
  %wkv = oriel.slice %w {starts = array<i64: 8, 0>, limits = array<i64: 24, 8>, strides = array<i64: 1, 1>} : (tensor<24x8xf32>) -> tensor<16x8xf32>
  %q = oriel.linear %x, %wq {transpose_weight = true} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %kv = oriel.linear %y, %wkv {transpose_weight = true} : (tensor<6x8xf32>, tensor<16x8xf32>) -> tensor<6x16xf32>
  %k = oriel.slice %kv {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %v = oriel.slice %kv {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %out = oriel.concat %q, %k, %v {dim = 1 : i64} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x24xf32>
  return %out : tensor<6x24xf32>
}

// -----

// Not where the weight is used as a whole, too, or where slices leave some of it out.

// CHECK: oriel.parameter @p0 {onnx_name = "used_whole", type = tensor<16x8xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "left_out", type = tensor<16x8xf32>}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-3: oriel.slice
oriel.parameter @p0 {onnx_name = "used_whole", type = tensor<16x8xf32>}
oriel.parameter @p1 {onnx_name = "left_out", type = tensor<16x8xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %u: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
    -> (tensor<6x24xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "whole"}) {
  %a = oriel.slice %w {starts = array<i64: 0, 0>, limits = array<i64: 8, 8>, strides = array<i64: 1, 1>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %b = oriel.slice %w {starts = array<i64: 8, 0>, limits = array<i64: 16, 8>, strides = array<i64: 1, 1>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %c = oriel.slice %u {starts = array<i64: 8, 0>, limits = array<i64: 16, 8>, strides = array<i64: 1, 1>} : (tensor<16x8xf32>) -> tensor<8x8xf32>
  %0 = oriel.linear %x, %a {transpose_weight = true} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %1 = oriel.linear %x, %b {transpose_weight = true} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %2 = oriel.linear %x, %c {transpose_weight = true} : (tensor<6x8xf32>, tensor<8x8xf32>) -> tensor<6x8xf32>
  %3 = oriel.linear %x, %w {transpose_weight = true} : (tensor<6x8xf32>, tensor<16x8xf32>) -> tensor<6x16xf32>
  %out = oriel.concat %0, %1, %2 {dim = 1 : i64} : (tensor<6x8xf32>, tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x24xf32>
  return %out, %3 : tensor<6x24xf32>, tensor<6x16xf32>
}

// -----

// Nor where one of the slices has no gradient.

// CHECK: oriel.parameter @p0 {onnx_name = "signs", type = tensor<16xf32>}
// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: oriel.slice
oriel.parameter @p0 {onnx_name = "signs", type = tensor<16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %b: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %scale = oriel.slice %b {starts = array<i64: 0>, limits = array<i64: 8>, strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<8xf32>
  %shift = oriel.slice %b {starts = array<i64: 8>, limits = array<i64: 16>, strides = array<i64: 1>} : (tensor<16xf32>) -> tensor<8xf32>
  %sign = oriel.sign %scale : (tensor<8xf32>) -> tensor<8xf32>
  %0 = oriel.mul %x, %sign : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  %1 = oriel.add %0, %shift : (tensor<6x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
  return %1 : tensor<6x8xf32>
}
