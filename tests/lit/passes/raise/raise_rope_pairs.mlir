// Rotations of halves and of neighbours, whole and partial, and what is none of them.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-rope))" --split-input-file | FileCheck %s

// Neighbours are pairs: every other element, stacked again.
// CHECK-LABEL: func.func @neighbours
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>
// CHECK: oriel.rope %[[X]], %{{.*}}, %{{.*}} {interleaved = true}
func.func @neighbours(%x: tensor<2x3x8xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 1>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = oriel.neg %1 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.reshape %2 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %4 = oriel.reshape %0 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %5 = oriel.concat %3, %4 {dim = 3 : i64} : (tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x2xf32>
  %6 = oriel.reshape %5 : (tensor<2x3x4x2xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.mul %x, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.mul %6, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %9 = oriel.add %7, %8 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %9 : tensor<2x3x8xf32>
}

// -----

// The same, by a dimension of their own.
// CHECK-LABEL: func.func @neighbours_by_reshape
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>
// CHECK: oriel.rope %[[X]], %{{.*}}, %{{.*}} {interleaved = true}
func.func @neighbours_by_reshape(%x: tensor<2x3x8xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x8xf32>) -> tensor<2x3x4x2xf32>
  %1 = oriel.slice %0 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 3, 4, 1>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x2xf32>) -> tensor<2x3x4x1xf32>
  %2 = oriel.slice %0 {starts = array<i64: 0, 0, 0, 1>, limits = array<i64: 2, 3, 4, 2>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x2xf32>) -> tensor<2x3x4x1xf32>
  %3 = oriel.neg %2 : (tensor<2x3x4x1xf32>) -> tensor<2x3x4x1xf32>
  %4 = oriel.concat %3, %1 {dim = 3 : i64} : (tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x2xf32>
  %5 = oriel.reshape %4 : (tensor<2x3x4x2xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.mul %x, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.mul %5, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.add %6, %7 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %8 : tensor<2x3x8xf32>
}

// -----

// Halves by a dimension of their own, that is dropped in between.
// CHECK-LABEL: func.func @halves_by_reshape
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>
// CHECK: oriel.rope %[[X]], %{{[^,]*}}, %{{[^ ]*}} :
func.func @halves_by_reshape(%x: tensor<2x3x8xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.reshape %x : (tensor<2x3x8xf32>) -> tensor<2x3x2x4xf32>
  %1 = oriel.slice %0 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 3, 1, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x2x4xf32>) -> tensor<2x3x1x4xf32>
  %2 = oriel.reshape %1 : (tensor<2x3x1x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.slice %0 {starts = array<i64: 0, 0, 1, 0>, limits = array<i64: 2, 3, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x2x4xf32>) -> tensor<2x3x1x4xf32>
  %4 = oriel.reshape %3 : (tensor<2x3x1x4xf32>) -> tensor<2x3x4xf32>
  %5 = oriel.neg %4 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %6 = oriel.concat %5, %2 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.mul %x, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.mul %6, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %9 = oriel.add %7, %8 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %9 : tensor<2x3x8xf32>
}

// -----

// Tables with a column for each pair.
// CHECK-LABEL: func.func @angle_for_each_pair
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>
// CHECK: oriel.rope %[[X]], %{{[^,]*}}, %{{[^ ]*}} : (tensor<2x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>)
func.func @angle_for_each_pair(%x: tensor<2x3x8xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 4>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = oriel.mul %0, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.mul %1, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %4 = oriel.sub %2, %3 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = oriel.mul %1, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %6 = oriel.mul %0, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %7 = oriel.add %5, %6 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %8 = oriel.concat %4, %7 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  return %8 : tensor<2x3x8xf32>
}

// -----

// CHECK-LABEL: func.func @angle_for_each_pair_of_neighbours
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8xf32>
// CHECK: oriel.rope %[[X]], %{{.*}}, %{{.*}} {interleaved = true} : (tensor<2x3x8xf32>, tensor<1x3x4xf32>, tensor<1x3x4xf32>)
func.func @angle_for_each_pair_of_neighbours(%x: tensor<2x3x8xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 1>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = oriel.mul %0, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.mul %1, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %4 = oriel.sub %2, %3 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = oriel.mul %1, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %6 = oriel.mul %0, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %7 = oriel.add %5, %6 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %8 = oriel.reshape %4 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %9 = oriel.reshape %7 : (tensor<2x3x4xf32>) -> tensor<2x3x4x1xf32>
  %10 = oriel.concat %8, %9 {dim = 3 : i64} : (tensor<2x3x4x1xf32>, tensor<2x3x4x1xf32>) -> tensor<2x3x4x2xf32>
  %11 = oriel.reshape %10 : (tensor<2x3x4x2xf32>) -> tensor<2x3x8xf32>
  return %11 : tensor<2x3x8xf32>
}

// -----

// The last two elements stay.
// CHECK-LABEL: func.func @first_elements_only
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x10xf32>
// CHECK: oriel.rope %[[X]], %{{.*}}, %{{.*}} {rotary_dim = 8 : i64}
// CHECK-NEXT: return
func.func @first_elements_only(%x: tensor<2x3x10xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x10xf32>) -> tensor<2x3x8xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 8>, limits = array<i64: 2, 3, 10>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x10xf32>) -> tensor<2x3x2xf32>
  %2 = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.slice %0 {starts = array<i64: 0, 0, 4>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %4 = oriel.neg %3 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = oriel.concat %4, %2 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.mul %0, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.mul %5, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.add %6, %7 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %9 = oriel.concat %8, %1 {dim = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x3x2xf32>) -> tensor<2x3x10xf32>
  return %9 : tensor<2x3x10xf32>
}

// -----

// What is appended is not what follows: only the part is rotated.
// CHECK-LABEL: func.func @kept_elements_out_of_place
// CHECK-NOT: rotary_dim
// CHECK: oriel.concat
func.func @kept_elements_out_of_place(%x: tensor<2x3x10xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x10xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x10xf32>) -> tensor<2x3x8xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 7>, limits = array<i64: 2, 3, 9>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x10xf32>) -> tensor<2x3x2xf32>
  %2 = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.slice %0 {starts = array<i64: 0, 0, 4>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %4 = oriel.neg %3 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = oriel.concat %4, %2 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.mul %0, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %7 = oriel.mul %5, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %8 = oriel.add %6, %7 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  %9 = oriel.concat %8, %1 {dim = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x3x2xf32>) -> tensor<2x3x10xf32>
  return %9 : tensor<2x3x10xf32>
}

// -----

// Taken apart as neighbours and joined as halves, elements change places.
// CHECK-LABEL: func.func @neighbours_joined_as_halves
// CHECK-NOT: oriel.rope
// CHECK: return
func.func @neighbours_joined_as_halves(%x: tensor<2x3x8xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 1>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 2>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = oriel.neg %1 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.concat %2, %0 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %4 = oriel.mul %x, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %5 = oriel.mul %3, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.add %4, %5 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %6 : tensor<2x3x8xf32>
}

// -----

// Not halves: three elements and five.
// CHECK-LABEL: func.func @sections_that_do_not_add_up
// CHECK-NOT: oriel.rope
// CHECK: return
func.func @sections_that_do_not_add_up(%x: tensor<2x3x8xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 3>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x3xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 3>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x5xf32>
  %2 = oriel.neg %1 : (tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  %3 = oriel.concat %2, %0 {dim = 2 : i64} : (tensor<2x3x5xf32>, tensor<2x3x3xf32>) -> tensor<2x3x8xf32>
  %4 = oriel.mul %x, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %5 = oriel.mul %3, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.add %4, %5 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %6 : tensor<2x3x8xf32>
}

// -----

// [x2, -x1] turns the other way, which tables of opposite sines would say.
// CHECK-LABEL: func.func @first_part_negated
// CHECK-NOT: oriel.rope
// CHECK: return
func.func @first_part_negated(%x: tensor<2x3x8xf32>, %cos: tensor<3x8xf32>, %sin: tensor<3x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 4>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = oriel.neg %0 : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.concat %1, %2 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  %4 = oriel.mul %x, %cos : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %5 = oriel.mul %3, %sin : (tensor<2x3x8xf32>, tensor<3x8xf32>) -> tensor<2x3x8xf32>
  %6 = oriel.add %4, %5 : (tensor<2x3x8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %6 : tensor<2x3x8xf32>
}

// -----

// The parts of a pair are turned by different angles.
// CHECK-LABEL: func.func @other_tables_in_the_second_part
// CHECK-NOT: oriel.rope
// CHECK: return
func.func @other_tables_in_the_second_part(%x: tensor<2x3x8xf32>, %cos: tensor<3x4xf32>, %sin: tensor<3x4xf32>, %cos2: tensor<3x4xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.slice %x {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %1 = oriel.slice %x {starts = array<i64: 0, 0, 4>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x8xf32>) -> tensor<2x3x4xf32>
  %2 = oriel.mul %0, %cos : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %3 = oriel.mul %1, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %4 = oriel.sub %2, %3 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %5 = oriel.mul %1, %cos2 : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %6 = oriel.mul %0, %sin : (tensor<2x3x4xf32>, tensor<3x4xf32>) -> tensor<2x3x4xf32>
  %7 = oriel.add %5, %6 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
  %8 = oriel.concat %4, %7 {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>) -> tensor<2x3x8xf32>
  return %8 : tensor<2x3x8xf32>
}

// -----

// Heads and pairs are split at once, pairs taken apart by indices, and heads and pairs merged at once (Llama of Meta and torchtune).
// CHECK-LABEL: func.func @neighbours_by_indices
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x16xf32>
// CHECK: %[[HEADS:.*]] = oriel.reshape %[[X]] : (tensor<2x3x16xf32>) -> tensor<2x3x2x8xf32>
// CHECK: %[[ROPE:.*]] = oriel.rope %[[HEADS]], %{{.*}}, %{{.*}} {interleaved = true}
// CHECK: %[[Y:.*]] = oriel.reshape %[[ROPE]] : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
// CHECK-NEXT: return %[[Y]]
func.func @neighbours_by_indices(%x: tensor<2x3x16xf32>, %cos: tensor<3x1x4xf32>, %sin: tensor<3x1x4xf32>) -> tensor<2x3x16xf32> {
  %first = oriel.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %second = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %pairs = oriel.reshape %x : (tensor<2x3x16xf32>) -> tensor<2x3x2x4x2xf32>
  %0 = oriel.gather %pairs, %first {dim = 4 : i64} : (tensor<2x3x2x4x2xf32>, tensor<i64>) -> tensor<2x3x2x4xf32>
  %1 = oriel.gather %pairs, %second {dim = 4 : i64} : (tensor<2x3x2x4x2xf32>, tensor<i64>) -> tensor<2x3x2x4xf32>
  %2 = oriel.mul %0, %cos : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %3 = oriel.mul %1, %sin : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %4 = oriel.sub %2, %3 : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %5 = oriel.mul %1, %cos : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %6 = oriel.mul %0, %sin : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %7 = oriel.add %5, %6 : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %8 = oriel.reshape %4 : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x4x1xf32>
  %9 = oriel.reshape %7 : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x4x1xf32>
  %10 = oriel.concat %8, %9 {dim = 4 : i64} : (tensor<2x3x2x4x1xf32>, tensor<2x3x2x4x1xf32>) -> tensor<2x3x2x4x2xf32>
  %11 = oriel.reshape %10 : (tensor<2x3x2x4x2xf32>) -> tensor<2x3x16xf32>
  return %11 : tensor<2x3x16xf32>
}

// -----

// The same with the pairs' dimension in front, where JAX's indices have it.
// CHECK-LABEL: func.func @neighbours_by_indices_in_front
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x16xf32>
// CHECK: %[[HEADS:.*]] = oriel.reshape %[[X]] : (tensor<2x3x16xf32>) -> tensor<2x3x2x8xf32>
// CHECK: %[[ROPE:.*]] = oriel.rope %[[HEADS]], %{{.*}}, %{{.*}} {interleaved = true}
// CHECK: %[[Y:.*]] = oriel.reshape %[[ROPE]] : (tensor<2x3x2x8xf32>) -> tensor<2x3x16xf32>
// CHECK-NEXT: return %[[Y]]
func.func @neighbours_by_indices_in_front(%x: tensor<2x3x16xf32>, %cos: tensor<3x1x4xf32>, %sin: tensor<3x1x4xf32>) -> tensor<2x3x16xf32> {
  %first = oriel.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %second = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %pairs = oriel.reshape %x : (tensor<2x3x16xf32>) -> tensor<2x3x2x4x2xf32>
  %moved = oriel.transpose %pairs {permutation = array<i64: 4, 0, 1, 2, 3>} : (tensor<2x3x2x4x2xf32>) -> tensor<2x2x3x2x4xf32>
  %0 = oriel.gather %moved, %first {dim = 0 : i64} : (tensor<2x2x3x2x4xf32>, tensor<i64>) -> tensor<2x3x2x4xf32>
  %1 = oriel.gather %moved, %second {dim = 0 : i64} : (tensor<2x2x3x2x4xf32>, tensor<i64>) -> tensor<2x3x2x4xf32>
  %2 = oriel.mul %0, %cos : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %3 = oriel.mul %1, %sin : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %4 = oriel.sub %2, %3 : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %5 = oriel.mul %1, %cos : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %6 = oriel.mul %0, %sin : (tensor<2x3x2x4xf32>, tensor<3x1x4xf32>) -> tensor<2x3x2x4xf32>
  %7 = oriel.add %5, %6 : (tensor<2x3x2x4xf32>, tensor<2x3x2x4xf32>) -> tensor<2x3x2x4xf32>
  %8 = oriel.reshape %4 : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x4x1xf32>
  %9 = oriel.reshape %7 : (tensor<2x3x2x4xf32>) -> tensor<2x3x2x4x1xf32>
  %10 = oriel.concat %8, %9 {dim = 4 : i64} : (tensor<2x3x2x4x1xf32>, tensor<2x3x2x4x1xf32>) -> tensor<2x3x2x4x2xf32>
  %11 = oriel.reshape %10 : (tensor<2x3x2x4x2xf32>) -> tensor<2x3x16xf32>
  return %11 : tensor<2x3x16xf32>
}
