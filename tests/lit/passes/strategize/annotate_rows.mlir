// Rows of samples and positions are cut by positions where each data-parallel rank has one sample.
// RUN: split-file %s %t
// RUN: oriel-opt %t/model.mlir --oriel-annotate=strategy=%t/apart.yaml 2>&1 | FileCheck %s --check-prefix=APART
// RUN: oriel-opt %t/model.mlir --oriel-annotate=strategy=%t/together.yaml 2>&1 | FileCheck %s --check-prefix=TOGETHER

// APART-NOT: warning
// TOGETHER: warning: {{.*}}has no positions that cp divides, as 71 % of the work with parameters: each rank of cp does all of that.

//--- apart.yaml
mesh: {dp: 2, cp: 4}
//--- together.yaml
mesh: {cp: 4}
//--- model.mlir
module {
  oriel.parameter @p0 {onnx_name = "v", type = tensor<2x5xf32>}
  oriel.parameter @p1 {onnx_name = "w", type = tensor<5x5xf32>}
  func.func @forward(%x: tensor<2x8x2xf32> {oriel.kind = "input", oriel.ref = "x"},
      %v: tensor<2x5xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<5x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %labels: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %v : (tensor<2x8x2xf32>, tensor<2x5xf32>) -> tensor<2x8x5xf32>
    %rows = oriel.reshape %0 : (tensor<2x8x5xf32>) -> tensor<16x5xf32>
    %1 = oriel.linear %rows, %w : (tensor<16x5xf32>, tensor<5x5xf32>) -> tensor<16x5xf32>
    %2 = oriel.reshape %1 : (tensor<16x5xf32>) -> tensor<2x8x5xf32>
    %logits = oriel.add %0, %2 : (tensor<2x8x5xf32>, tensor<2x8x5xf32>) -> tensor<2x8x5xf32>
    %loss, %count, %sums = oriel.cross_entropy %logits, %labels : (tensor<2x8x5xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
    return %loss : tensor<f32>
  }
}
