// RUN: oriel-opt %s --oriel-differentiate --split-input-file --verify-diagnostics | FileCheck %s

// The result is captured rather than computed again.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[Y:.*]]: tensor<4xf64>, %[[G:.*]]: tensor<4xf64>) -> tensor<4xf64>
// CHECK-NEXT: %[[D:.*]] = oriel.mul %[[G]], %[[Y]] {origin = 0 : i64}
// CHECK-NEXT: return %[[D]]
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = oriel.exp %x : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// A broadcast operand's cotangent is summed over what was repeated.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[G:.*]]: tensor<2x3xf64>) -> (tensor<2x3xf64>, tensor<1x3xf64>)
// CHECK-NEXT: %[[SUM:.*]] = oriel.reduce_sum %[[G]] {dims = array<i64: 0>, origin = 0 : i64}
// CHECK-NEXT: %[[D:.*]] = oriel.reshape %[[SUM]] {origin = 0 : i64} : (tensor<3xf64>) -> tensor<1x3xf64>
// CHECK-NEXT: return %[[G]], %[[D]]
func.func @f(%a: tensor<2x3xf64>, %b: tensor<1x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<2x3xf64>, tensor<1x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// -----

// Cotangents of a value with two uses are added with the number of the value's producer.
// CHECK-LABEL: func.func @f_vjp(
// CHECK: %[[A:.*]] = oriel.neg %{{.*}} {origin = 2 : i64}
// CHECK: oriel.sub
// CHECK-NEXT: %[[B:.*]] = oriel.mul %{{.*}} {origin = 1 : i64}
// CHECK-NEXT: %[[S:.*]] = oriel.add %[[A]], %[[B]] {origin = 0 : i64}
// CHECK: oriel.mul %[[S]], %{{.*}} {origin = 0 : i64}
func.func @f(%x: tensor<4xf64>) -> (tensor<4xf64>, tensor<4xf64>) {
  %0 = oriel.exp %x : (tensor<4xf64>) -> tensor<4xf64>
  %1 = oriel.tanh %0 : (tensor<4xf64>) -> tensor<4xf64>
  %2 = oriel.neg %0 : (tensor<4xf64>) -> tensor<4xf64>
  return %1, %2 : tensor<4xf64>, tensor<4xf64>
}

// -----

// No transpose is made for any stored transpose.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[B:[a-z0-9]+]]: tensor<5x4xf64>, %[[A:[a-z0-9]+]]: tensor<4x3xf64>, %[[G:[a-z0-9]+]]: tensor<3x5xf64>
// CHECK-NEXT: oriel.matmul %[[B]], %[[G]] {origin = 0 : i64, transpose_lhs = true, transpose_rhs = true}
// CHECK-NEXT: oriel.matmul %[[G]], %[[A]] {origin = 0 : i64, transpose_lhs = true, transpose_rhs = true}
func.func @f(%a: tensor<4x3xf64>, %b: tensor<5x4xf64>) -> tensor<3x5xf64> {
  %0 = oriel.matmul %a, %b {transpose_lhs = true, transpose_rhs = true} : (tensor<4x3xf64>, tensor<5x4xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}

// -----

// The transpose of a strided slice is a pad with elements between.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-NEXT: oriel.pad %{{.*}} {high = array<i64: 2>, interior = array<i64: 2>, low = array<i64: 1>, origin = 0 : i64}
func.func @f(%x: tensor<10xf64>) -> tensor<3xf64> {
  %0 = oriel.slice %x {starts = array<i64: 1>, limits = array<i64: 9>, strides = array<i64: 3>} : (tensor<10xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// -----

// Nothing passes through an integer: the cotangent is zero.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-NEXT: %[[ZERO:.*]] = oriel.constant {{.*}}dense<0.000000e+00> : tensor<4xf64>
// CHECK-NEXT: return %[[ZERO]]
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = oriel.cast %x : (tensor<4xf64>) -> tensor<4xi64>
  %1 = oriel.cast %0 : (tensor<4xi64>) -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// -----

// The tables of a rotary embedding get no cotangent, and need none if they are no functions
// of what is differentiated for.
// CHECK-LABEL: func.func @f_vjp(
// CHECK: oriel.rope %{{.*}} {inverse = true, origin = 1 : i64}
func.func @f(%x: tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64> {
  %cos = oriel.constant {value = dense<1.0> : tensor<1x1x2x4xf64>} : () -> tensor<1x1x2x4xf64>
  %0 = oriel.rope %x, %cos, %cos : (tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64>
  return %0 : tensor<1x1x2x4xf64>
}

// -----

// What was sliced from one tensor is joined, in the order of the slices.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-NEXT: %[[D:.*]] = oriel.concat %arg0, %arg1, %arg2 {dim = 1 : i64, origin = 0 : i64} : (tensor<2x2xf64>, tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x6xf64>
// CHECK-NEXT: return %[[D]]
func.func @f(%x: tensor<2x6xf64>) -> (tensor<2x2xf64>, tensor<2x3xf64>, tensor<2x1xf64>) {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 2, 2>, strides = array<i64: 1, 1>} : (tensor<2x6xf64>) -> tensor<2x2xf64>
  %1 = oriel.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x6xf64>) -> tensor<2x3xf64>
  %2 = oriel.slice %x {starts = array<i64: 0, 5>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (tensor<2x6xf64>) -> tensor<2x1xf64>
  return %0, %1, %2 : tensor<2x2xf64>, tensor<2x3xf64>, tensor<2x1xf64>
}

// -----

// Slices that overlap are added, and so is another use; what begins behind zeros is padded.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<2x8xf64>, %[[A:[a-z0-9]+]]: tensor<2x2xf64>, %[[B:[a-z0-9]+]]: tensor<2x3xf64>, %[[C:[a-z0-9]+]]: tensor<2x2xf64>, %[[G:[a-z0-9]+]]: tensor<2x8xf64>)
// CHECK-NEXT: %[[E:.*]] = oriel.mul %[[G]], %[[Y]]
// CHECK-NEXT: %[[AB:.*]] = oriel.concat %[[A]], %[[B]] {dim = 1 : i64
// CHECK-NEXT: %[[PAB:.*]] = oriel.pad %[[AB]] {high = array<i64: 0, 0>, interior = array<i64: 0, 0>, low = array<i64: 0, 3>
// CHECK-NEXT: %[[S:.*]] = oriel.add %[[E]], %[[PAB]]
// CHECK-NEXT: %[[PC:.*]] = oriel.pad %[[C]] {high = array<i64: 0, 2>, interior = array<i64: 0, 0>, low = array<i64: 0, 4>
// CHECK-NEXT: %[[D:.*]] = oriel.add %[[S]], %[[PC]]
// CHECK-NEXT: return %[[D]]
func.func @f(%x: tensor<2x8xf64>) -> (tensor<2x2xf64>, tensor<2x3xf64>, tensor<2x2xf64>, tensor<2x8xf64>) {
  %0 = oriel.slice %x {starts = array<i64: 0, 3>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x8xf64>) -> tensor<2x2xf64>
  %1 = oriel.slice %x {starts = array<i64: 0, 5>, limits = array<i64: 2, 8>, strides = array<i64: 1, 1>} : (tensor<2x8xf64>) -> tensor<2x3xf64>
  %2 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 2, 6>, strides = array<i64: 1, 1>} : (tensor<2x8xf64>) -> tensor<2x2xf64>
  %3 = oriel.exp %x : (tensor<2x8xf64>) -> tensor<2x8xf64>
  return %0, %1, %2, %3 : tensor<2x2xf64>, tensor<2x3xf64>, tensor<2x2xf64>, tensor<2x8xf64>
}

// -----

// Strided slices have zeros between: they are added.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-NOT: oriel.concat
// CHECK: oriel.add
func.func @f(%x: tensor<6xf64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %0 = oriel.slice %x {starts = array<i64: 0>, limits = array<i64: 6>, strides = array<i64: 2>} : (tensor<6xf64>) -> tensor<3xf64>
  %1 = oriel.slice %x {starts = array<i64: 1>, limits = array<i64: 6>, strides = array<i64: 2>} : (tensor<6xf64>) -> tensor<3xf64>
  return %0, %1 : tensor<3xf64>, tensor<3xf64>
}

// -----

// One cotangent of a slice is that of two values, and part of one's.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[Y:[a-z0-9]+]]: tensor<2xf64>, %[[A:[a-z0-9]+]]: tensor<2xf64>)
// CHECK-NEXT: %[[B:.*]] = oriel.concat %[[Y]], %[[A]] {dim = 0 : i64
// CHECK-NEXT: %[[P:.*]] = oriel.pad %[[Y]] {high = array<i64: 2>
// CHECK-NEXT: return %[[B]], %[[P]]
func.func @f(%a: tensor<4xf64>, %b: tensor<4xf64>) -> (tensor<2xf64>, tensor<2xf64>) {
  %0 = oriel.add %a, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %1 = oriel.slice %0 {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<4xf64>) -> tensor<2xf64>
  %2 = oriel.slice %a {starts = array<i64: 2>, limits = array<i64: 4>, strides = array<i64: 1>} : (tensor<4xf64>) -> tensor<2xf64>
  return %1, %2 : tensor<2xf64>, tensor<2xf64>
}

// -----

// Twice that of one value, and a slice of a slice.
// CHECK-LABEL: func.func @f_vjp(
// CHECK: oriel.pad
// CHECK: oriel.add
func.func @f(%x: tensor<8xf64>) -> tensor<2xf64> {
  %0 = oriel.add %x, %x : (tensor<8xf64>, tensor<8xf64>) -> tensor<8xf64>
  %1 = oriel.slice %0 {starts = array<i64: 1>, limits = array<i64: 6>, strides = array<i64: 1>} : (tensor<8xf64>) -> tensor<5xf64>
  %2 = oriel.slice %1 {starts = array<i64: 0>, limits = array<i64: 2>, strides = array<i64: 1>} : (tensor<5xf64>) -> tensor<2xf64>
  return %2 : tensor<2xf64>
}

// -----

// No derivative goes through what is stopped: a straight-through estimator has that of x.
// CHECK-LABEL: func.func @f_vjp(
// CHECK-SAME: %[[G:.*]]: tensor<4xf64>) -> tensor<4xf64>
// CHECK-NEXT: return %[[G]]
func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = oriel.exp %x : (tensor<4xf64>) -> tensor<4xf64>
  %1 = oriel.sub %0, %x : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  %2 = oriel.stop_gradient %1 : (tensor<4xf64>) -> tensor<4xf64>
  %3 = oriel.add %x, %2 : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %3 : tensor<4xf64>
}
