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

// -----

// The logarithm of a softmax at the labels, of which a negative one counts from the end.
// CHECK-LABEL: func.func @gather_of_log_softmax
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>, %[[L:.*]]: tensor<2x4x1xi64>)
// CHECK: %[[NEGATIVE:.*]] = oriel.less %[[L]]
// CHECK: %[[FROM_END:.*]] = oriel.add %[[L]]
// CHECK: %[[LABELS:.*]] = oriel.select %[[NEGATIVE]], %[[FROM_END]], %[[L]]
// CHECK: %[[ROWS:.*]] = oriel.reshape %[[LABELS]] : (tensor<2x4x1xi64>) -> tensor<2x4xi64>
// CHECK: %[[LOSSES:.*]], %{{.*}} = oriel.token_losses %[[X]], %[[ROWS]] {ignore_index = -2147483648 : i64}
// CHECK: %[[NEG:.*]] = oriel.neg %[[LOSSES]]
// CHECK: oriel.reshape %[[NEG]] : (tensor<2x4xf32>) -> tensor<2x4x1xf32>
// CHECK-NOT: oriel.gather
func.func @gather_of_log_softmax(%x: tensor<2x4x8xf32>, %l: tensor<2x4x1xi64>) -> tensor<2x4x1xf32> {
  %0 = oriel.reduce_max %x {dims = array<i64: 2>, keep_dims = true} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %1 = oriel.sub %x, %0 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %2 = oriel.exp %1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %3 = oriel.reduce_sum %2 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %4 = oriel.log %3 : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %5 = oriel.sub %1, %4 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %6 = oriel.gather %5, %l {batch_dims = 2 : i64, dim = 2 : i64} : (tensor<2x4x8xf32>, tensor<2x4x1xi64>) -> tensor<2x4x1xf32>
  return %6 : tensor<2x4x1xf32>
}

// -----

// The logits at the labels, less the logsumexp, which is reduced without its dimension.
// CHECK-LABEL: func.func @gather_less_logsumexp
// CHECK-SAME: (%[[X:.*]]: tensor<6x8xf32>, %[[L:.*]]: tensor<6x1xi64>)
// CHECK: %[[LOSSES:.*]], %{{.*}} = oriel.token_losses %[[X]]
// CHECK: %[[NEG:.*]] = oriel.neg %[[LOSSES]]
// CHECK: return %[[NEG]] : tensor<6xf32>
func.func @gather_less_logsumexp(%x: tensor<6x8xf32>, %l: tensor<6x1xi64>) -> tensor<6xf32> {
  %0 = oriel.gather %x, %l {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<6x8xf32>, tensor<6x1xi64>) -> tensor<6x1xf32>
  %1 = oriel.reshape %0 : (tensor<6x1xf32>) -> tensor<6xf32>
  %2 = oriel.reduce_max %x {dims = array<i64: 1>, keep_dims = true} : (tensor<6x8xf32>) -> tensor<6x1xf32>
  %3 = oriel.sub %x, %2 : (tensor<6x8xf32>, tensor<6x1xf32>) -> tensor<6x8xf32>
  %4 = oriel.exp %3 : (tensor<6x8xf32>) -> tensor<6x8xf32>
  %5 = oriel.reduce_sum %4 {dims = array<i64: 1>, keep_dims = true} : (tensor<6x8xf32>) -> tensor<6x1xf32>
  %6 = oriel.log %5 : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %7 = oriel.add %2, %6 : (tensor<6x1xf32>, tensor<6x1xf32>) -> tensor<6x1xf32>
  %8 = oriel.reshape %7 : (tensor<6x1xf32>) -> tensor<6xf32>
  %9 = oriel.sub %1, %8 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
  return %9 : tensor<6xf32>
}

// -----

// Several of each row, another row's sum, and logarithms that are read elsewhere, too.
// CHECK-LABEL: func.func @other_gathers
// CHECK-COUNT-3: oriel.gather
// CHECK-NOT: oriel.token_losses
func.func @other_gathers(%x: tensor<4x8xf32>, %y: tensor<4x8xf32>, %two: tensor<4x2xi64>, %l: tensor<4x1xi64>) -> (tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x8xf32>) {
  %0 = oriel.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %2 = oriel.log %1 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %3 = oriel.sub %x, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %4 = oriel.gather %3, %two {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<4x8xf32>, tensor<4x2xi64>) -> tensor<4x2xf32>
  %5 = oriel.sub %y, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %6 = oriel.gather %5, %l {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<4x8xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  %7 = oriel.gather %3, %l {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<4x8xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  return %4, %6, %7, %3 : tensor<4x2xf32>, tensor<4x1xf32>, tensor<4x1xf32>, tensor<4x8xf32>
}

// -----

// Token losses of rows of all positions but the last, whose label is ignored: nothing of it, a NaN
// either, gets into the gradient.
// CHECK-LABEL: func.func @token_losses
// CHECK-SAME: (%[[X:.*]]: tensor<2x5x8xf32>, %[[L:.*]]: tensor<8xi64>)
// CHECK: %[[APART:.*]] = oriel.reshape %[[L]] : (tensor<8xi64>) -> tensor<2x4xi64>
// CHECK: %[[ALL:.*]] = oriel.pad %[[APART]] {high = array<i64: 0, 1>, interior = array<i64: 0, 0>, low = array<i64: 0, 0>, value = 0xC1E0000000000000 : f64} : (tensor<2x4xi64>) -> tensor<2x5xi64>
// CHECK: %[[LOSSES:.*]], %{{.*}} = oriel.token_losses %[[X]], %[[ALL]]
// CHECK: %[[KEPT:.*]] = oriel.slice %[[LOSSES]] {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>}
// CHECK: oriel.reshape %[[KEPT]] : (tensor<2x4xf32>) -> tensor<8xf32>
func.func @token_losses(%x: tensor<2x5x8xf32>, %l: tensor<8xi64>) -> tensor<8xf32> {
  %0 = oriel.slice %x {limits = array<i64: 2, 4, 8>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x5x8xf32>) -> tensor<2x4x8xf32>
  %1 = oriel.reshape %0 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %2:2 = oriel.token_losses %1, %l {ignore_index = -2147483648 : i64} : (tensor<8x8xf32>, tensor<8xi64>) -> (tensor<8xf32>, tensor<8xf32>)
  return %2#0 : tensor<8xf32>
}

// -----

// What is added to the logarithm differs along a row: a prior of the classes, less which the
// logits are no logarithm of their softmax.
// CHECK-LABEL: func.func @prior
// CHECK: oriel.gather
// CHECK-NOT: oriel.token_losses
func.func @prior(%x: tensor<4x8xf32>, %prior: tensor<8xf32>, %l: tensor<4x1xi64>) -> tensor<4x1xf32> {
  %0 = oriel.sub %x, %prior : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %1 = oriel.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %2 = oriel.reduce_sum %1 {dims = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  %3 = oriel.log %2 : (tensor<4x1xf32>) -> tensor<4x1xf32>
  %4 = oriel.add %prior, %3 : (tensor<8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
  %5 = oriel.sub %x, %4 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %6 = oriel.gather %5, %l {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<4x8xf32>, tensor<4x1xi64>) -> tensor<4x1xf32>
  return %6 : tensor<4x1xf32>
}

// -----

// Logarithms of a softmax that a reshape makes rows of, as a negative log-likelihood takes them.
// CHECK-LABEL: func.func @rows_of_logarithms
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4x8xf32>
// CHECK-NOT: oriel.log
// CHECK: oriel.token_losses %[[X]], %{{.*}} : (tensor<2x4x8xf32>, tensor<2x4xi64>)
// CHECK-NOT: oriel.log
// CHECK: return
func.func @rows_of_logarithms(%x: tensor<2x4x8xf32>, %l: tensor<8x1xi64>) -> tensor<8x1xf32> {
  %0 = oriel.reduce_max %x {dims = array<i64: 2>, keep_dims = true} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %1 = oriel.sub %x, %0 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %2 = oriel.exp %1 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
  %3 = oriel.reduce_sum %2 {dims = array<i64: 2>, keep_dims = true} : (tensor<2x4x8xf32>) -> tensor<2x4x1xf32>
  %4 = oriel.log %3 : (tensor<2x4x1xf32>) -> tensor<2x4x1xf32>
  %5 = oriel.sub %1, %4 : (tensor<2x4x8xf32>, tensor<2x4x1xf32>) -> tensor<2x4x8xf32>
  %6 = oriel.reshape %5 : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
  %7 = oriel.gather %6, %l {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<8x8xf32>, tensor<8x1xi64>) -> tensor<8x1xf32>
  return %7 : tensor<8x1xf32>
}
