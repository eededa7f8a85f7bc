// Cross entropies that a model computes.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-loss))" --split-input-file | FileCheck %s

// Rows that a reshape has made of samples and positions.
// CHECK-LABEL: func.func @rows
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>, %[[L:.*]]: tensor<2x4xi64>)
// CHECK: oriel.cross_entropy %[[X]], %[[L]] : (tensor<2x4x8xf32>, tensor<2x4xi64>)
func.func @rows(%x: tensor<2x4x8xf32>, %l: tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>) {
  %0 = oriel.reshape %x : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %1 = oriel.reshape %l : (tensor<2x4xi64>) -> tensor<8xi64>
  %2:3 = oriel.cross_entropy %0, %1 : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
  return %2#0, %2#1 : tensor<f32>, tensor<f32>
}

// -----

// All positions but the last, whose labels are ignored now, and the layer behind that.
// CHECK-LABEL: func.func @all_but_the_last
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x5x8xf32>, %[[W:.*]]: tensor<6x8xf32>, %[[L:.*]]: tensor<2x5xi64>)
// CHECK: %[[NEXT:.*]] = oriel.slice %[[L]] {limits = array<i64: 2, 5>, starts = array<i64: 0, 1>
// CHECK: %[[ALL:.*]] = oriel.pad %[[NEXT]] {high = array<i64: 0, 1>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>, value = -1.000000e+02 : f64} : (tensor<2x4xi64>) -> tensor<2x5xi64>
// CHECK: %[[Y:.*]] = oriel.linear %[[X]], %[[W]] {{.*}} -> tensor<2x5x6xf32>
// CHECK: oriel.cross_entropy %[[Y]], %[[ALL]] :
func.func @all_but_the_last(%x: tensor<2x5x8xf32>, %w: tensor<6x8xf32>, %l: tensor<2x5xi64>) -> (tensor<f32>, tensor<f32>) {
  %0 = oriel.slice %x {limits = array<i64: 2, 4, 8>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x8xf32>) -> tensor<2x4x8xf32>
  %1 = oriel.reshape %0 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %2 = oriel.linear %1, %w {transpose_weight = true} : (tensor<8x8xf32>, tensor<6x8xf32>) -> tensor<8x6xf32>
  %3 = oriel.slice %l {limits = array<i64: 2, 5>, starts = array<i64: 0, 1>, strides = array<i64: 1, 1>} : (tensor<2x5xi64>) -> tensor<2x4xi64>
  %4 = oriel.reshape %3 : (tensor<2x4xi64>) -> tensor<8xi64>
  %5:3 = oriel.cross_entropy %2, %4 : (tensor<8x6xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
  return %5#0, %5#1 : tensor<f32>, tensor<f32>
}

// -----

// Few of the positions: the rest would be computed for nothing.
// CHECK-LABEL: func.func @few
// CHECK: oriel.cross_entropy {{.*}} : (tensor<2x2x8xf32>, tensor<2x2xi64>)
func.func @few(%x: tensor<2x4x8xf32>, %l: tensor<2x2xi64>) -> tensor<f32> {
  %0 = oriel.slice %x {limits = array<i64: 2, 4, 8>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x8xf32>) -> tensor<2x2x8xf32>
  %1:3 = oriel.cross_entropy %0, %l : (tensor<2x2x8xf32>, tensor<2x2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x2xf32>)
  return %1#0 : tensor<f32>
}

// -----

// A slice of the classes, and labels of which none is ignored.
// CHECK-LABEL: func.func @classes
// CHECK: oriel.cross_entropy {{.*}} : (tensor<2x7xf32>, tensor<2xi64>)
// CHECK: oriel.cross_entropy {{.*}} : (tensor<4x8xf32>, tensor<4xi64>)
func.func @classes(%x: tensor<2x8xf32>, %l: tensor<2xi64>, %y: tensor<5x8xf32>, %m: tensor<4xi64>) -> (tensor<f32>, tensor<f32>) {
  %0 = oriel.slice %x {limits = array<i64: 2, 7>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x8xf32>) -> tensor<2x7xf32>
  %1:3 = oriel.cross_entropy %0, %l : (tensor<2x7xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
  %2 = oriel.slice %y {limits = array<i64: 4, 8>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<5x8xf32>) -> tensor<4x8xf32>
  %3:3 = oriel.cross_entropy %2, %m {ignore_index = -9223372036854775808 : i64} : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  return %1#0, %3#0 : tensor<f32>, tensor<f32>
}

// -----

// What is kept of each row is of these rows.
// CHECK-LABEL: func.func @logsumexp
// CHECK: oriel.cross_entropy {{.*}} : (tensor<8x8xf32>, tensor<8xi64>)
func.func @logsumexp(%x: tensor<2x4x8xf32>, %l: tensor<8xi64>) -> (tensor<f32>, tensor<8xf32>) {
  %0 = oriel.reshape %x : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %1:3 = oriel.cross_entropy %0, %l : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<f32>, tensor<f32>, tensor<8xf32>)
  return %1#0, %1#2 : tensor<f32>, tensor<8xf32>
}

// -----

// Four of seven are less than three of four.
// CHECK-LABEL: func.func @four_of_seven
// CHECK: oriel.cross_entropy {{.*}} : (tensor<4x8xf32>, tensor<4xi64>)
func.func @four_of_seven(%x: tensor<7x8xf32>, %l: tensor<4xi64>) -> tensor<f32> {
  %0 = oriel.slice %x {limits = array<i64: 4, 8>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<7x8xf32>) -> tensor<4x8xf32>
  %1:3 = oriel.cross_entropy %0, %l : (tensor<4x8xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  return %1#0 : tensor<f32>
}
