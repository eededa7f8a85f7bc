// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s

// A tower takes columns of what another one's heads make, with layers of its own, as an action expert
// does of keys and values (Shukor et al. 2025, section 3): the heads are split, and gathered for it.
// CHECK: "value", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "output", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "taken", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "made", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "value", type = tensor<16x16xf32>}
  oriel.parameter @p1 {onnx_name = "output", type = tensor<16x16xf32>}
  oriel.parameter @p2 {onnx_name = "taken", type = tensor<16x8xf32>}
  oriel.parameter @p3 {onnx_name = "made", type = tensor<8x64xf32>}
  func.func @forward(%x: tensor<2x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %value: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %output: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %taken: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %made: tensor<8x64xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %x, %value : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %1 = oriel.tanh %0 : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %2 = oriel.linear %1, %output : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %3 = oriel.linear %1, %taken : (tensor<2x16xf32>, tensor<16x8xf32>) -> tensor<2x8xf32>
    %4 = oriel.tanh %3 : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %5 = oriel.linear %4, %made : (tensor<2x8xf32>, tensor<8x64xf32>) -> tensor<2x64xf32>
    return
  }
}

// -----

// A residual stream would carry the pieces on: it stays whole.
// CHECK: "in", type = tensor<16x16xf32>}
// CHECK: "out", type = tensor<16x16xf32>}
module {
  oriel.parameter @p0 {onnx_name = "in", type = tensor<16x16xf32>}
  oriel.parameter @p1 {onnx_name = "out", type = tensor<16x16xf32>}
  func.func @forward(%x: tensor<8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %in: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %out: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %in : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %1 = oriel.linear %0, %out : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = oriel.add %0, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return
  }
}

// -----

// So would a sum with a table of positions, though that is a parameter of two dimensions.
// CHECK: "in", type = tensor<16x16xf32>}
// CHECK: "out", type = tensor<16x16xf32>}
module {
  oriel.parameter @p0 {onnx_name = "in", type = tensor<16x16xf32>}
  oriel.parameter @p1 {onnx_name = "out", type = tensor<16x16xf32>}
  oriel.parameter @p2 {onnx_name = "positions", type = tensor<8x16xf32>}
  func.func @forward(%x: tensor<8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %in: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %out: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %positions: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %in : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %1 = oriel.linear %0, %out : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %2 = oriel.add %0, %positions : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return
  }
}
