// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-packed,oriel-raise-layout),canonicalize,cse)" | FileCheck %s

// Attention of one head each is one of as many heads, which tensor parallelism shares; the layout
// needs no transposes then.
// CHECK-LABEL: func.func @attention_heads
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x6xf32>, %[[K:.*]]: tensor<2x4x6xf32>, %[[V:.*]]: tensor<2x4x6xf32>)
// CHECK-DAG: %[[Q3:.*]] = oriel.reshape %[[Q]] : (tensor<2x4x6xf32>) -> tensor<2x4x3x2xf32>
// CHECK-DAG: %[[K3:.*]] = oriel.reshape %[[K]]
// CHECK-DAG: %[[V3:.*]] = oriel.reshape %[[V]]
// CHECK: %[[A:.*]], %{{.*}} = oriel.attention %[[Q3]], %[[K3]], %[[V3]] {causal = true, scale = 5.000000e-01 : f64, sequence_first = true}
// CHECK: %[[Y:.*]] = oriel.reshape %[[A]] : (tensor<2x4x3x2xf32>) -> tensor<2x4x6xf32>
// CHECK-NEXT: return %[[Y]]
func.func @attention_heads(%q: tensor<2x4x6xf32>, %k: tensor<2x4x6xf32>, %v: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  %0 = oriel.slice %q {limits = array<i64: 2, 4, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %1 = oriel.reshape %0 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %2 = oriel.slice %k {limits = array<i64: 2, 4, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %3 = oriel.reshape %2 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %4 = oriel.slice %v {limits = array<i64: 2, 4, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %5 = oriel.reshape %4 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %r6, %r6_1 = oriel.attention %1, %3, %5 {causal = true, scale = 0.5} : (tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>) -> (tensor<2x1x4x2xf32>, tensor<2x1x4xf32>)
  %6 = oriel.reshape %r6 : (tensor<2x1x4x2xf32>) -> tensor<2x4x2xf32>
  %7 = oriel.slice %q {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %8 = oriel.reshape %7 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %9 = oriel.slice %k {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %10 = oriel.reshape %9 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %11 = oriel.slice %v {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %12 = oriel.reshape %11 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %r13, %r13_1 = oriel.attention %8, %10, %12 {causal = true, scale = 0.5} : (tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>) -> (tensor<2x1x4x2xf32>, tensor<2x1x4xf32>)
  %13 = oriel.reshape %r13 : (tensor<2x1x4x2xf32>) -> tensor<2x4x2xf32>
  %14 = oriel.slice %q {limits = array<i64: 2, 4, 6>, starts = array<i64: 0, 0, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %15 = oriel.reshape %14 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %16 = oriel.slice %k {limits = array<i64: 2, 4, 6>, starts = array<i64: 0, 0, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %17 = oriel.reshape %16 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %18 = oriel.slice %v {limits = array<i64: 2, 4, 6>, starts = array<i64: 0, 0, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %19 = oriel.reshape %18 : (tensor<2x4x2xf32>) -> tensor<2x1x4x2xf32>
  %r20, %r20_1 = oriel.attention %15, %17, %19 {causal = true, scale = 0.5} : (tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>, tensor<2x1x4x2xf32>) -> (tensor<2x1x4x2xf32>, tensor<2x1x4xf32>)
  %20 = oriel.reshape %r20 : (tensor<2x1x4x2xf32>) -> tensor<2x4x2xf32>
  %21 = oriel.concat %6, %13, %20 {dim = 2 : i64} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x6xf32>
  return %21 : tensor<2x4x6xf32>
}
