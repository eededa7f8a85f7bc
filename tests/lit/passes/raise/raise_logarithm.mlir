// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-logarithm))" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @of_sigmoid
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK-DAG: %[[NEGATIVE:.*]] = oriel.min %[[X]], %{{.*}}
// CHECK-DAG: %[[ABS:.*]] = oriel.abs %[[X]]
// CHECK: %[[EXPONENT:.*]] = oriel.neg %[[ABS]]
// CHECK: %[[SMALL:.*]] = oriel.exp %[[EXPONENT]]
// CHECK: %[[SUM:.*]] = oriel.add %[[SMALL]], %{{.*}}
// CHECK: %[[LOG:.*]] = oriel.log %[[SUM]]
// CHECK: %[[Y:.*]] = oriel.sub %[[NEGATIVE]], %[[LOG]]
// CHECK: return %[[Y]]
func.func @of_sigmoid(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = oriel.sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.log %0 : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// One of the two is broadcast.
// CHECK-LABEL: func.func @of_sum
// CHECK-SAME: (%[[A:.*]]: tensor<3x4xf32>, %[[B:.*]]: tensor<4xf32>)
// CHECK-DAG: %[[DIFFERENCE:.*]] = oriel.sub %[[A]], %[[B]]
// CHECK-DAG: %[[EQUAL:.*]] = oriel.equal %[[A]], %[[B]]
// CHECK: %[[FINITE:.*]] = oriel.select %[[EQUAL]], %{{.*}}, %[[DIFFERENCE]]
// CHECK-DAG: %[[MAX:.*]] = oriel.max %[[A]], %[[B]]
// CHECK-DAG: oriel.abs %[[FINITE]]
// CHECK: oriel.add %[[MAX]], %{{.*}} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
func.func @of_sum(%a: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<3x4xf32> {
  %0 = oriel.exp %a : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %1 = oriel.exp %b : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.add %0, %1 : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %3 = oriel.log %2 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  return %3 : tensor<3x4xf32>
}

// -----

// What is added is no exponential.
// CHECK-LABEL: func.func @others
// CHECK: oriel.add
// CHECK-NEXT: oriel.log
func.func @others(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  %0 = oriel.exp %a : (tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.add %0, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.log %1 : (tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}
