// RUN: split-file %s %t
// RUN: not oriel-opt %t/odd.mlir --oriel-annotate=strategy=%S/Inputs/cp4.yaml 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not oriel-opt %t/none.mlir --oriel-annotate=strategy=%S/Inputs/cp4.yaml 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: oriel-opt %t/heads.mlir --oriel-annotate=strategy=%S/Inputs/cp4.yaml 2>&1 | FileCheck %s --check-prefix=HEADS
// RUN: oriel-opt %t/prefix.mlir --oriel-annotate=strategy=%S/Inputs/cp4.yaml 2>&1 | FileCheck %s --check-prefix=PREFIX

// ODD: error: cp = 4 does not divide the 6 positions of the loss (dimension 1 of 'tensor<2x6x5xf32>'): choose another cp
// NONE: error: {{.*}}cp = 4 splits positions, and the loss is no sum over what has some, as logits of [samples, positions, classes], nor does the model look up rows for an input of [samples.., positions] integers that stay apart: leave cp out

// Three heads and one sample are nothing that ranks could share; of six heads, two ranks have the same.
// HEADS: warning: {{.*}}needs all positions, and its other dimensions make 1 piece for the 4 ranks of cp: 4 ranks each compute the same of it. Choose a cp that divides the heads that tp leaves a rank
// HEADS: warning: {{.*}}needs all positions, and its other dimensions make 2 pieces for the 4 ranks of cp: 2 ranks each compute the same of it.
// HEADS: oriel.mesh = {cp = ["a0", "a1"]}

// The loss is of 8 positions, and most of the work of 9, with one in front.
// PREFIX: warning: {{.*}}has 9 positions, which cp = 4 does not divide, like 100 % of the work with parameters: each rank of cp does all of that. Choose another cp, or pad the sequence

//--- odd.mlir
module {
  func.func @forward(%x: tensor<2x6x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<2x6xi64> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %loss, %count, %sums = oriel.cross_entropy %x, %labels : (tensor<2x6x5xf32>, tensor<2x6xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x6xf32>)
    return %loss : tensor<f32>
  }
}

//--- none.mlir
module {
  func.func @forward(%x: tensor<2x5xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<2xi64> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %loss, %count, %sums = oriel.cross_entropy %x, %labels : (tensor<2x5xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
    return %loss : tensor<f32>
  }
}

//--- heads.mlir
module {
  func.func @forward(%x: tensor<1x8x3x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %labels: tensor<1x8xi64> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0, %lse = oriel.attention %x, %x, %x {scale = 0.5, causal = true, sequence_first = true} : (tensor<1x8x3x4xf32>, tensor<1x8x3x4xf32>, tensor<1x8x3x4xf32>) -> (tensor<1x8x3x4xf32>, tensor<1x3x8xf32>)
    %1 = oriel.reshape %0 : (tensor<1x8x3x4xf32>) -> tensor<1x8x6x2xf32>
    %2, %lse2 = oriel.attention %1, %1, %1 {scale = 0.5, causal = true, sequence_first = true} : (tensor<1x8x6x2xf32>, tensor<1x8x6x2xf32>, tensor<1x8x6x2xf32>) -> (tensor<1x8x6x2xf32>, tensor<1x6x8xf32>)
    %3 = oriel.reshape %2 : (tensor<1x8x6x2xf32>) -> tensor<1x8x12xf32>
    %loss, %count, %sums = oriel.cross_entropy %3, %labels : (tensor<1x8x12xf32>, tensor<1x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<1x8xf32>)
    return %loss : tensor<f32>
  }
}

//--- prefix.mlir
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<16x5xf32>}
  func.func @forward(%x: tensor<1x9x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<16x5xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %labels: tensor<1x8xi64> {oriel.kind = "input", oriel.ref = "labels"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %w : (tensor<1x9x16xf32>, tensor<16x5xf32>) -> tensor<1x9x5xf32>
    %1 = oriel.slice %0 {starts = array<i64: 0, 1, 0>, limits = array<i64: 1, 9, 5>, strides = array<i64: 1, 1, 1>} : (tensor<1x9x5xf32>) -> tensor<1x8x5xf32>
    %loss, %count, %sums = oriel.cross_entropy %1, %labels : (tensor<1x8x5xf32>, tensor<1x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<1x8xf32>)
    return %loss : tensor<f32>
  }
}
