// RUN: oriel-opt %s --oriel-pad-vocabulary=strategy=%S/Inputs/tp4_whole_head.yaml --verify-diagnostics | FileCheck %s

// A parameter that the strategy keeps whole is not padded, and its layer stays as it is.

// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", oriel.unpadded = array<i64: 5, 4>, type = tensor<8x4xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "head.weight", type = tensor<4x5xf32>}
// CHECK: %[[LOGITS:.*]] = oriel.linear %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x3x5xf32>
// CHECK-NEXT: return %[[LOGITS]]

// expected-warning@+1 {{"embed.weight" is padded to 8}}
oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<5x4xf32>}
oriel.parameter @p1 {onnx_name = "head.weight", type = tensor<4x5xf32>}
func.func @main(
    %ids: tensor<2x3xi64> {oriel.kind = "input", oriel.ref = "ids"},
    %e: tensor<5x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %w: tensor<4x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x3x5xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.gather %e, %ids {dim = 0 : i64} : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %1 = oriel.linear %0, %w : (tensor<2x3x4xf32>, tensor<4x5xf32>) -> tensor<2x3x5xf32>
  return %1 : tensor<2x3x5xf32>
}
