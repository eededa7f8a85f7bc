// Algebraic identities that need no constant result. What they leave is the operand itself.
// RUN: oriel-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @neutral_operands
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>
func.func @neutral_operands(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[X]]
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %0 = oriel.add %x, %zero : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %1 = oriel.add %zero, %0 : (tensor<f32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = oriel.sub %1, %zero : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %3 = oriel.mul %2, %one : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %4 = oriel.div %3, %one : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %5 = oriel.pow %4, %one : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return %5 : tensor<4x8xf32>
}

// The operand can't stand for a result of another shape, and 0 - x is not x.
// CHECK-LABEL: @not_neutral
func.func @not_neutral(%x: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  // CHECK-DAG: oriel.add
  // CHECK-DAG: oriel.sub
  %zeros = oriel.constant {value = dense<0.0> : tensor<4x8xf32>} : () -> tensor<4x8xf32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.add %x, %zeros : (tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = oriel.sub %zero, %x : (tensor<f32>, tensor<8xf32>) -> tensor<8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<8xf32>
}

// CHECK-LABEL: @logical
// CHECK-SAME: (%[[B:.*]]: tensor<4xi1>
func.func @logical(%b: tensor<4xi1>) -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  // CHECK-DAG: %[[FALSE:.*]] = oriel.constant {value = dense<false> : tensor<4xi1>}
  // CHECK-DAG: %[[TRUE:.*]] = oriel.constant {value = dense<true> : tensor<4xi1>}
  // CHECK: return %[[B]], %[[FALSE]], %[[TRUE]]
  %true = oriel.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %false = oriel.constant {value = dense<false> : tensor<i1>} : () -> tensor<i1>
  %0 = oriel.and %b, %true : (tensor<4xi1>, tensor<i1>) -> tensor<4xi1>
  %1 = oriel.or %0, %false : (tensor<4xi1>, tensor<i1>) -> tensor<4xi1>
  %2 = oriel.xor %1, %false : (tensor<4xi1>, tensor<i1>) -> tensor<4xi1>
  %3 = oriel.and %b, %false : (tensor<4xi1>, tensor<i1>) -> tensor<4xi1>
  %4 = oriel.or %true, %b : (tensor<i1>, tensor<4xi1>) -> tensor<4xi1>
  return %2, %3, %4 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

// CHECK-LABEL: @twice_undone
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[B:.*]]: tensor<4xi1>
func.func @twice_undone(%x: tensor<4xf32>, %b: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xi1>) {
  // CHECK-NEXT: return %[[X]], %[[B]]
  %0 = oriel.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.neg %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.not %b : (tensor<4xi1>) -> tensor<4xi1>
  %3 = oriel.not %2 : (tensor<4xi1>) -> tensor<4xi1>
  return %1, %3 : tensor<4xf32>, tensor<4xi1>
}

// CHECK-LABEL: @select_known
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>, %[[Y:.*]]: tensor<4xf32>
func.func @select_known(%x: tensor<4xf32>, %y: tensor<4xf32>, %c: tensor<4xi1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  // CHECK-NEXT: return %[[X]], %[[Y]], %[[X]]
  %true = oriel.constant {value = dense<true> : tensor<i1>} : () -> tensor<i1>
  %false = oriel.constant {value = dense<false> : tensor<4xi1>} : () -> tensor<4xi1>
  %0 = oriel.select %true, %x, %y : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.select %false, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.select %c, %x, %x : (tensor<4xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0, %1, %2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: @nothing_moves
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>
func.func @nothing_moves(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = oriel.cast %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = oriel.reshape %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %3 = oriel.broadcast %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %4 = oriel.slice %3 {starts = array<i64: 0, 0>, limits = array<i64: 4, 8>, strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %5 = oriel.pad %4 {low = array<i64: 0, 0>, high = array<i64: 0, 0>, interior = array<i64: 0, 0>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = oriel.concat %5 {dim = 0 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %7 = oriel.reduce_sum %6 {dims = array<i64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %7 : tensor<4x8xf32>
}

// CHECK-LABEL: @chains
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[Y:.*]]: tensor<1x4xf32>
func.func @chains(%x: tensor<2x3x4xf32>, %y: tensor<1x4xf32>) -> (tensor<24xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>) {
  // CHECK-DAG: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<2x3x4xf32>) -> tensor<24xf32>
  // CHECK-DAG: %[[T:.*]] = oriel.transpose %[[X]] {permutation = array<i64: 2, 0, 1>}
  // CHECK-DAG: %[[B:.*]] = oriel.broadcast %[[Y]] : (tensor<1x4xf32>) -> tensor<2x3x4xf32>
  // CHECK: return %[[R]], %[[T]], %[[B]]
  %0 = oriel.reshape %x : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
  %1 = oriel.reshape %0 : (tensor<6x4xf32>) -> tensor<24xf32>
  %2 = oriel.transpose %x {permutation = array<i64: 1, 2, 0>} : (tensor<2x3x4xf32>) -> tensor<3x4x2xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 1, 2, 0>} : (tensor<3x4x2xf32>) -> tensor<4x2x3xf32>
  %4 = oriel.broadcast %y : (tensor<1x4xf32>) -> tensor<3x4xf32>
  %5 = oriel.broadcast %4 : (tensor<3x4xf32>) -> tensor<2x3x4xf32>
  return %1, %3, %5 : tensor<24xf32>, tensor<4x2x3xf32>, tensor<2x3x4xf32>
}

// The op that is left keeps its own origin.
// CHECK-LABEL: @origins_are_kept
func.func @origins_are_kept(%x: tensor<2x3xf32>) -> tensor<6xf32> {
  // CHECK: oriel.reshape %{{.*}} {origin = 5 : i64}
  %0 = oriel.reshape %x {origin = 4 : i64} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = oriel.reshape %0 {origin = 5 : i64} : (tensor<3x2xf32>) -> tensor<6xf32>
  return %1 : tensor<6xf32>
}

// A gradient is stopped once, and that of a constant is none.
// CHECK-LABEL: @stopped
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>
func.func @stopped(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // CHECK: %[[C:.*]] = oriel.constant
  // CHECK-NEXT: %[[S:.*]] = oriel.stop_gradient %[[X]]
  // CHECK-NEXT: return %[[S]], %[[C]]
  %c = oriel.constant {value = dense<2.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = oriel.stop_gradient %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.stop_gradient %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.stop_gradient %c : (tensor<4xf32>) -> tensor<4xf32>
  return %1, %2 : tensor<4xf32>, tensor<4xf32>
}
