// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/sp.yaml --split-input-file --verify-diagnostics | FileCheck %s

// What comes out of a block is kept in pieces along the positions.
// CHECK: oriel.sequence_types = [tensor<4x6x8xf32>]
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<4x6x8xf32>, tensor<8x16xf32>) -> tensor<4x6x16xf32>
    %1 = oriel.linear %0, %down : (tensor<4x6x16xf32>, tensor<16x8xf32>) -> tensor<4x6x8xf32>
    return
  }
}

// -----

// 49 patches and a class token divide, 49 alone do not.
// CHECK: oriel.sequence_types = [tensor<4x50x8xf32>]
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x50x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %y: tensor<4x49x8xf32> {oriel.kind = "input", oriel.ref = "y"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<4x50x8xf32>, tensor<8x16xf32>) -> tensor<4x50x16xf32>
    %1 = oriel.linear %0, %down : (tensor<4x50x16xf32>, tensor<16x8xf32>) -> tensor<4x50x8xf32>
    %2 = oriel.linear %y, %up : (tensor<4x49x8xf32>, tensor<8x16xf32>) -> tensor<4x49x16xf32>
    // expected-warning @below {{no sequence parallelism for values of type 'tensor<4x49x8xf32>': 2 ranks do not divide the 49 positions}}
    %3 = oriel.linear %2, %down : (tensor<4x49x16xf32>, tensor<16x8xf32>) -> tensor<4x49x8xf32>
    return
  }
}

// -----

// A large product of what a block made, and of an input, which is no part of a block: in pieces along
// the positions. No warning that each rank does all of it.
// CHECK: oriel.sequence_types = [tensor<4x6x8xf32>]
module {
  oriel.parameter @p0 {onnx_name = "large", type = tensor<8x64xf32>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %large: tensor<8x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %up : (tensor<4x6x8xf32>, tensor<8x16xf32>) -> tensor<4x6x16xf32>
    %1 = oriel.linear %0, %down : (tensor<4x6x16xf32>, tensor<16x8xf32>) -> tensor<4x6x8xf32>
    %2 = oriel.add %x, %1 : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
    %3 = oriel.linear %2, %large : (tensor<4x6x8xf32>, tensor<8x64xf32>) -> tensor<4x6x64xf32>
    return
  }
}

// -----

// Of an input alone it is not, whatever its type, nor that of a weight.
// CHECK: oriel.sequence_types = [tensor<4x6x8xf32>]
module {
  oriel.parameter @p0 {onnx_name = "large", type = tensor<8x64xf32>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %large: tensor<8x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %up : (tensor<4x6x8xf32>, tensor<8x16xf32>) -> tensor<4x6x16xf32>
    %1 = oriel.linear %0, %down : (tensor<4x6x16xf32>, tensor<16x8xf32>) -> tensor<4x6x8xf32>
    // expected-warning @below {{is not split over tp = 2, as 67 % of the work with parameters}}
    %2 = oriel.linear %x, %large : (tensor<4x6x8xf32>, tensor<8x64xf32>) -> tensor<4x6x64xf32>
    return
  }
}
