// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/overrides.yaml | FileCheck %s

// The first MLP is kept whole, the second is split as ever, and a layer that is not part of a block
// is split as the strategy says.
// CHECK: oriel.parameter @p0 {onnx_name = "mlp.0.up", type = tensor<8x16xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "mlp.0.down", type = tensor<16x8xf32>}
// CHECK: "mlp.1.up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "mlp.1.down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "alone", {{.*}}use = #oriel.sharding<[{}, {a0}]>
module {
  oriel.parameter @p0 {onnx_name = "mlp.0.up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "mlp.0.down", type = tensor<16x8xf32>}
  oriel.parameter @p2 {onnx_name = "mlp.1.up", type = tensor<8x16xf32>}
  oriel.parameter @p3 {onnx_name = "mlp.1.down", type = tensor<16x8xf32>}
  oriel.parameter @p4 {onnx_name = "alone", type = tensor<8x6xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up0: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down0: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %up1: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %alone: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p4"}) {
    %0 = oriel.linear %x, %up0 : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %1 = oriel.linear %0, %down0 : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.linear %1, %up1 : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %3 = oriel.linear %2, %down1 : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.linear %3, %alone : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
    return
  }
}
