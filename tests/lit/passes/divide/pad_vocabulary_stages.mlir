// RUN: oriel-opt %s --oriel-pad-vocabulary=strategy=%S/Inputs/stage_meshes.yaml --verify-diagnostics | FileCheck %s

// A table that both stages use, one with tp = 2 and one with tp = 3.

// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", oriel.unpadded = array<i64: 10, 4>, type = tensor<12x4xf32>}

// expected-warning@+1 {{the vocabulary of 10 of "embed.weight" is padded to 12 for tensor parallelism}}
oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<10x4xf32>}
func.func @main(
    %ids: tensor<2x3xi64> {oriel.kind = "input", oriel.ref = "ids"},
    %e: tensor<10x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2x3x10xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.gather %e, %ids {dim = 0 : i64} : (tensor<10x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %1 = oriel.linear %0, %e {transpose_weight = true} : (tensor<2x3x4xf32>, tensor<10x4xf32>) -> tensor<2x3x10xf32>
  return %1 : tensor<2x3x10xf32>
}
