// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml | FileCheck %s

// Two layers take their scales from one small network, as diffusion transformers do. The network's
// two products would be a block, in the way of either scale's, which alone is no larger: but the
// scales are cut together or not at all, and that is more.
// CHECK: "first", type = tensor<16x16xf32>}
// CHECK: "second", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "scale_of_0", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "scale_of_1", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "first", type = tensor<16x16xf32>}
  oriel.parameter @p1 {onnx_name = "second", type = tensor<16x16xf32>}
  oriel.parameter @p2 {onnx_name = "scale_of_0", type = tensor<16x16xf32>}
  oriel.parameter @p3 {onnx_name = "scale_of_1", type = tensor<16x16xf32>}
  func.func @forward(%time: tensor<2x16xf32> {oriel.kind = "input", oriel.ref = "time"},
      %x: tensor<2x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %first: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %second: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %scale_of_0: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %scale_of_1: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %time, %first : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %1 = oriel.activation %0 {kind = "silu"} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %2 = oriel.linear %1, %second : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %3 = oriel.activation %2 {kind = "silu"} : (tensor<2x16xf32>) -> tensor<2x16xf32>
    %4 = oriel.linear %3, %scale_of_0 : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %5 = oriel.mul %x, %4 : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    %6 = oriel.linear %3, %scale_of_1 : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
    %7 = oriel.mul %5, %6 : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
    return
  }
}
