// RUN: not oriel-opt %s --oriel-train=recipe=%S/Inputs/absent.yaml 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not oriel-opt %s --oriel-train=recipe=%S/Inputs/typo.yaml 2>&1 | FileCheck %s --check-prefix=TYPO
// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/unused_input.yaml 2>&1 | FileCheck %s --check-prefix=UNUSED
// RUN: not oriel-opt %s --oriel-train=recipe=%S/Inputs/shift_rank_1.yaml 2>&1 | FileCheck %s --check-prefix=SHIFT

// ABSENT: error: can't read the recipe '{{.*}}absent.yaml'
// TYPO: error: {{.*}}typo.yaml:2:24: unknown key 'lables' in 'loss'; did you mean 'labels'?
// SHIFT: error: the labels 'labels' of type 'tensor<8xi64>' can't be shifted
// UNUSED: warning: the recipe's input 'weights' is not used
// UNUSED-LABEL: func.func @forward
// UNUSED-NOT: "weights"
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x6xf32>}
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}
