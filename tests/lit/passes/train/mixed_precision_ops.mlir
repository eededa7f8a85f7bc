// The recipe decides about ops by name.
// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16_ops.yaml | FileCheck %s
// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16_ops.yaml --oriel-train=recipe=%S/Inputs/bf16_ops.yaml | FileCheck %s --check-prefix=LOSS
// RUN: not oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16_typo.yaml 2>&1 | FileCheck %s --check-prefix=TYPO

// RUN: not oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16_hidden.yaml 2>&1 | FileCheck %s --check-prefix=HIDDEN
// HIDDEN: error: the recipe's 'precision.ops' pattern 'soft*' decides for no op: names come before patterns, and these in their order; put the narrower one first
// TYPO: error: the recipe's 'precision.ops' pattern 'sofmax' matches no op with a derivative; did you mean 'softmax'?

// CHECK-DAG: oriel.parameter @g {onnx_name = "g", type = tensor<6xf32>}
// CHECK-DAG: oriel.parameter @w {onnx_name = "w", type = tensor<6x6xbf16>}
// CHECK: oriel.rms_norm {{.*}} -> (tensor<2x4x6xf32>, tensor<2x4xf32>)
// CHECK: oriel.linear {{.*}} -> tensor<2x4x6xbf16>
// CHECK: oriel.reduce_mean {{.*}} -> tensor<2x4x1xbf16>

// LOSS-LABEL: func.func @forward
// LOSS: oriel.cross_entropy %{{.*}} : (tensor<2x4x6xf32>, tensor<2x4xi64>)
module {
  oriel.parameter @g {onnx_name = "g", type = tensor<6xf32>}
  oriel.parameter @w {onnx_name = "w", type = tensor<6x6xf32>}
  func.func @main(%x: tensor<2x4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %g: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "g"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "w"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0, %r = oriel.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : (tensor<2x4x6xf32>, tensor<6xf32>) -> (tensor<2x4x6xf32>, tensor<2x4xf32>)
    %1 = oriel.linear %0, %w : (tensor<2x4x6xf32>, tensor<6x6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.reduce_mean %1 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x4x6xf32>) -> tensor<2x4x1xf32>
    %3 = oriel.sub %1, %2 : (tensor<2x4x6xf32>, tensor<2x4x1xf32>) -> tensor<2x4x6xf32>
    return %3 : tensor<2x4x6xf32>
  }
}
