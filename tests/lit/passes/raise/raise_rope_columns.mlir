// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-rope))" --split-input-file | FileCheck %s

// The first four columns are turned, and the others stay: one op.
// CHECK-LABEL: func.func @halves_in_front
// CHECK-SAME: (%[[X:.*]]: tensor<8x10xf32>, %[[C:.*]]: tensor<8x2xf32>, %[[S:.*]]: tensor<8x2xf32>)
// CHECK: %[[Y:.*]] = oriel.rope %[[X]], %[[C]], %[[S]] {rotary_dim = 4 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @halves_in_front(%x: tensor<8x10xf32>, %cos: tensor<8x2xf32>, %sin: tensor<8x2xf32>) -> tensor<8x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %2 = oriel.mul %0, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %4 = oriel.sub %2, %3 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %6 = oriel.mul %1, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %7 = oriel.add %5, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %8 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x6xf32>
  %9 = oriel.concat %4, %7, %8 {dim = 1 : i64} : (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  return %9 : tensor<8x10xf32>
}

// -----

// What stays is in front. The table is a slice, too.
// CHECK-LABEL: func.func @halves_behind
// CHECK-SAME: (%[[X:.*]]: tensor<8x10xf32>, %[[A:.*]]: tensor<8x10xf32>, %[[S:.*]]: tensor<8x2xf32>)
// CHECK-DAG: %[[C:.*]] = oriel.slice %[[A]]
// CHECK-DAG: %[[KEPT:.*]] = oriel.slice %[[X]] {limits = array<i64: 8, 6>, starts = array<i64: 0, 0>
// CHECK-DAG: %[[PART:.*]] = oriel.slice %[[X]] {limits = array<i64: 8, 10>, starts = array<i64: 0, 6>
// CHECK: %[[Y:.*]] = oriel.rope %[[PART]], %[[C]], %[[S]]
// CHECK: oriel.concat %[[KEPT]], %[[Y]]
func.func @halves_behind(%x: tensor<8x10xf32>, %angles: tensor<8x10xf32>, %sin: tensor<8x2xf32>) -> tensor<8x10xf32> {
  %cos = oriel.slice %angles {starts = array<i64: 0, 0>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %0 = oriel.slice %x {starts = array<i64: 0, 6>, limits = array<i64: 8, 8>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 8>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %2 = oriel.mul %cos, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %4 = oriel.sub %2, %3 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %6 = oriel.mul %1, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %7 = oriel.add %5, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %8 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 6>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x6xf32>
  %9 = oriel.concat %8, %4, %7 {dim = 1 : i64} : (tensor<8x6xf32>, tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x10xf32>
  return %9 : tensor<8x10xf32>
}

// -----

// CHECK-LABEL: func.func @neighbours_in_front
// CHECK-SAME: (%[[X:.*]]: tensor<8x10xf32>, %[[C:.*]]: tensor<8x2xf32>, %[[S:.*]]: tensor<8x2xf32>)
// CHECK: %[[Y:.*]] = oriel.rope %[[X]], %[[C]], %[[S]] {interleaved = true, rotary_dim = 4 : i64}
// CHECK-NEXT: return %[[Y]]
func.func @neighbours_in_front(%x: tensor<8x10xf32>, %cos: tensor<8x2xf32>, %sin: tensor<8x2xf32>) -> tensor<8x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 4>, strides = array<i64: 1, 2>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 8, 4>, strides = array<i64: 1, 2>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %2 = oriel.mul %0, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %4 = oriel.sub %2, %3 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %6 = oriel.mul %1, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %7 = oriel.add %5, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %a = oriel.reshape %4 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
  %b = oriel.reshape %7 : (tensor<8x2xf32>) -> tensor<8x2x1xf32>
  %c = oriel.concat %a, %b {dim = 2 : i64} : (tensor<8x2x1xf32>, tensor<8x2x1xf32>) -> tensor<8x2x2xf32>
  %d = oriel.reshape %c : (tensor<8x2x2xf32>) -> tensor<8x4xf32>
  %8 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x6xf32>
  %9 = oriel.concat %d, %8 {dim = 1 : i64} : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  return %9 : tensor<8x10xf32>
}

// -----

// Halves that are not side by side are no columns of a rotation.
// CHECK-LABEL: func.func @apart
// CHECK-NOT: oriel.rope
func.func @apart(%x: tensor<8x10xf32>, %cos: tensor<8x2xf32>, %sin: tensor<8x2xf32>) -> tensor<8x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 3>, limits = array<i64: 8, 5>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %2 = oriel.mul %0, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %4 = oriel.sub %2, %3 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %6 = oriel.mul %1, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %7 = oriel.add %5, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %8 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x6xf32>
  %9 = oriel.concat %4, %7, %8 {dim = 1 : i64} : (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  return %9 : tensor<8x10xf32>
}

// -----

// Other tables in the sum than in the difference.
// CHECK-LABEL: func.func @other_table
// CHECK-NOT: oriel.rope
func.func @other_table(%x: tensor<8x10xf32>, %cos: tensor<8x2xf32>, %sin: tensor<8x2xf32>) -> tensor<8x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %2 = oriel.mul %0, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %4 = oriel.sub %2, %3 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %6 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %7 = oriel.add %5, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %8 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x6xf32>
  %9 = oriel.concat %4, %7, %8 {dim = 1 : i64} : (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  return %9 : tensor<8x10xf32>
}

// -----

// The sum in front of the difference: the second half is where the first one was.
// CHECK-LABEL: func.func @swapped
// CHECK-NOT: oriel.rope
func.func @swapped(%x: tensor<8x10xf32>, %cos: tensor<8x2xf32>, %sin: tensor<8x2xf32>) -> tensor<8x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x2xf32>
  %2 = oriel.mul %0, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %3 = oriel.mul %1, %sin : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %4 = oriel.sub %2, %3 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %6 = oriel.mul %1, %cos : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %7 = oriel.add %5, %6 : (tensor<8x2xf32>, tensor<8x2xf32>) -> tensor<8x2xf32>
  %8 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xf32>) -> tensor<8x6xf32>
  %9 = oriel.concat %7, %4, %8 {dim = 1 : i64} : (tensor<8x2xf32>, tensor<8x2xf32>, tensor<8x6xf32>) -> tensor<8x10xf32>
  return %9 : tensor<8x10xf32>
}

// -----

// Integers are turned by no rope.
// CHECK-LABEL: func.func @integers
// CHECK-NOT: oriel.rope
func.func @integers(%x: tensor<8x10xi64>, %cos: tensor<8x2xi64>, %sin: tensor<8x2xi64>) -> tensor<8x10xi64> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 8, 2>, strides = array<i64: 1, 1>} : (tensor<8x10xi64>) -> tensor<8x2xi64>
  %1 = oriel.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 8, 4>, strides = array<i64: 1, 1>} : (tensor<8x10xi64>) -> tensor<8x2xi64>
  %2 = oriel.mul %0, %cos : (tensor<8x2xi64>, tensor<8x2xi64>) -> tensor<8x2xi64>
  %3 = oriel.mul %1, %sin : (tensor<8x2xi64>, tensor<8x2xi64>) -> tensor<8x2xi64>
  %4 = oriel.sub %2, %3 : (tensor<8x2xi64>, tensor<8x2xi64>) -> tensor<8x2xi64>
  %5 = oriel.mul %sin, %0 : (tensor<8x2xi64>, tensor<8x2xi64>) -> tensor<8x2xi64>
  %6 = oriel.mul %1, %cos : (tensor<8x2xi64>, tensor<8x2xi64>) -> tensor<8x2xi64>
  %7 = oriel.add %5, %6 : (tensor<8x2xi64>, tensor<8x2xi64>) -> tensor<8x2xi64>
  %8 = oriel.slice %x {starts = array<i64: 0, 4>, limits = array<i64: 8, 10>, strides = array<i64: 1, 1>} : (tensor<8x10xi64>) -> tensor<8x6xi64>
  %9 = oriel.concat %4, %7, %8 {dim = 1 : i64} : (tensor<8x2xi64>, tensor<8x2xi64>, tensor<8x6xi64>) -> tensor<8x10xi64>
  return %9 : tensor<8x10xi64>
}
