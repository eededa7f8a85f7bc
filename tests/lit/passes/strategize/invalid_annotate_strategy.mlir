// RUN: not oriel-opt %s --oriel-annotate=strategy=%S/Inputs/absent.yaml 2>&1 | FileCheck %s --check-prefix=ABSENT
// RUN: not oriel-opt %s --oriel-annotate="strategy=%S/Inputs/tp2.yaml microbatches=0" 2>&1 | FileCheck %s --check-prefix=MICROBATCHES
// RUN: not oriel-opt %s --oriel-annotate=strategy=%S/Inputs/missing_dimension.yaml 2>&1 | FileCheck %s --check-prefix=MISSING
// RUN: not oriel-opt %s --oriel-annotate=strategy=%S/Inputs/odd_dimension.yaml 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: not oriel-opt %s --oriel-annotate=strategy=%S/Inputs/no_match.yaml 2>&1 | FileCheck %s --check-prefix=MATCH
// RUN: not oriel-opt %s --oriel-annotate=strategy=%S/Inputs/two_rules.yaml 2>&1 | FileCheck %s --check-prefix=TWO

// ABSENT: error: can't read the strategy '{{.*}}absent.yaml'
// MICROBATCHES: error: a step of 0 microbatches: at least one is needed
// MISSING: error: {{.*}}the strategy splits dimension 2 of "w" over tp, which has 2 dimensions
// ODD: error: {{.*}}the strategy splits dimension 1 of "w" over tp, but tp = 2 does not divide its 5 elements
// MATCH: error: the pattern 'v' in 'shardings[0]' of the strategy matches no parameter
// TWO: error: the parameter 'w' matches patterns in both 'shardings[0]' and 'shardings[1]' of the strategy: narrow one of them
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<8x5xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x5xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x5xf32>) -> tensor<2x4x5xf32>
    return
  }
}
