// Choices that are written as sums of products.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-choice))" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @opposite_conditions
// CHECK-SAME: (%[[A:.*]]: tensor<2x3xf32>, %[[B:.*]]: tensor<3xf32>, %[[C:.*]]: tensor<2x1xi1>)
// CHECK: %[[S:.*]] = oriel.select %[[C]], %[[A]], %[[B]] : (tensor<2x1xi1>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
// CHECK: return %[[S]]
func.func @opposite_conditions(%a: tensor<2x3xf32>, %b: tensor<3xf32>, %c: tensor<2x1xi1>) -> tensor<2x3xf32> {
  %0 = oriel.not %c : (tensor<2x1xi1>) -> tensor<2x1xi1>
  %1 = oriel.cast %0 : (tensor<2x1xi1>) -> tensor<2x1xf32>
  %2 = oriel.mul %1, %b : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %3 = oriel.cast %c : (tensor<2x1xi1>) -> tensor<2x1xf32>
  %4 = oriel.mul %a, %3 : (tensor<2x3xf32>, tensor<2x1xf32>) -> tensor<2x3xf32>
  %5 = oriel.add %2, %4 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @two_conditions
// CHECK-NOT: oriel.select
func.func @two_conditions(%a: tensor<2x3xf32>, %b: tensor<2x3xf32>, %c: tensor<2x3xi1>, %d: tensor<2x3xi1>) -> tensor<2x3xf32> {
  %0 = oriel.not %d : (tensor<2x3xi1>) -> tensor<2x3xi1>
  %1 = oriel.cast %0 : (tensor<2x3xi1>) -> tensor<2x3xf32>
  %2 = oriel.mul %1, %b : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %3 = oriel.cast %c : (tensor<2x3xi1>) -> tensor<2x3xf32>
  %4 = oriel.mul %a, %3 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %5 = oriel.add %2, %4 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %5 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @known_tables
// CHECK-SAME: (%[[A:.*]]: tensor<4x2x2xf32>)
// CHECK-DAG: %[[C:.*]] = oriel.constant {value = dense<{{.*}}true, false{{.*}}true, true{{.*}}> : tensor<2x2xi1>}
// CHECK-DAG: %[[LOW:.*]] = oriel.constant {value = dense<-1.000000e+09> : tensor<f32>}
// CHECK: oriel.select %[[C]], %[[A]], %[[LOW]]
func.func @known_tables(%a: tensor<4x2x2xf32>) -> tensor<4x2x2xf32> {
  %ones = oriel.constant {value = dense<[[1.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %lows = oriel.constant {value = dense<[[0.0, -1.0e9], [0.0, -0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = oriel.mul %a, %ones : (tensor<4x2x2xf32>, tensor<2x2xf32>) -> tensor<4x2x2xf32>
  %1 = oriel.add %0, %lows : (tensor<4x2x2xf32>, tensor<2x2xf32>) -> tensor<4x2x2xf32>
  return %1 : tensor<4x2x2xf32>
}

// -----

// What is shown is added to as well.
// CHECK-LABEL: func.func @tables_of_sums
// CHECK-NOT: oriel.select
func.func @tables_of_sums(%a: tensor<4x2x2xf32>) -> tensor<4x2x2xf32> {
  %ones = oriel.constant {value = dense<[[1.0, 0.0], [1.0, 1.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %lows = oriel.constant {value = dense<[[0.5, -1.0e9], [0.0, 0.0]]> : tensor<2x2xf32>} : () -> tensor<2x2xf32>
  %0 = oriel.mul %a, %ones : (tensor<4x2x2xf32>, tensor<2x2xf32>) -> tensor<4x2x2xf32>
  %1 = oriel.add %0, %lows : (tensor<4x2x2xf32>, tensor<2x2xf32>) -> tensor<4x2x2xf32>
  return %1 : tensor<4x2x2xf32>
}

// -----

// CHECK-LABEL: func.func @and_true
// CHECK-SAME: (%[[C:.*]]: tensor<2x1xi1>)
// CHECK: %[[B:.*]] = oriel.broadcast %[[C]] : (tensor<2x1xi1>) -> tensor<2x3xi1>
// CHECK: return %[[B]]
func.func @and_true(%c: tensor<2x1xi1>) -> tensor<2x3xi1> {
  %true = oriel.constant {value = dense<true> : tensor<2x3xi1>} : () -> tensor<2x3xi1>
  %0 = oriel.and %c, %true : (tensor<2x1xi1>, tensor<2x3xi1>) -> tensor<2x3xi1>
  return %0 : tensor<2x3xi1>
}
