// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml | FileCheck %s

// A layer that takes one vector of each sample, which others read as a whole: each rank takes its
// piece of that, and the weight is split. Of a layer of many positions the sum is as large as the
// weight: it stays whole. So does one that takes both.
// CHECK: "of_sample", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "of_position", type = tensor<16x16xf32>}
// CHECK: "of_both", type = tensor<16x64xf32>}
module {
  oriel.parameter @p0 {onnx_name = "of_sample", type = tensor<16x64xf32>}
  oriel.parameter @p1 {onnx_name = "of_position", type = tensor<16x16xf32>}
  oriel.parameter @p2 {onnx_name = "of_both", type = tensor<16x64xf32>}
  func.func @forward(%x: tensor<1x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %positions: tensor<1x8x16xf32> {oriel.kind = "input", oriel.ref = "positions"},
      %of_sample: tensor<16x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %of_position: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %of_both: tensor<16x64xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %of_sample : (tensor<1x16xf32>, tensor<16x64xf32>) -> tensor<1x64xf32>
    %1 = oriel.linear %positions, %of_position : (tensor<1x8x16xf32>, tensor<16x16xf32>) -> tensor<1x8x16xf32>
    %2 = oriel.linear %x, %of_both : (tensor<1x16xf32>, tensor<16x64xf32>) -> tensor<1x64xf32>
    %3 = oriel.linear %positions, %of_both : (tensor<1x8x16xf32>, tensor<16x64xf32>) -> tensor<1x8x64xf32>
    return
  }
}
