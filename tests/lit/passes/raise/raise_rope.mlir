// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-rope))" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @rope
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8x6xf32>, %[[C:.*]]: tensor<1x1x8x6xf32>, %[[S:.*]]: tensor<8x6xf32>)
// CHECK: %[[S4:.*]] = oriel.reshape %[[S]] : (tensor<8x6xf32>) -> tensor<1x1x8x6xf32>
// CHECK: %[[Y:.*]] = oriel.rope %[[X]], %[[C]], %[[S4]]
// CHECK-NEXT: return %[[Y]]
func.func @rope(%x: tensor<2x4x8x6xf32>, %cos: tensor<1x1x8x6xf32>, %sin: tensor<8x6xf32>) -> tensor<2x4x8x6xf32> {
  %0 = oriel.mul %x, %cos : (tensor<2x4x8x6xf32>, tensor<1x1x8x6xf32>) -> tensor<2x4x8x6xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 4, 8, 3>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x8x6xf32>) -> tensor<2x4x8x3xf32>
  %2 = oriel.slice %x {starts = array<i64: 0, 0, 0, 3>, limits = array<i64: 2, 4, 8, 6>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x4x8x6xf32>) -> tensor<2x4x8x3xf32>
  %3 = oriel.neg %2 : (tensor<2x4x8x3xf32>) -> tensor<2x4x8x3xf32>
  %4 = oriel.concat %3, %1 {dim = 3 : i64} : (tensor<2x4x8x3xf32>, tensor<2x4x8x3xf32>) -> tensor<2x4x8x6xf32>
  %5 = oriel.mul %4, %sin : (tensor<2x4x8x6xf32>, tensor<8x6xf32>) -> tensor<2x4x8x6xf32>
  %6 = oriel.add %0, %5 : (tensor<2x4x8x6xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x8x6xf32>
  return %6 : tensor<2x4x8x6xf32>
}

// -----

// Halves swapped without the sign are another map.
// CHECK-LABEL: func.func @no_sign
// CHECK-NOT: oriel.rope
// CHECK: return
func.func @no_sign(%x: tensor<8x6xf32>, %cos: tensor<8x6xf32>, %sin: tensor<8x6xf32>) -> tensor<8x6xf32> {
  %0 = oriel.mul %x, %cos : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 3>, strides = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  %2 = oriel.slice %x {starts = array<i64: 0, 3>, limits = array<i64: 8, 6>, strides = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  %3 = oriel.concat %2, %1 {dim = 1 : i64} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x6xf32>
  %4 = oriel.mul %3, %sin : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %5 = oriel.add %0, %4 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %5 : tensor<8x6xf32>
}

// -----

// A trained table needs a cotangent, which the op has not.
// CHECK-LABEL: func.func @trained_table
// CHECK-NOT: oriel.rope
func.func @trained_table(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
                         %cos: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, %sin: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "s"}) -> tensor<8x6xf32> {
  %0 = oriel.mul %x, %cos : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 3>, strides = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  %2 = oriel.slice %x {starts = array<i64: 0, 3>, limits = array<i64: 8, 6>, strides = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  %3 = oriel.neg %2 : (tensor<8x3xf32>) -> tensor<8x3xf32>
  %4 = oriel.concat %3, %1 {dim = 1 : i64} : (tensor<8x3xf32>, tensor<8x3xf32>) -> tensor<8x6xf32>
  %5 = oriel.mul %4, %sin : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  %6 = oriel.add %0, %5 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
  return %6 : tensor<8x6xf32>
}
