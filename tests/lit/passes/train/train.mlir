// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/adamw.yaml --oriel-verify-train --split-input-file | FileCheck %s

// The four segments of a model with a frozen first layer.

// CHECK: oriel.parameter @p0 {onnx_name = "frozen.weight", type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "head.weight", trainable = true, type = tensor<8x6xf32>}
// CHECK: oriel.parameter @p2 {onnx_name = "head.bias", trainable = true, type = tensor<6xf32>}
// CHECK-NOT: @main

// The labels are shifted, not the logits. The stash is what the backward reads: the input of
// the trained layer and what the loss keeps.
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"}
// CHECK-SAME: %[[LABELS:[a-z0-9]+]]: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "labels"}
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
// CHECK-SAME: %[[B1:[a-z0-9]+]]: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p2"}
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}
// CHECK-SAME: %[[COUNT:[a-z0-9]+]]: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "token_count"}
// CHECK-NEXT: %[[H:.*]] = oriel.linear %[[X]], %[[W0]] {origin = 0 : i64}
// CHECK-NEXT: %[[R:.*]] = oriel.relu %[[H]] {origin = 1 : i64}
// CHECK-NEXT: %[[LOGITS:.*]] = oriel.linear %[[R]], %[[W1]], %[[B1]] {origin = 2 : i64}
// CHECK-DAG: %[[IGNORED:.*]] = oriel.constant {{.*}}dense<-100> : tensor<2x1xi64>
// CHECK-DAG: %[[REST:.*]] = oriel.slice %[[LABELS]] {limits = array<i64: 2, 4>, {{.*}}starts = array<i64: 0, 1>
// CHECK: %[[SHIFTED:.*]] = oriel.concat %[[REST]], %[[IGNORED]] {dim = 1 : i64
// CHECK: %[[L:.*]], %[[N:.*]], %[[LSE:.*]] = oriel.cross_entropy %[[LOGITS]], %[[SHIFTED]]
// CHECK: %[[SUM1:.*]] = oriel.add %[[SUM]], %[[L]]
// CHECK: %[[COUNT1:.*]] = oriel.add %[[COUNT]], %[[N]]
// CHECK: return %[[R]], %[[LOGITS]], %[[SHIFTED]], %[[LSE]], %[[SUM1]], %[[COUNT1]]

// Nothing below the first trainable parameter has a backward; each gradient is added to its
// accumulator at once; each op bears the number of the forward op that it comes from.
// CHECK-LABEL: func.func @backward(
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "v1"}
// CHECK-SAME: %[[LOGITS:[a-z0-9]+]]: tensor<2x4x6xf32> {oriel.kind = "stash", oriel.ref = "v2"}
// CHECK-SAME: %[[SHIFTED:[a-z0-9]+]]: tensor<2x4xi64> {oriel.kind = "stash", oriel.ref = "v5"}
// CHECK-SAME: %[[LSE:[a-z0-9]+]]: tensor<2x4xf32> {oriel.kind = "stash", oriel.ref = "v6.2"}
// CHECK-SAME: %[[GW:[a-z0-9]+]]: tensor<8x6xf32> {oriel.kind = "gradient", oriel.ref = "p1"}
// CHECK-SAME: %[[GB:[a-z0-9]+]]: tensor<6xf32> {oriel.kind = "gradient", oriel.ref = "p2"}
// CHECK-SAME: -> (tensor<8x6xf32> {oriel.kind = "gradient", oriel.ref = "p1"}, tensor<6xf32> {oriel.kind = "gradient", oriel.ref = "p2"})
// CHECK-NEXT: %[[ONE:.*]] = oriel.constant {{.*}}dense<1.000000e+00> : tensor<f32>
// CHECK-NEXT: %[[G:.*]] = oriel.cross_entropy_grad %[[ONE]], %[[LOGITS]], %[[SHIFTED]], %[[LSE]] {origin = 6 : i64}
// CHECK-NEXT: %[[DW:.*]] = oriel.linear_weight_grad %[[R]], %[[G]] {oriel.weight_gradient, origin = 2 : i64}
// CHECK-NEXT: %[[GW1:.*]] = oriel.add %[[GW]], %[[DW]] {oriel.weight_gradient, origin = 2 : i64}
// CHECK-NEXT: %[[DB:.*]] = oriel.reduce_sum %[[G]] {dims = array<i64: 0, 1>, oriel.weight_gradient, origin = 2 : i64}
// CHECK-NEXT: %[[GB1:.*]] = oriel.add %[[GB]], %[[DB]] {oriel.weight_gradient, origin = 2 : i64}
// CHECK-NEXT: return %[[GW1]], %[[GB1]]

// The step: mean over the tokens (at least one), clipped by the global norm; a weight decay
// for each parameter. The frozen parameter has no state here.
// CHECK-LABEL: func.func @update(
// CHECK-NOT: "p0"
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p2"}
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<8x6xf32> {oriel.kind = "optimizer_state", oriel.ref = "p1", oriel.slot = "exp_avg"}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<8x6xf32> {oriel.kind = "optimizer_state", oriel.ref = "p1", oriel.slot = "exp_avg_sq"}
// CHECK-SAME: %[[GW:[a-z0-9]+]]: tensor<8x6xf32> {oriel.kind = "gradient", oriel.ref = "p1"}
// CHECK-SAME: %[[GB:[a-z0-9]+]]: tensor<6xf32> {oriel.kind = "gradient", oriel.ref = "p2"}
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss_sum"}
// CHECK-SAME: %[[COUNT:[a-z0-9]+]]: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "token_count"}
// CHECK-SAME: %[[LR:[a-z0-9]+]]: tensor<f32> {oriel.kind = "scalar", oriel.ref = "learning_rate"}
// CHECK-SAME: %[[STEP:[a-z0-9]+]]: tensor<f32> {oriel.kind = "scalar", oriel.ref = "step"}
// CHECK: %[[ONE:.*]] = oriel.constant {{.*}}dense<1.000000e+00>
// CHECK: %[[N:.*]] = oriel.max %[[COUNT]], %[[ONE]]
// CHECK: %[[SCALE:.*]] = oriel.reciprocal %[[N]]
// CHECK: %[[SQUARES:.*]] = oriel.sum_squares %[[GW]], %[[GB]]
// CHECK: %[[ROOT:.*]] = oriel.sqrt %[[SQUARES]]
// CHECK: %[[NORM:.*]] = oriel.mul %[[ROOT]], %[[SCALE]]
// CHECK: %[[LOSS:.*]] = oriel.mul %[[SUM]], %[[SCALE]]
// CHECK: %[[EPS:.*]] = oriel.constant {{.*}}E-7> : tensor<f32>
// CHECK: %[[GUARDED:.*]] = oriel.add %[[NORM]], %[[EPS]]
// CHECK: %[[CLIP:.*]] = oriel.constant {{.*}}dense<2.000000e+00>
// CHECK: %[[RATIO:.*]] = oriel.div %[[CLIP]], %[[GUARDED]]
// CHECK: %[[COEFFICIENT:.*]] = oriel.min %[[RATIO]]
// CHECK: %[[CLIPPED:.*]] = oriel.mul %[[SCALE]], %[[COEFFICIENT]]
// CHECK: %[[W1:.*]], %[[M1:.*]], %[[V1:.*]] = oriel.adamw %[[W]], %[[GW]], %[[M]], %[[V]], %[[CLIPPED]], %[[LR]], %[[STEP]]
// CHECK-SAME: {beta1 = 8.000000e-01 : f64, beta2 = 9.000000e-01 : f64, epsilon = {{.*}}, weight_decay = 5.000000e-01 : f64}
// CHECK: %[[ZERO:.*]] = oriel.constant {{.*}}dense<0.000000e+00> : tensor<8x6xf32>
// CHECK: oriel.adamw %[[B]]
// CHECK-SAME: weight_decay = 0.000000e+00 : f64
// CHECK: %[[ZEROS:.*]] = oriel.constant {{.*}}dense<0.000000e+00> : tensor<f32>
// CHECK: return %[[W1]], %{{.*}}, %[[M1]], %[[V1]], %{{.*}}, %{{.*}}, %[[ZERO]], %{{.*}}, %[[ZEROS]], %[[ZEROS]], %[[LOSS]], %[[NORM]], %[[COUNT]]

// Predictions are aligned with the labels: nothing predicts position 0.
// CHECK-LABEL: func.func @eval(
// CHECK: %[[LOGITS:.*]] = oriel.linear %{{.*}} {origin = 2 : i64}
// CHECK: %[[L:.*]], %[[N:.*]], %{{.*}} = oriel.cross_entropy %[[LOGITS]]
// CHECK: %[[BEST:.*]] = oriel.argmax %[[LOGITS]] {dim = 2 : i64}
// CHECK-DAG: %[[FIRST:.*]] = oriel.constant {{.*}}dense<0> : tensor<2x1xi64>
// CHECK-DAG: %[[REST:.*]] = oriel.slice %[[BEST]] {limits = array<i64: 2, 3>
// CHECK: %[[P:.*]] = oriel.concat %[[FIRST]], %[[REST]] {dim = 1 : i64}
// CHECK: return %[[L]], %[[N]], %[[P]], %[[LOGITS]]
module {
  oriel.parameter @p0 {onnx_name = "frozen.weight", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "head.weight", type = tensor<8x6xf32>}
  oriel.parameter @p2 {onnx_name = "head.bias", type = tensor<6xf32>}
  func.func @main(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w0: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w1: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %b1: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w0 : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %1 = oriel.relu %0 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %2 = oriel.linear %1, %w1, %b1 : (tensor<2x4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    return %2 : tensor<2x4x6xf32>
  }
}
