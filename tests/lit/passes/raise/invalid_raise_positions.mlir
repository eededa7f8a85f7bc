// A gather of equal rows whose last index does not exist is an error when it runs, not a constant.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-positions))" | FileCheck %s

// CHECK-LABEL: func.func @a_row_is_missing
// CHECK: oriel.gather
func.func @a_row_is_missing() -> tensor<1025x1x1024xi64> {
  %n = oriel.constant {value = dense<1024> : tensor<i64>} : () -> tensor<i64>
  %rows = oriel.constant {value = dense<5> : tensor<1049599xi64>} : () -> tensor<1049599xi64>
  %b = oriel.iota {dim = 0 : i64} : () -> tensor<1025x1x1xi64>
  %i_1 = oriel.iota {dim = 2 : i64} : () -> tensor<1x1x1024xi64>
  %i = oriel.broadcast %i_1 : (tensor<1x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %0 = oriel.mul %b, %n : (tensor<1025x1x1xi64>, tensor<i64>) -> tensor<1025x1x1xi64>
  %1 = oriel.add %0, %i : (tensor<1025x1x1xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  %2 = oriel.gather %rows, %1 {dim = 0 : i64} : (tensor<1049599xi64>, tensor<1025x1x1024xi64>) -> tensor<1025x1x1024xi64>
  return %2 : tensor<1025x1x1024xi64>
}
