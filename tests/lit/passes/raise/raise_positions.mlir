// Comparisons of positions, and gathers by them, that are the same of all elements.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-positions))" --split-input-file | FileCheck %s

// Whether a position is one more than that before it, as transformers asks of packed sequences: in a
// table of a million elements, in which the first position has -1 before it.
// CHECK-LABEL: func.func @consecutive
// CHECK-DAG: %[[NONE:.*]] = oriel.constant {value = dense<0> : tensor<1025x1024xi64>}
// CHECK: return %[[NONE]]
func.func @consecutive() -> tensor<1025x1024xi64> {
  %one = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %i_1 = oriel.iota {dim = 1 : i64} : () -> tensor<1x1024xi64>
  %i = oriel.broadcast %i_1 : (tensor<1x1024xi64>) -> tensor<1025x1024xi64>
  %0 = oriel.slice %i {starts = array<i64: 0, 0>, limits = array<i64: 1025, 1>, strides = array<i64: 1, 1>} : (tensor<1025x1024xi64>) -> tensor<1025x1xi64>
  %1 = oriel.sub %0, %one : (tensor<1025x1xi64>, tensor<i64>) -> tensor<1025x1xi64>
  %2 = oriel.concat %1, %i {dim = 1 : i64} : (tensor<1025x1xi64>, tensor<1025x1024xi64>) -> tensor<1025x1025xi64>
  %3 = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 1025, 1024>, strides = array<i64: 1, 1>} : (tensor<1025x1025xi64>) -> tensor<1025x1024xi64>
  %4 = oriel.slice %2 {starts = array<i64: 0, 1>, limits = array<i64: 1025, 1025>, strides = array<i64: 1, 1>} : (tensor<1025x1025xi64>) -> tensor<1025x1024xi64>
  %5 = oriel.sub %4, %3 : (tensor<1025x1024xi64>, tensor<1025x1024xi64>) -> tensor<1025x1024xi64>
  %6 = oriel.equal %5, %one : (tensor<1025x1024xi64>, tensor<i64>) -> tensor<1025x1024xi1>
  %7 = oriel.not %6 : (tensor<1025x1024xi1>) -> tensor<1025x1024xi1>
  %8 = oriel.cast %7 : (tensor<1025x1024xi1>) -> tensor<1025x1024xi64>
  %9 = oriel.cumsum %8 {dim = 1 : i64} : (tensor<1025x1024xi64>) -> tensor<1025x1024xi64>
  return %9 : tensor<1025x1024xi64>
}

// -----

// The piece in front is no position before the others.
// CHECK-LABEL: func.func @not_consecutive
// CHECK: oriel.equal
func.func @not_consecutive() -> tensor<1025x1024xi1> {
  %one = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %i_1 = oriel.iota {dim = 1 : i64} : () -> tensor<1x1024xi64>
  %i = oriel.broadcast %i_1 : (tensor<1x1024xi64>) -> tensor<1025x1024xi64>
  %1 = oriel.constant {value = dense<7> : tensor<1025x1xi64>} : () -> tensor<1025x1xi64>
  %2 = oriel.concat %1, %i {dim = 1 : i64} : (tensor<1025x1xi64>, tensor<1025x1024xi64>) -> tensor<1025x1025xi64>
  %3 = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 1025, 1024>, strides = array<i64: 1, 1>} : (tensor<1025x1025xi64>) -> tensor<1025x1024xi64>
  %5 = oriel.sub %i, %3 : (tensor<1025x1024xi64>, tensor<1025x1024xi64>) -> tensor<1025x1024xi64>
  %6 = oriel.equal %5, %one : (tensor<1025x1024xi64>, tensor<i64>) -> tensor<1025x1024xi1>
  return %6 : tensor<1025x1024xi1>
}

// -----

// i is from 0 to 2, and i - 2 from -2 to 0.
// CHECK-LABEL: func.func @each_comparison
// CHECK-DAG: %[[TRUE:.*]] = oriel.constant {value = dense<true> : tensor<3xi1>}
// CHECK-DAG: %[[FALSE:.*]] = oriel.constant {value = dense<false> : tensor<3xi1>}
// CHECK-NOT: oriel.less
// CHECK: %[[SOME_LESS:.*]] = oriel.less %
// CHECK-NOT: oriel.less
// CHECK: %[[SOME_EQUAL:.*]] = oriel.equal
// CHECK: return %[[TRUE]], %[[FALSE]], %[[TRUE]], %[[FALSE]], %[[TRUE]], %[[FALSE]], %[[SOME_LESS]], %[[SOME_EQUAL]]
func.func @each_comparison() -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
  %two = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %three = oriel.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %i_1 = oriel.iota {dim = 1 : i64} : () -> tensor<1x3xi64>
  %all = oriel.broadcast %i_1 : (tensor<1x3xi64>) -> tensor<400000x3xi64>
  %row = oriel.slice %all {starts = array<i64: 0, 0>, limits = array<i64: 1, 3>, strides = array<i64: 1, 1>} : (tensor<400000x3xi64>) -> tensor<1x3xi64>
  %i = oriel.reshape %row : (tensor<1x3xi64>) -> tensor<3xi64>
  %less = oriel.less %i, %three : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %not_less = oriel.less %three, %i : (tensor<i64>, tensor<3xi64>) -> tensor<3xi1>
  %less_equal = oriel.less_equal %i, %two : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %greater = oriel.greater %i, %two : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %greater_equal = oriel.greater_equal %three, %i : (tensor<i64>, tensor<3xi64>) -> tensor<3xi1>
  %equal = oriel.equal %i, %three : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %some_less = oriel.less %i, %two : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %some_equal = oriel.equal %i, %two : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  return %less, %not_less, %less_equal, %greater, %greater_equal, %equal, %some_less, %some_equal : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>
}

// -----

// What is gathered of equal rows, by the flat index of each sample's positions.
// CHECK-LABEL: func.func @gather_of_equal_rows
// CHECK: %[[ROWS:.*]] = oriel.constant {value = dense<5> : tensor<1025x1x1024xi64>}
// CHECK: return %[[ROWS]]
func.func @gather_of_equal_rows() -> tensor<1025x1x1024xi64> {
  %n = oriel.constant {value = dense<1024> : tensor<i64>} : () -> tensor<i64>
  %rows = oriel.constant {value = dense<5> : tensor<1049600xi64>} : () -> tensor<1049600xi64>
  %b = oriel.iota {dim = 0 : i64} : () -> tensor<1025x1x1xi64>
  %i_1 = oriel.iota {dim = 2 : i64} : () -> tensor<1x1x1024xi64>
  %i = oriel.broadcast %i_1 : (tensor<1x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %0 = oriel.mul %b, %n : (tensor<1025x1x1xi64>, tensor<i64>) -> tensor<1025x1x1xi64>
  %1 = oriel.add %0, %i : (tensor<1025x1x1xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %2 = oriel.gather %rows, %1 {dim = 0 : i64} : (tensor<1049600xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  return %2 : tensor<1025x1x1024xi64>
}

// -----

// Positions that are gathered by a flat index are still those of each sample.
// CHECK-LABEL: func.func @gathered_positions
// CHECK-DAG: %[[EQUAL:.*]] = oriel.constant {value = dense<true> : tensor<1025x1x1024xi1>}
// CHECK: %[[CARRIED:.*]] = oriel.equal
// CHECK: return %[[EQUAL]], %[[CARRIED]]
func.func @gathered_positions() -> (tensor<1025x1x1024xi1>, tensor<1025x1x1024xi1>) {
  %n = oriel.constant {value = dense<1024> : tensor<i64>} : () -> tensor<i64>
  %one = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %rows_1 = oriel.iota {dim = 1 : i64} : () -> tensor<1x1024xi64>
  %rows = oriel.broadcast %rows_1 : (tensor<1x1024xi64>) -> tensor<1026x1024xi64>
  %flat = oriel.reshape %rows : (tensor<1026x1024xi64>) -> tensor<1050624xi64>
  %b = oriel.iota {dim = 0 : i64} : () -> tensor<1025x1x1xi64>
  %i_1 = oriel.iota {dim = 2 : i64} : () -> tensor<1x1x1024xi64>
  %i = oriel.broadcast %i_1 : (tensor<1x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %0 = oriel.mul %b, %n : (tensor<1025x1x1xi64>, tensor<i64>) -> tensor<1025x1x1xi64>
  %1 = oriel.add %0, %i : (tensor<1025x1x1xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %2 = oriel.gather %flat, %1 {dim = 0 : i64} : (tensor<1050624xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %3 = oriel.equal %2, %i : (tensor<1025x1x1024xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi1>
  // One further, the last of them is the first of the next sample.
  %4 = oriel.add %1, %one : (tensor<1025x1x1024xi64>, tensor<i64>) -> tensor<1025x1x1024xi64>
  %5 = oriel.gather %flat, %4 {dim = 0 : i64} : (tensor<1050624xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %6 = oriel.add %i, %one : (tensor<1025x1x1024xi64>, tensor<i64>) -> tensor<1025x1x1024xi64>
  %7 = oriel.equal %5, %6 : (tensor<1025x1x1024xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi1>
  return %3, %7 : tensor<1025x1x1024xi1>, tensor<1025x1x1024xi1>
}
