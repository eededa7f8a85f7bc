// RUN: oriel-opt %s --oriel-assign-stages="strategy=%S/Inputs/three.yaml explain=true" --split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: oriel-opt %s --oriel-assign-stages="strategy=%S/Inputs/three.yaml" --split-input-file | FileCheck %s --check-prefix=IR

// Two towers, a projector with two weights, and an embedding, which comes first in the program but
// is only read where both meet. A reshape has no parameters and stays with the block in front.
// CHECK: stage: blocks: 'a' (2 blocks), 'b' (2 blocks)
// CHECK-NEXT: stage: part a.0: 64 parameters
// CHECK-NEXT: stage: part a.1: 64 parameters
// CHECK-NEXT: stage: part projector.up (between blocks): 256 parameters
// CHECK-NEXT: stage: part projector.down (between blocks): 512 parameters
// CHECK-NEXT: stage: part table (between blocks): 512 parameters
// CHECK-NEXT: stage: part b.0: 256 parameters
// CHECK-NEXT: stage: part b.1: 256 parameters
// CHECK-NEXT: stage: stage 0 on grid 0: a: 128 parameters, on 1 rank {{.*}} ms
// CHECK-NEXT: stage: stage 1 on grid 1: projector.up: 768 parameters, on 1 rank {{.*}} ms
// IR-LABEL: func.func @forward(
// IR: oriel.gather {{.*}}oriel.stage = 2 : i64
module {
  oriel.parameter @p0 {onnx_name = "a.0.weight", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "a.1.weight", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "projector.up.weight", type = tensor<8x32xf32>}
  oriel.parameter @p3 {onnx_name = "projector.down.weight", type = tensor<32x16xf32>}
  oriel.parameter @p4 {onnx_name = "table.weight", type = tensor<32x16xf32>}
  oriel.parameter @p5 {onnx_name = "b.0.weight", type = tensor<16x16xf32>}
  oriel.parameter @p6 {onnx_name = "b.1.weight", type = tensor<16x16xf32>}
  func.func @forward(%x: tensor<2x2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %ids: tensor<4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %a0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %a1: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %up: tensor<8x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down: tensor<32x16xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %table: tensor<32x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %b0: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p5"},
      %b1: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p6"})
      -> (tensor<4x16xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %embedded = oriel.gather %table, %ids {dim = 0 : i64, origin = 0 : i64} : (tensor<32x16xf32>, tensor<4xi64>) -> tensor<4x16xf32>
    %0 = oriel.linear %x, %a0 {origin = 1 : i64} : (tensor<2x2x8xf32>, tensor<8x8xf32>) -> tensor<2x2x8xf32>
    %1 = oriel.linear %0, %a1 {origin = 2 : i64} : (tensor<2x2x8xf32>, tensor<8x8xf32>) -> tensor<2x2x8xf32>
    %2 = oriel.reshape %1 {origin = 3 : i64} : (tensor<2x2x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.linear %2, %up {origin = 4 : i64} : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
    %4 = oriel.activation %3 {kind = "silu", origin = 5 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32>
    %5 = oriel.linear %4, %down {origin = 6 : i64} : (tensor<4x32xf32>, tensor<32x16xf32>) -> tensor<4x16xf32>
    %6 = oriel.add %embedded, %5 {origin = 7 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %7 = oriel.linear %6, %b0 {origin = 8 : i64} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    %8 = oriel.linear %7, %b1 {origin = 9 : i64} : (tensor<4x16xf32>, tensor<16x16xf32>) -> tensor<4x16xf32>
    return %8 : tensor<4x16xf32>
  }
}

// -----

// Nothing repeats: parts are where one value alone goes on, and count as blocks.
// CHECK: stage: blocks: 'part' (3 blocks)
// CHECK-NEXT: stage: part first: 32 parameters
// CHECK-NEXT: stage: part middle: 160 parameters
// CHECK-NEXT: stage: part last: 128 parameters
// CHECK: stage: stage 1 on grid 1: part.1: 160 parameters
module {
  oriel.parameter @p0 {onnx_name = "first.weight", type = tensor<4x8xf32>}
  oriel.parameter @p1 {onnx_name = "middle.left", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "middle.right", type = tensor<2x16xf32>}
  oriel.parameter @p3 {onnx_name = "last.weight", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w0: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w1: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %w2: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %w3: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %w0 {origin = 0 : i64} : (tensor<4x4xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.linear %0, %w1 {origin = 1 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 4, 2>, strides = array<i64: 1, 1>, origin = 2 : i64} : (tensor<4x8xf32>) -> tensor<4x2xf32>
    %3 = oriel.linear %2, %w2 {origin = 3 : i64} : (tensor<4x2xf32>, tensor<2x16xf32>) -> tensor<4x16xf32>
    %4 = oriel.mul %1, %3 {origin = 4 : i64} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %5 = oriel.linear %4, %w3 {origin = 5 : i64} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    return %5 : tensor<4x8xf32>
  }
}
