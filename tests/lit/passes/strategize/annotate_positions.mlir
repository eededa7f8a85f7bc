// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/cp2.yaml | FileCheck %s
// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/cp4.yaml 2>&1 | FileCheck %s --check-prefix=MORE

// Positions are followed back from the loss: through products, reshapes and sums, through attention
// and a merge of images (which need all of them) to the operand of the type of their result. Images
// and what attention reads besides have none.
// CHECK: oriel.grid = {a0 = 2 : i64}, oriel.mesh = {cp = ["a0"]}
// CHECK-LABEL: func.func @forward
// CHECK: oriel.gather {{.*}}oriel.positions = array<i64: 1>
// CHECK-NOT: oriel.positions
// CHECK: oriel.merge_features {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.linear {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.reshape {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.linear %{{[0-9a-z]+}}, %{{[0-9a-z]+}} :
// CHECK: oriel.reshape %{{[0-9a-z]+}} :
// CHECK: oriel.attention {{.*}}oriel.positions = array<i64: 1, -1>
// CHECK: oriel.reshape {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.linear {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.add {{.*}}oriel.positions = array<i64: 1>
// CHECK: oriel.linear {{.*}}oriel.positions = array<i64: 1>

// Two heads share keys: of four ranks, two have other keys each, and there are no more heads for the
// merge's sake, whose columns divide anyway.
// MORE-NOT: warning
// MORE: oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {cp = ["a0", "a1"]}
module {
  oriel.parameter @p0 {onnx_name = "table", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "query", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "key", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "output", type = tensor<16x8xf32>}
  oriel.parameter @p4 {onnx_name = "head", type = tensor<8x16xf32>}
  func.func @forward(%ids: tensor<1x8xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %slots: tensor<1x8xi1> {oriel.kind = "input", oriel.ref = "slots"},
      %images: tensor<1x3x8xf32> {oriel.kind = "input", oriel.ref = "images"},
      %labels: tensor<1x8xi64> {oriel.kind = "input", oriel.ref = "labels"},
      %table: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %query: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %key: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %output: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %head: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"})
      -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<16x8xf32>, tensor<1x8xi64>) -> tensor<1x8x8xf32>
    %features = oriel.tanh %images : (tensor<1x3x8xf32>) -> tensor<1x3x8xf32>
    %1 = oriel.merge_features %0, %slots, %features : (tensor<1x8x8xf32>, tensor<1x8xi1>, tensor<1x3x8xf32>) -> tensor<1x8x8xf32>
    %2 = oriel.linear %1, %query : (tensor<1x8x8xf32>, tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %q = oriel.reshape %2 : (tensor<1x8x16xf32>) -> tensor<1x8x4x4xf32>
    %3 = oriel.linear %1, %key : (tensor<1x8x8xf32>, tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %k = oriel.reshape %3 : (tensor<1x8x8xf32>) -> tensor<1x8x2x4xf32>
    %4, %lse = oriel.attention %q, %k, %k {scale = 0.5, causal = true, sequence_first = true} : (tensor<1x8x4x4xf32>, tensor<1x8x2x4xf32>, tensor<1x8x2x4xf32>) -> (tensor<1x8x4x4xf32>, tensor<1x4x8xf32>)
    %5 = oriel.reshape %4 : (tensor<1x8x4x4xf32>) -> tensor<1x8x16xf32>
    %6 = oriel.linear %5, %output : (tensor<1x8x16xf32>, tensor<16x8xf32>) -> tensor<1x8x8xf32>
    %7 = oriel.add %1, %6 : (tensor<1x8x8xf32>, tensor<1x8x8xf32>) -> tensor<1x8x8xf32>
    %8 = oriel.linear %7, %head : (tensor<1x8x8xf32>, tensor<8x16xf32>) -> tensor<1x8x16xf32>
    %loss, %count, %sums = oriel.cross_entropy %8, %labels : (tensor<1x8x16xf32>, tensor<1x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<1x8xf32>)
    return %loss : tensor<f32>
  }
}
