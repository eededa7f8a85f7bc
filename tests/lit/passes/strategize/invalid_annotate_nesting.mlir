// RUN: not oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp6.yaml 2>&1 | FileCheck %s

// Two key heads in one layer and three in another: six ranks are three groups of two here, and two
// groups of three there.
// CHECK: error: some layers need 2 groups of tensor-parallel ranks and others 3, which do not nest: choose another tp
// CHECK: note: 2 groups, for "key.0"
// CHECK: note: 3 groups, for "key.1"
module {
  oriel.parameter @p0 {onnx_name = "query.0", type = tensor<8x24xf32>}
  oriel.parameter @p1 {onnx_name = "key.0", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "output.0", type = tensor<24x8xf32>}
  oriel.parameter @p3 {onnx_name = "query.1", type = tensor<8x24xf32>}
  oriel.parameter @p4 {onnx_name = "key.1", type = tensor<8x12xf32>}
  oriel.parameter @p5 {onnx_name = "output.1", type = tensor<24x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query0: tensor<8x24xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %key0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %output0: tensor<24x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %query1: tensor<8x24xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %key1: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %output1: tensor<24x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %0 = oriel.linear %x, %query0 : (tensor<2x6x8xf32>, tensor<8x24xf32>) -> tensor<2x6x24xf32>
    %q0 = oriel.reshape %0 : (tensor<2x6x24xf32>) -> tensor<2x6x6x4xf32>
    %1 = oriel.linear %x, %key0 : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %k0 = oriel.reshape %1 : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
    %2, %lse0 = oriel.attention %q0, %k0, %k0 {scale = 0.5, sequence_first = true} : (tensor<2x6x6x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x6x4xf32>, tensor<2x6x6xf32>)
    %3 = oriel.reshape %2 : (tensor<2x6x6x4xf32>) -> tensor<2x6x24xf32>
    %4 = oriel.linear %3, %output0 : (tensor<2x6x24xf32>, tensor<24x8xf32>) -> tensor<2x6x8xf32>
    %5 = oriel.linear %4, %query1 : (tensor<2x6x8xf32>, tensor<8x24xf32>) -> tensor<2x6x24xf32>
    %q1 = oriel.reshape %5 : (tensor<2x6x24xf32>) -> tensor<2x6x6x4xf32>
    %6 = oriel.linear %4, %key1 : (tensor<2x6x8xf32>, tensor<8x12xf32>) -> tensor<2x6x12xf32>
    %k1 = oriel.reshape %6 : (tensor<2x6x12xf32>) -> tensor<2x6x3x4xf32>
    %7, %lse1 = oriel.attention %q1, %k1, %k1 {scale = 0.5, sequence_first = true} : (tensor<2x6x6x4xf32>, tensor<2x6x3x4xf32>, tensor<2x6x3x4xf32>) -> (tensor<2x6x6x4xf32>, tensor<2x6x6xf32>)
    %8 = oriel.reshape %7 : (tensor<2x6x6x4xf32>) -> tensor<2x6x24xf32>
    %9 = oriel.linear %8, %output1 : (tensor<2x6x24xf32>, tensor<24x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}
