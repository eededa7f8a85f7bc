// RUN: oriel-opt %s "--oriel-train=recipe=%S/Inputs/sgd.yaml fuse-loss=true" --oriel-verify-train | FileCheck %s
// RUN: oriel-opt %s "--oriel-train=recipe=%S/Inputs/sgd.yaml fuse-loss=true position-ranks=2" --oriel-verify-train | FileCheck %s --check-prefix=RANKS

// Two ranks that have other positions divide what is evaluated at a time.
// RANKS-LABEL: func.func @eval(
// RANKS-COUNT-2: oriel.linear {{.*}} -> tensor<2x2x6xf32>
// RANKS: oriel.concat %{{.*}}, %{{.*}} {dim = 2 : i64

// One op with the output layer, through a reshape; the logits are in no stash. Evaluation
// has those of every fourth position at a time.
// CHECK-LABEL: func.func @forward(
// CHECK: %[[H:.*]] = oriel.linear %
// CHECK-NOT: oriel.linear %
// CHECK: oriel.linear_cross_entropy %[[H]], %{{.*}} : (tensor<2x4x5xf32>, tensor<5x6xf32>, tensor<2x4xi32>, tensor<6xf32>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
// CHECK-NOT: oriel.cross_entropy
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: x6xf32> {oriel.kind = "stash"
// CHECK: oriel.linear_cross_entropy_grad {{.*}} -> (tensor<2x4x5xf32>, tensor<5x6xf32>, tensor<6xf32>)
// CHECK-LABEL: func.func @eval(
// CHECK-SAME: -> (tensor<f32> {oriel.kind = "output", oriel.ref = "loss_sum"}, tensor<f32> {oriel.kind = "output", oriel.ref = "token_count"}, tensor<8xi64> {oriel.kind = "output", oriel.ref = "predictions"})
// CHECK: %[[ROWS:.*]] = oriel.reshape %{{.*}} : (tensor<2x4x5xf32>) -> tensor<2x1x4x5xf32>
// CHECK: %[[LABELS:.*]] = oriel.reshape %{{.*}} : (tensor<2x4xi32>) -> tensor<2x1x4xi32>
// CHECK: oriel.slice %[[ROWS]] {limits = array<i64: 2, 1, 1, 5>
// CHECK: %[[LOGITS:.*]] = oriel.linear {{.*}} -> tensor<2x1x6xf32>
// CHECK: oriel.slice %[[LABELS]]
// CHECK: oriel.cross_entropy %[[LOGITS]]
// CHECK: oriel.argmax %[[LOGITS]]
// CHECK-COUNT-3: oriel.linear {{.*}} -> tensor<2x1x6xf32>
// CHECK-NOT: oriel.linear
// CHECK: oriel.concat %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {dim = 2 : i64
module {
  oriel.parameter @p0 {onnx_name = "hidden", type = tensor<4x5xf32>}
  oriel.parameter @p1 {onnx_name = "head", type = tensor<5x6xf32>}
  oriel.parameter @p2 {onnx_name = "bias", type = tensor<6xf32>}
  func.func @main(%x: tensor<2x4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %h: tensor<4x5xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %h : (tensor<2x4x4xf32>, tensor<4x5xf32>) -> tensor<2x4x5xf32>
    %1 = oriel.linear %0, %w, %b : (tensor<2x4x5xf32>, tensor<5x6xf32>, tensor<6xf32>) -> tensor<2x4x6xf32>
    %2 = oriel.reshape %1 : (tensor<2x4x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}
