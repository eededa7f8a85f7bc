// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/tokens.yaml --oriel-verify-train --split-input-file | FileCheck %s

// Logits that cut nothing but -inf off wider ones: the loss takes the wide ones, with labels of the
// true classes (a lookup refuses others), and evaluation shows the true ones.

// CHECK-LABEL: func.func @forward(
// CHECK: %[[WIDE:.*]] = oriel.linear
// CHECK-NOT: oriel.slice %[[WIDE]]
// CHECK: %[[SHIFTED:.*]] = oriel.concat
// CHECK: %[[INDEX:.*]] = oriel.select %[[CLASS:.*]], %[[SHIFTED]], %{{.*}}
// CHECK: %[[RANGE:.*]] = oriel.iota {{.*}} : () -> tensor<6xi64>
// CHECK: %[[KNOWN:.*]] = oriel.gather %[[RANGE]], %[[INDEX]]
// CHECK: %[[LABELS:.*]] = oriel.select %[[CLASS]], %[[KNOWN]], %[[SHIFTED]]
// CHECK: oriel.cross_entropy %[[WIDE]], %[[LABELS]] {{.*}} : (tensor<2x4x8xf32>, tensor<2x4xi64>)
// CHECK-LABEL: func.func @eval(
// CHECK: %[[EVAL_WIDE:.*]] = oriel.linear
// CHECK: %[[LOGITS:.*]] = oriel.slice %[[EVAL_WIDE]]
// CHECK: oriel.cross_entropy %[[EVAL_WIDE]]
// CHECK: oriel.argmax %[[EVAL_WIDE]]
// CHECK: return {{.*}}%[[LOGITS]]
oriel.parameter @p0 {onnx_name = "head.weight", type = tensor<8x8xf32>}
func.func @main(
    %x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2x4x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %1 = oriel.constant {value = dense<6> : tensor<i64>} : () -> tensor<i64>
  %2 = oriel.greater_equal %0, %1 : (tensor<8xi64>, tensor<i64>) -> tensor<8xi1>
  %3 = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %4 = oriel.constant {value = dense<0.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %5 = oriel.select %2, %3, %4 : (tensor<8xi1>, tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = oriel.linear %x, %w, %5 : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %7 = oriel.slice %6 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 4, 6>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x8xf32>) -> tensor<2x4x6xf32>
  return %7 : tensor<2x4x6xf32>
}

// -----

// A class that is cut off, though it may have a probability: the loss takes what is left.

// CHECK-LABEL: func.func @forward(
// CHECK: %[[LOGITS:.*]] = oriel.slice %{{.*}} {limits = array<i64: 2, 4, 5>
// CHECK: oriel.cross_entropy %[[LOGITS]], %{{.*}} : (tensor<2x4x5xf32>, tensor<2x4xi64>)
oriel.parameter @p0 {onnx_name = "head.weight", type = tensor<8x8xf32>}
func.func @main(
    %x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2x4x5xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.iota {dim = 0 : i64} : () -> tensor<8xi64>
  %1 = oriel.constant {value = dense<6> : tensor<i64>} : () -> tensor<i64>
  %2 = oriel.greater_equal %0, %1 : (tensor<8xi64>, tensor<i64>) -> tensor<8xi1>
  %3 = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %4 = oriel.constant {value = dense<0.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %5 = oriel.select %2, %3, %4 : (tensor<8xi1>, tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  %6 = oriel.linear %x, %w, %5 : (tensor<2x4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
  %7 = oriel.slice %6 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 4, 5>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x8xf32>) -> tensor<2x4x5xf32>
  return %7 : tensor<2x4x5xf32>
}
