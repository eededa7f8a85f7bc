// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/cp2.yaml | FileCheck %s

// A loss of the model's own, of rows of samples and positions: the positions are those of the last
// attention. Its other dimension that is whole, the depth of heads, comes from a weight, not an input.
// CHECK-LABEL: func.func @forward
// CHECK: oriel.linear {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.reshape {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.attention {{.*}}oriel.positions = array<i64: 1, -1>
// CHECK-NOT: oriel.positions
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<8x16xf32>}
  func.func @forward(%x: tensor<1x8x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.linear %x, %query : (tensor<1x8x8xf32>, tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %q = oriel.reshape %0 : (tensor<1x8x16xf32>) -> tensor<1x8x2x8xf32>
    %1, %lse = oriel.attention %q, %q, %q {scale = 0.5, causal = true, sequence_first = true} : (tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>, tensor<1x8x2x8xf32>) -> (tensor<1x8x2x8xf32>, tensor<1x2x8xf32>)
    %2 = oriel.reshape %1 : (tensor<1x8x2x8xf32>) -> tensor<8x16xf32>
    %3 = oriel.reduce_sum %2 {dims = array<i64: 0, 1>} : (tensor<8x16xf32>) -> tensor<f32>
    return %3 : tensor<f32>
  }
}
