// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16.yaml --oriel-train=recipe=%S/Inputs/bf16.yaml --oriel-verify-train | FileCheck %s

// Padded logits in bf16: the bias with -inf behind the true classes is moved, not cast, so that the
// loss sees that it may read the wide ones; what is for the host is left out of the forward.

// CHECK-LABEL: func.func @forward(
// CHECK: oriel.constant {{.*}}value = dense<0xFF80> : tensor<bf16>
// CHECK: %[[BIAS:.*]] = oriel.select {{.*}} -> tensor<8xbf16>
// CHECK: %[[WIDE:.*]] = oriel.linear %{{.*}}, %{{.*}}, %[[BIAS]] {{.*}} -> tensor<2x4x8xbf16>
// CHECK-NOT: oriel.slice %[[WIDE]]
// CHECK-NOT: oriel.cast %[[WIDE]]
// CHECK: oriel.cross_entropy %[[WIDE]], {{.*}} : (tensor<2x4x8xbf16>, tensor<2x4xi64>)
// CHECK-LABEL: func.func @eval(
// CHECK: %[[LOGITS:.*]] = oriel.slice {{.*}} -> tensor<2x4x6xbf16>
// CHECK: %[[SHOWN:.*]] = oriel.cast %[[LOGITS]] {{.*}} -> tensor<2x4x6xf32>
// CHECK: return {{.*}}%[[SHOWN]]
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
