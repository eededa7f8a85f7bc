// RUN: oriel-opt %s --oriel-cut-convolutions=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s
// RUN: oriel-opt %s --oriel-cut-convolutions=strategy=%S/Inputs/dp2.yaml --split-input-file | FileCheck %s --check-prefix=DATA

// Without tensor parallelism it stays one launch.
// DATA-LABEL: func.func @main
// DATA: oriel.conv {{.*}} group = 6 : i64

// Behind the convolution: positions, an activation and a transpose. What was joined is not any more.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<2x2x8xf32>
// CHECK-SAME: %[[K:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<6x1x3xf32>
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<6xf32>
// CHECK-NOT: oriel.concat
// CHECK-DAG: %[[WQ:.*]] = oriel.slice %[[W]] {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>
// CHECK-DAG: %[[BQ:.*]] = oriel.slice %[[B]] {limits = array<i64: 2>, starts = array<i64: 0>
// CHECK: %[[CQ:.*]] = oriel.conv %[[Q]], %[[WQ]], %[[BQ]] {{.*}} group = 2 : i64
// CHECK: %[[PQ:.*]] = oriel.slice %[[CQ]] {limits = array<i64: 2, 2, 8>
// CHECK: %[[AQ:.*]] = oriel.activation %[[PQ]]
// CHECK: %[[WK:.*]] = oriel.slice %[[W]] {limits = array<i64: 6, 1, 3>, starts = array<i64: 2, 0, 0>
// CHECK: %[[CK:.*]] = oriel.conv %[[K]], %[[WK]]
// CHECK: %[[TQ:.*]] = oriel.transpose %[[AQ]]
// CHECK: %[[TK:.*]] = oriel.transpose {{.*}} (tensor<2x4x8xf32>) -> tensor<2x8x4xf32>
// CHECK-NOT: oriel.conv
// CHECK: return %[[TQ]], %[[TK]]
oriel.parameter @p0 {onnx_name = "conv.weight", type = tensor<6x1x3xf32>}
oriel.parameter @p1 {onnx_name = "conv.bias", type = tensor<6xf32>}
func.func @main(
    %q: tensor<2x2x8xf32> {oriel.kind = "input", oriel.ref = "q"}, %k: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "k"},
    %w: tensor<6x1x3xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, %b: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
    -> (tensor<2x8x2xf32> {oriel.kind = "output", oriel.ref = "a"}, tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "b"}) {
  %0 = oriel.concat %q, %k {dim = 1 : i64} : (tensor<2x2x8xf32>, tensor<2x4x8xf32>) -> tensor<2x6x8xf32>
  %1 = oriel.conv %0, %w, %b {strides = array<i64: 1>, pads = array<i64: 2, 2>, dilations = array<i64: 1>, group = 6 : i64} : (tensor<2x6x8xf32>, tensor<6x1x3xf32>, tensor<6xf32>) -> tensor<2x6x10xf32>
  %2 = oriel.slice %1 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 6, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x10xf32>) -> tensor<2x6x8xf32>
  %3 = oriel.activation %2 {kind = "silu"} : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %4 = oriel.transpose %3 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %5 = oriel.slice %4 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 8, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x8x6xf32>) -> tensor<2x8x2xf32>
  %6 = oriel.slice %4 {starts = array<i64: 0, 0, 2>, limits = array<i64: 2, 8, 6>, strides = array<i64: 1, 1, 1>} : (tensor<2x8x6xf32>) -> tensor<2x8x4xf32>
  return %5, %6 : tensor<2x8x2xf32>, tensor<2x8x4xf32>
}

// -----

// Padded positions of what was sliced: slices of the whole.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x8x9xf32>
// CHECK: %[[A:.*]] = oriel.slice %[[X]] {limits = array<i64: 2, 8, 5>, starts = array<i64: 0, 0, 3>
// CHECK: oriel.transpose %[[A]] {{.*}} -> tensor<2x2x8xf32>
// CHECK: oriel.pad {{.*}} (tensor<2x2x8xf32>) -> tensor<2x2x10xf32>
// CHECK: oriel.conv {{.*}} group = 2 : i64
// CHECK: oriel.slice %[[X]] {limits = array<i64: 2, 8, 9>, starts = array<i64: 0, 0, 5>
// CHECK: oriel.conv {{.*}} group = 4 : i64
// CHECK-NOT: oriel.conv
oriel.parameter @p0 {onnx_name = "conv.weight", type = tensor<6x1x3xf32>}
func.func @main(
    %x: tensor<2x8x9xf32> {oriel.kind = "input", oriel.ref = "x"}, %w: tensor<6x1x3xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<2x2x8xf32> {oriel.kind = "output", oriel.ref = "a"}, tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "b"}) {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 3>, limits = array<i64: 2, 8, 9>, strides = array<i64: 1, 1, 1>} : (tensor<2x8x9xf32>) -> tensor<2x8x6xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x8x6xf32>) -> tensor<2x6x8xf32>
  %2 = oriel.pad %1 {low = array<i64: 0, 0, 2>, high = array<i64: 0, 0, 0>, interior = array<i64: 0, 0, 0>} : (tensor<2x6x8xf32>) -> tensor<2x6x10xf32>
  %3 = oriel.conv %2, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 6 : i64} : (tensor<2x6x10xf32>, tensor<6x1x3xf32>) -> tensor<2x6x8xf32>
  %4 = oriel.slice %3 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 2, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x8xf32>) -> tensor<2x2x8xf32>
  %5 = oriel.slice %3 {starts = array<i64: 0, 2, 0>, limits = array<i64: 2, 6, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  return %4, %5 : tensor<2x2x8xf32>, tensor<2x4x8xf32>
}

// -----

// Not where channels are used otherwise, too, as where all of them are normalized.
// CHECK-LABEL: func.func @main
// CHECK: oriel.conv {{.*}} group = 6 : i64
// CHECK-NOT: oriel.conv
oriel.parameter @p0 {onnx_name = "conv.weight", type = tensor<6x1x1xf32>}
func.func @main(
    %x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"}, %w: tensor<6x1x1xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<2x2x8xf32> {oriel.kind = "output", oriel.ref = "a"}, tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "b"}, tensor<2x6x8xf32> {oriel.kind = "output", oriel.ref = "c"}) {
  %0 = oriel.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 6 : i64} : (tensor<2x6x8xf32>, tensor<6x1x1xf32>) -> tensor<2x6x8xf32>
  %1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<2x6x8xf32>) -> tensor<2x6x8xf32>
  %2 = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 2, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x8xf32>) -> tensor<2x2x8xf32>
  %3 = oriel.slice %0 {starts = array<i64: 0, 2, 0>, limits = array<i64: 2, 6, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x6x8xf32>) -> tensor<2x4x8xf32>
  return %2, %3, %1 : tensor<2x2x8xf32>, tensor<2x4x8xf32>, tensor<2x6x8xf32>
}

// -----

// Padded positions are masked before it comes apart: the mask is the same for all channels.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<2x8x1xf32>
// CHECK: oriel.conv {{.*}} group = 2 : i64
// CHECK: oriel.mul {{.*}}, %[[M]] : (tensor<2x8x2xf32>, tensor<2x8x1xf32>) -> tensor<2x8x2xf32>
// CHECK: oriel.conv {{.*}} group = 4 : i64
// CHECK: oriel.mul {{.*}}, %[[M]] : (tensor<2x8x4xf32>, tensor<2x8x1xf32>) -> tensor<2x8x4xf32>
oriel.parameter @p0 {onnx_name = "conv.weight", type = tensor<6x1x3xf32>}
func.func @main(
    %x: tensor<2x6x10xf32> {oriel.kind = "input", oriel.ref = "x"}, %m: tensor<2x8x1xf32> {oriel.kind = "input", oriel.ref = "m"},
    %w: tensor<6x1x3xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<2x8x2xf32> {oriel.kind = "output", oriel.ref = "a"}, tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "b"}) {
  %0 = oriel.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 6 : i64} : (tensor<2x6x10xf32>, tensor<6x1x3xf32>) -> tensor<2x6x8xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x8xf32>) -> tensor<2x8x6xf32>
  %2 = oriel.mul %1, %m : (tensor<2x8x6xf32>, tensor<2x8x1xf32>) -> tensor<2x8x6xf32>
  %3 = oriel.slice %2 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 8, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x8x6xf32>) -> tensor<2x8x2xf32>
  %4 = oriel.slice %2 {starts = array<i64: 0, 0, 2>, limits = array<i64: 2, 8, 6>, strides = array<i64: 1, 1, 1>} : (tensor<2x8x6xf32>) -> tensor<2x8x4xf32>
  return %3, %4 : tensor<2x8x2xf32>, tensor<2x8x4xf32>
}
