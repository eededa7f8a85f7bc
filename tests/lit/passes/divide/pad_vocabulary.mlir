// RUN: oriel-opt %s --oriel-pad-vocabulary=strategy=%S/Inputs/tp4.yaml --split-input-file --verify-diagnostics | FileCheck %s

// A table and an output layer of 130 tokens on 4 ranks. What comes from no input is no token.

// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", oriel.unpadded = array<i64: 130, 8>, type = tensor<132x8xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "positions.weight", type = tensor<6x8xf32>}
// CHECK: oriel.parameter @p2 {onnx_name = "head.weight", oriel.unpadded = array<i64: 8, 130>, type = tensor<8x132xf32>}
// CHECK: oriel.parameter @p3 {onnx_name = "head.bias", oriel.unpadded = array<i64: 130>, type = tensor<132xf32>}
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: tensor<2x4xi64>
// CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<132x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<6x8xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x132xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<132xf32>
// CHECK: %[[RANGE:.*]] = oriel.iota {dim = 0 : i64} : () -> tensor<130xi64>
// CHECK: %[[CHECKED:.*]] = oriel.gather %[[RANGE]], %[[IDS]]
// CHECK: oriel.gather %[[E]], %[[CHECKED]]
// CHECK: oriel.gather %[[P]], %{{.*}} : (tensor<6x8xf32>
// CHECK: %[[IOTA:.*]] = oriel.iota {dim = 0 : i64} : () -> tensor<132xi64>
// CHECK: %[[SIZE:.*]] = oriel.constant {value = dense<130> : tensor<i64>}
// CHECK: %[[BEYOND:.*]] = oriel.greater_equal %[[IOTA]], %[[SIZE]]
// CHECK: %[[INFINITY:.*]] = oriel.constant {value = dense<0xFF800000> : tensor<f32>}
// CHECK: %[[BIAS:.*]] = oriel.select %[[BEYOND]], %[[INFINITY]], %[[B]]
// CHECK: %[[WIDE:.*]] = oriel.linear %{{.*}}, %[[W]], %[[BIAS]] : {{.*}} -> tensor<8x132xf32>
// CHECK: %[[SPLIT:.*]] = oriel.reshape %[[WIDE]] : (tensor<8x132xf32>) -> tensor<2x4x132xf32>
// CHECK: %[[LOGITS:.*]] = oriel.slice %[[SPLIT]] {limits = array<i64: 2, 4, 130>, starts = array<i64: 0, 0, 0>
// CHECK: return %[[LOGITS]]

// expected-warning@+1 {{the vocabulary of 130 of "embed.weight" is padded to 132 for tensor parallelism}}
oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<130x8xf32>}
oriel.parameter @p1 {onnx_name = "positions.weight", type = tensor<6x8xf32>}
// expected-warning@+1 {{the vocabulary of 130 of "head.weight" is padded to 132}}
oriel.parameter @p2 {onnx_name = "head.weight", type = tensor<8x130xf32>}
// expected-warning@+1 {{the vocabulary of 130 of "head.bias" is padded to 132}}
oriel.parameter @p3 {onnx_name = "head.bias", type = tensor<130xf32>}
func.func @main(
    %ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
    %e: tensor<130x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %p: tensor<6x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %w: tensor<8x130xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
    %b: tensor<130xf32> {oriel.kind = "parameter", oriel.ref = "p3"}
) -> (tensor<2x4x130xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.gather %e, %ids {dim = 0 : i64} : (tensor<130x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
  %1 = oriel.iota {dim = 0 : i64} : () -> tensor<4xi64>
  %2 = oriel.gather %p, %1 {dim = 0 : i64} : (tensor<6x8xf32>, tensor<4xi64>) -> tensor<4x8xf32>
  %3 = oriel.add %0, %2 : (tensor<2x4x8xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
  %4 = oriel.reshape %3 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %5 = oriel.linear %4, %w, %b : (tensor<8x8xf32>, tensor<8x130xf32>, tensor<130xf32>) -> tensor<8x130xf32>
  %6 = oriel.reshape %5 : (tensor<8x130xf32>) -> tensor<2x4x130xf32>
  return %6 : tensor<2x4x130xf32>
}

// -----

// A tied table stays one parameter. Others that read it see its true shape, and others than the
// loss true logits.

// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", oriel.unpadded = array<i64: 5, 4>, type = tensor<8x4xf32>}
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[IDS:[a-z0-9]+]]: tensor<2x3xi64>
// CHECK-SAME: %[[E:[a-z0-9]+]]: tensor<8x4xf32>
// CHECK: %[[TRUE:.*]] = oriel.slice %[[E]] {limits = array<i64: 5, 4>
// CHECK: %[[RANGE:.*]] = oriel.iota {dim = 0 : i64} : () -> tensor<5xi64>
// CHECK: %[[CHECKED:.*]] = oriel.gather %[[RANGE]], %[[IDS]]
// CHECK: oriel.gather %[[E]], %[[CHECKED]]
// CHECK: %[[ZERO:.*]] = oriel.constant {value = dense<0.000000e+00> : tensor<8xf32>}
// CHECK: %[[BIAS:.*]] = oriel.select %{{.*}}, %{{.*}}, %[[ZERO]]
// CHECK: %[[WIDE:.*]] = oriel.linear %{{.*}}, %[[E]], %[[BIAS]] {transpose_weight = true}
// CHECK: %[[LOGITS:.*]] = oriel.slice %[[WIDE]] {limits = array<i64: 2, 3, 5>
// CHECK: oriel.softmax %[[LOGITS]]
// CHECK: oriel.reduce_sum %[[TRUE]]

// expected-warning@+1 {{the vocabulary of 5 of "embed.weight" is padded to 8}}
oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<5x4xf32>}
func.func @main(
    %ids: tensor<2x3xi64> {oriel.kind = "input", oriel.ref = "ids"},
    %e: tensor<5x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2x3x5xf32> {oriel.kind = "output", oriel.ref = "logits"},
      tensor<2x3x5xf32> {oriel.kind = "output", oriel.ref = "probabilities"},
      tensor<f32> {oriel.kind = "output", oriel.ref = "sum"}) {
  %0 = oriel.gather %e, %ids {dim = 0 : i64} : (tensor<5x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %1 = oriel.linear %0, %e {transpose_weight = true} : (tensor<2x3x4xf32>, tensor<5x4xf32>) -> tensor<2x3x5xf32>
  %2 = oriel.softmax %1 {dim = 2 : i64} : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %3 = oriel.reduce_sum %e {dims = array<i64: 0, 1>} : (tensor<5x4xf32>) -> tensor<f32>
  return %1, %2, %3 : tensor<2x3x5xf32>, tensor<2x3x5xf32>, tensor<f32>
}

// -----

// What divides stays as it is.

// CHECK: oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<8x4xf32>}
// CHECK-LABEL: func.func @main
// CHECK-NEXT: oriel.gather
// CHECK-NEXT: oriel.linear
// CHECK-NEXT: return
oriel.parameter @p0 {onnx_name = "embed.weight", type = tensor<8x4xf32>}
func.func @main(
    %ids: tensor<2x3xi64> {oriel.kind = "input", oriel.ref = "ids"},
    %e: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2x3x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.gather %e, %ids {dim = 0 : i64} : (tensor<8x4xf32>, tensor<2x3xi64>) -> tensor<2x3x4xf32>
  %1 = oriel.linear %0, %e {transpose_weight = true} : (tensor<2x3x4xf32>, tensor<8x4xf32>) -> tensor<2x3x8xf32>
  return %1 : tensor<2x3x8xf32>
}

// -----

// Between the output layer and the logits of the loss is what keeps classes apart: positions of a
// prefix are left out, and logits are capped. What is behind the true classes is -inf in the end.
// CHECK: oriel.parameter @p0 {onnx_name = "head.weight", oriel.unpadded = array<i64: 8, 130>, type = tensor<8x132xf32>}
// CHECK: %[[WIDE:.*]] = oriel.linear %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x6x132xf32>
// CHECK: %[[WORDS:.*]] = oriel.slice %[[WIDE]] {limits = array<i64: 2, 6, 132>, starts = array<i64: 0, 2, 0>
// CHECK: %[[SCALED:.*]] = oriel.mul %{{.*}}, %[[WORDS]] : (tensor<f32>, tensor<2x4x132xf32>) -> tensor<2x4x132xf32>
// CHECK: %[[BENT:.*]] = oriel.tanh %[[SCALED]] : (tensor<2x4x132xf32>)
// CHECK: %[[BEYOND:.*]] = oriel.greater_equal {{.*}} -> tensor<132xi1>
// CHECK: %[[CUT:.*]] = oriel.select %[[BEYOND]], %{{.*}}, %[[BENT]]
// CHECK: %[[LOGITS:.*]] = oriel.slice %[[CUT]] {limits = array<i64: 2, 4, 130>, starts = array<i64: 0, 0, 0>
// CHECK: return %[[LOGITS]]

// expected-warning@+1 {{the vocabulary of 130 of "head.weight" is padded to 132}}
oriel.parameter @p0 {onnx_name = "head.weight", type = tensor<8x130xf32>}
func.func @main(
    %x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x130xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2x4x130xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<2x6x8xf32>, tensor<8x130xf32>) -> tensor<2x6x130xf32>
  %1 = oriel.slice %0 {limits = array<i64: 2, 6, 130>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x130xf32>) -> tensor<2x4x130xf32>
  %scale = oriel.constant {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.mul %scale, %1 : (tensor<f32>, tensor<2x4x130xf32>) -> tensor<2x4x130xf32>
  %3 = oriel.tanh %2 : (tensor<2x4x130xf32>) -> tensor<2x4x130xf32>
  return %3 : tensor<2x4x130xf32>
}

// -----

// Two losses of one layer's logits, of which each takes some samples: a preferred answer and a
// rejected one.

// CHECK: oriel.parameter @p0 {onnx_name = "head.weight", oriel.unpadded = array<i64: 8, 130>, type = tensor<8x132xf32>}
// CHECK: %[[BIAS:.*]] = oriel.select {{.*}} -> tensor<132xf32>
// CHECK: %[[WIDE:.*]] = oriel.linear %{{.*}}, %{{.*}}, %[[BIAS]] {{.*}} -> tensor<4x132xf32>
// CHECK: %[[FIRST:.*]] = oriel.slice %[[WIDE]] {limits = array<i64: 2, 132>, starts = array<i64: 0, 0>
// CHECK: %[[TRUE_FIRST:.*]] = oriel.slice %[[FIRST]] {limits = array<i64: 2, 130>
// CHECK: %[[SECOND:.*]] = oriel.slice %[[WIDE]] {limits = array<i64: 4, 132>, starts = array<i64: 2, 0>
// CHECK: %[[TRUE_SECOND:.*]] = oriel.slice %[[SECOND]] {limits = array<i64: 2, 130>
// CHECK: oriel.token_losses %[[TRUE_FIRST]],
// CHECK: oriel.token_losses %[[TRUE_SECOND]],

// expected-warning@+1 {{the vocabulary of 130 of "head.weight" is padded to 132}}
oriel.parameter @p0 {onnx_name = "head.weight", type = tensor<8x130xf32>}
func.func @main(
    %x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %labels: tensor<2xi64> {oriel.kind = "input", oriel.ref = "labels"},
    %w: tensor<8x130xf32> {oriel.kind = "parameter", oriel.ref = "p0"}
) -> (tensor<2xf32> {oriel.kind = "output", oriel.ref = "loss"}) {
  %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x130xf32>) -> tensor<4x130xf32>
  %1 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 2, 130>, strides = array<i64: 1, 1>} : (tensor<4x130xf32>) -> tensor<2x130xf32>
  %2 = oriel.slice %0 {starts = array<i64: 2, 0>, limits = array<i64: 4, 130>, strides = array<i64: 1, 1>} : (tensor<4x130xf32>) -> tensor<2x130xf32>
  %3:2 = oriel.token_losses %1, %labels : (tensor<2x130xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  %4:2 = oriel.token_losses %2, %labels : (tensor<2x130xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
  %5 = oriel.sub %3#0, %4#0 : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %5 : tensor<2xf32>
}
