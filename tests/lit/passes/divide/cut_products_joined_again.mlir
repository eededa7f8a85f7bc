// RUN: oriel-opt %s --oriel-cut-products=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s

// A layer of joined columns whose result is joined for another one: first the one, then the other.
// CHECK-LABEL: func.func @main
// CHECK-NOT: oriel.concat
// CHECK-COUNT-2: oriel.linear {{.*}} -> tensor<2x8xf32>
// CHECK-COUNT-2: oriel.linear {{.*}} -> tensor<2x4xf32>
// CHECK: oriel.add
// CHECK: return
module {
  oriel.parameter @p0 {onnx_name = "first", type = tensor<4x8xf32>}
  oriel.parameter @p1 {onnx_name = "second", type = tensor<4x8xf32>}
  oriel.parameter @p2 {onnx_name = "inner", type = tensor<16x4xf32>}
  oriel.parameter @p3 {onnx_name = "outer", type = tensor<12x6xf32>}
  func.func @main(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %first: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %second: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %inner: tensor<16x4xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %outer: tensor<12x6xf32> {oriel.kind = "parameter", oriel.ref = "p3"})
      -> (tensor<2x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %first : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %1 = oriel.tanh %0 : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %2 = oriel.linear %x, %second : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %3 = oriel.tanh %2 : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %4 = oriel.concat %1, %3 {dim = 1 : i64} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x16xf32>
    %5 = oriel.linear %4, %inner : (tensor<2x16xf32>, tensor<16x4xf32>) -> tensor<2x4xf32>
    %6 = oriel.linear %x, %second : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
    %7 = oriel.concat %5, %6 {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x8xf32>) -> tensor<2x12xf32>
    %8 = oriel.linear %7, %outer : (tensor<2x12xf32>, tensor<12x6xf32>) -> tensor<2x6xf32>
    return %8 : tensor<2x6xf32>
  }
}

// -----

// A skip between layers of a residual stream: the stream stays whole, and so does the layer.
// CHECK-LABEL: func.func @main
// CHECK: oriel.concat
// CHECK-NEXT: oriel.linear {{.*}} : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
module {
  oriel.parameter @p0 {onnx_name = "in", type = tensor<4x4xf32>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<4xf32>}
  oriel.parameter @p2 {onnx_name = "skip", type = tensor<8x4xf32>}
  func.func @main(%x: tensor<2x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %in: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %skip: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<2x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %in : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %1:2 = oriel.rms_norm %0, %norm {epsilon = 1.0e-6 : f64} : (tensor<2x4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>)
    %2 = oriel.concat %1#0, %0 {dim = 1 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
    %3 = oriel.linear %2, %skip : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
    return %3 : tensor<2x4xf32>
  }
}
