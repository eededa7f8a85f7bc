// Rows of samples and positions are cut by positions where each data-parallel rank has one sample.
// RUN: split-file %s %t
// RUN: oriel-opt %t/model.mlir --oriel-annotate=strategy=%t/apart.yaml 2>&1 | FileCheck %s --check-prefix=APART
// RUN: oriel-opt %t/model.mlir --oriel-annotate=strategy=%t/together.yaml 2>&1 | FileCheck %s --check-prefix=TOGETHER

// RUN: oriel-opt %t/heads.mlir --oriel-annotate=strategy=%t/apart.yaml 2>&1 | FileCheck %s --check-prefix=HEADS

// APART-NOT: warning
// TOGETHER: warning: {{.*}}has no positions that cp divides, as 71 % of the work with parameters: each rank of cp does all of that.

// As many heads as data-parallel ranks are no samples: rows of heads and positions are whole.
// HEADS: warning: {{.*}}has no positions that cp divides, as 24 % of the work with parameters

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
//--- heads.mlir
module {
  oriel.parameter @p0 {onnx_name = "v", type = tensor<16x10xf32>}
  oriel.parameter @p1 {onnx_name = "w", type = tensor<5x5xf32>}
  func.func @forward(%x: tensor<2x8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %v: tensor<16x10xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<5x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %labels: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %v : (tensor<2x8x16xf32>, tensor<16x10xf32>) -> tensor<2x8x10xf32>
    %1 = oriel.reshape %0 : (tensor<2x8x10xf32>) -> tensor<2x8x2x5xf32>
    %2 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x8x2x5xf32>) -> tensor<2x2x8x5xf32>
    %rows = oriel.reshape %2 : (tensor<2x2x8x5xf32>) -> tensor<2x16x5xf32>
    %3 = oriel.linear %rows, %w : (tensor<2x16x5xf32>, tensor<5x5xf32>) -> tensor<2x16x5xf32>
    %4 = oriel.reshape %3 : (tensor<2x16x5xf32>) -> tensor<2x2x8x5xf32>
    %5 = oriel.transpose %4 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x2x8x5xf32>) -> tensor<2x8x2x5xf32>
    %6 = oriel.reshape %5 : (tensor<2x8x2x5xf32>) -> tensor<2x8x10xf32>
    %logits = oriel.add %0, %6 : (tensor<2x8x10xf32>, tensor<2x8x10xf32>) -> tensor<2x8x10xf32>
    %loss, %count, %sums = oriel.cross_entropy %logits, %labels : (tensor<2x8x10xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
    return %loss : tensor<f32>
  }
}
