// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-recurrence,oriel-raise-updates))" --split-input-file | FileCheck %s

// The chunks' updates go into the state one after the other, all else is read of slices.
// CHECK-LABEL: func.func @delta_rule
// CHECK-SAME: (%[[U:.*]]: tensor<2x3x4x6xf32>, %[[W:.*]]: tensor<2x3x4x5xf32>, %[[K:.*]]: tensor<2x3x4x5xf32>, %[[D:.*]]: tensor<2x3x1x1xf32>, %[[Q:.*]]: tensor<2x3x4x5xf32>, %[[S:.*]]: tensor<2x5x6xf32>)
// CHECK: %[[READ:.*]] = oriel.neg %[[W]]
// CHECK: %[[X:.*]], %[[STATES:.*]], %[[LAST:.*]] = oriel.delta_scan %[[U]], %[[READ]], %[[K]], %[[D]], %[[S]] :
// CHECK-COUNT-3: oriel.slice %[[STATES]]
// CHECK-NOT: oriel.transpose
// CHECK: %[[Y:.*]] = oriel.concat
// CHECK-NEXT: return %[[Y]], %[[LAST]]
func.func @delta_rule(%u: tensor<2x3x4x6xf32>, %w: tensor<2x3x4x5xf32>, %k: tensor<2x3x4x5xf32>, %d: tensor<2x3x1x1xf32>, %q: tensor<2x3x4x5xf32>, %s: tensor<2x5x6xf32>) -> (tensor<2x3x4x6xf32>, tensor<2x5x6xf32>) {
  %0 = oriel.slice %u {limits = array<i64: 2, 1, 4, 6>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x6xf32>) -> tensor<2x1x4x6xf32>
  %1 = oriel.reshape %0 : (tensor<2x1x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = oriel.slice %w {limits = array<i64: 2, 1, 4, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %3 = oriel.reshape %2 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %4 = oriel.matmul %3, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %5 = oriel.sub %1, %4 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.slice %q {limits = array<i64: 2, 1, 4, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %7 = oriel.reshape %6 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %8 = oriel.matmul %7, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %9 = oriel.add %8, %5 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %10 = oriel.reshape %9 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %11 = oriel.slice %d {limits = array<i64: 2, 1, 1, 1>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x1x1xf32>) -> tensor<2x1x1x1xf32>
  %12 = oriel.reshape %11 : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32>
  %13 = oriel.mul %s, %12 : (tensor<2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<2x5x6xf32>
  %14 = oriel.slice %k {limits = array<i64: 2, 1, 4, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %15 = oriel.reshape %14 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %16 = oriel.transpose %15 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %17 = oriel.matmul %16, %5 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %18 = oriel.add %13, %17 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %19 = oriel.slice %u {limits = array<i64: 2, 2, 4, 6>, starts = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x6xf32>) -> tensor<2x1x4x6xf32>
  %20 = oriel.reshape %19 : (tensor<2x1x4x6xf32>) -> tensor<2x4x6xf32>
  %21 = oriel.slice %w {limits = array<i64: 2, 2, 4, 5>, starts = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %22 = oriel.reshape %21 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %23 = oriel.matmul %22, %18 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %24 = oriel.sub %20, %23 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %25 = oriel.slice %q {limits = array<i64: 2, 2, 4, 5>, starts = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %26 = oriel.reshape %25 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %27 = oriel.matmul %26, %18 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %28 = oriel.add %27, %24 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %29 = oriel.reshape %28 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %30 = oriel.slice %d {limits = array<i64: 2, 2, 1, 1>, starts = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x1x1xf32>) -> tensor<2x1x1x1xf32>
  %31 = oriel.reshape %30 : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32>
  %32 = oriel.mul %18, %31 : (tensor<2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<2x5x6xf32>
  %33 = oriel.slice %k {limits = array<i64: 2, 2, 4, 5>, starts = array<i64: 0, 1, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %34 = oriel.reshape %33 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %35 = oriel.transpose %34 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %36 = oriel.matmul %35, %24 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %37 = oriel.add %32, %36 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %38 = oriel.slice %u {limits = array<i64: 2, 3, 4, 6>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x6xf32>) -> tensor<2x1x4x6xf32>
  %39 = oriel.reshape %38 : (tensor<2x1x4x6xf32>) -> tensor<2x4x6xf32>
  %40 = oriel.slice %w {limits = array<i64: 2, 3, 4, 5>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %41 = oriel.reshape %40 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %42 = oriel.matmul %41, %37 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %43 = oriel.sub %39, %42 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %44 = oriel.slice %q {limits = array<i64: 2, 3, 4, 5>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %45 = oriel.reshape %44 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %46 = oriel.matmul %45, %37 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %47 = oriel.add %46, %43 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %48 = oriel.reshape %47 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %49 = oriel.slice %d {limits = array<i64: 2, 3, 1, 1>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x1x1xf32>) -> tensor<2x1x1x1xf32>
  %50 = oriel.reshape %49 : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32>
  %51 = oriel.mul %37, %50 : (tensor<2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<2x5x6xf32>
  %52 = oriel.slice %k {limits = array<i64: 2, 3, 4, 5>, starts = array<i64: 0, 2, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %53 = oriel.reshape %52 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %54 = oriel.transpose %53 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %55 = oriel.matmul %54, %43 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %56 = oriel.add %51, %55 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %57 = oriel.concat %10, %29, %48 {dim = 1 : i64} : (tensor<2x1x4x6xf32>, tensor<2x1x4x6xf32>, tensor<2x1x4x6xf32>) -> tensor<2x3x4x6xf32>
  return %57, %56 : tensor<2x3x4x6xf32>, tensor<2x5x6xf32>
}

// -----

// Sums, keys of columns, a factor for each row of the state, none.
// CHECK-LABEL: func.func @spellings
// CHECK-DAG: %[[ONE:.*]] = oriel.constant {value = dense<1.000000e+00> : tensor<{{.*}}xf32>}
// CHECK-DAG: oriel.transpose %{{.*}} {permutation = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
// CHECK-NOT: oriel.neg
// CHECK: oriel.delta_scan {{.*}} : (tensor<2x2x4x6xf32>, tensor<2x2x4x5xf32>, tensor<2x2x4x5xf32>, tensor<2x2x5x1xf32>, tensor<2x5x6xf32>)
// CHECK-NOT: oriel.matmul
// CHECK: return
func.func @spellings(%u0: tensor<2x4x6xf32>, %w0: tensor<2x4x5xf32>, %k0: tensor<2x5x4xf32>, %u1: tensor<2x4x6xf32>, %w1: tensor<2x4x5xf32>, %k1: tensor<2x5x4xf32>, %d: tensor<5x1xf32>, %s: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %0 = oriel.matmul %w0, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %1 = oriel.add %0, %u0 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = oriel.matmul %k0, %1 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %3 = oriel.mul %d, %s : (tensor<5x1xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %4 = oriel.add %2, %3 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %5 = oriel.matmul %w1, %4 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.add %5, %u1 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %7 = oriel.matmul %k1, %6 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %8 = oriel.add %7, %4 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %8 : tensor<2x5x6xf32>
}

// -----

// Loops of two layers start from one zero.
// CHECK-LABEL: func.func @two_from_zero
// CHECK: %[[ZERO:.*]] = oriel.constant {value = dense<0.000000e+00> : tensor<2x5x6xf32>}
// CHECK: oriel.delta_scan {{.*}}, %[[ZERO]] :
// CHECK: oriel.delta_scan {{.*}}, %[[ZERO]] :
func.func @two_from_zero(%u0: tensor<2x4x6xf32>, %w0: tensor<2x4x5xf32>, %u1: tensor<2x4x6xf32>, %w1: tensor<2x4x5xf32>) -> (tensor<2x5x6xf32>, tensor<2x5x6xf32>) {
  %0 = oriel.constant  {value = dense<0.0> : tensor<2x5x6xf32>} : () -> tensor<2x5x6xf32>
  %1 = oriel.matmul %w0, %0 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %2 = oriel.sub %u0, %1 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %3 = oriel.matmul %w0, %2 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %4 = oriel.add %0, %3 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %5 = oriel.matmul %w0, %4 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.sub %u0, %5 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %7 = oriel.matmul %w0, %6 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %8 = oriel.add %4, %7 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %9 = oriel.matmul %w1, %0 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %10 = oriel.sub %u1, %9 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %11 = oriel.matmul %w1, %10 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %12 = oriel.add %0, %11 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %13 = oriel.matmul %w1, %12 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %14 = oriel.sub %u1, %13 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %15 = oriel.matmul %w1, %14 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %16 = oriel.add %12, %15 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %8, %16 : tensor<2x5x6xf32>, tensor<2x5x6xf32>
}

// -----

// The second chunk's keys are computed of what the first wrote.
// CHECK-LABEL: func.func @keys_of_the_state
// CHECK-NOT: oriel.delta_scan
// CHECK: return
func.func @keys_of_the_state(%u: tensor<2x4x6xf32>, %w: tensor<2x4x6xf32>, %k: tensor<2x4x6xf32>, %s: tensor<2x6x6xf32>) -> tensor<2x6x6xf32> {
  %0 = oriel.matmul %w, %s : (tensor<2x4x6xf32>, tensor<2x6x6xf32>) -> tensor<2x4x6xf32>
  %1 = oriel.sub %u, %0 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = oriel.matmul %k, %1 {transpose_lhs = true} : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x6x6xf32>
  %3 = oriel.add %s, %2 : (tensor<2x6x6xf32>, tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %4 = oriel.tanh %1 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %5 = oriel.matmul %w, %3 : (tensor<2x4x6xf32>, tensor<2x6x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.sub %u, %5 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %7 = oriel.matmul %4, %6 {transpose_lhs = true} : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x6x6xf32>
  %8 = oriel.add %3, %7 : (tensor<2x6x6xf32>, tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %9 = oriel.tanh %6 : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  return %8 : tensor<2x6x6xf32>
}

// -----

// CHECK-LABEL: func.func @one_chunk
// CHECK-NOT: oriel.delta_scan
// CHECK: return
func.func @one_chunk(%u: tensor<2x3x4x6xf32>, %w: tensor<2x3x4x5xf32>, %k: tensor<2x3x4x5xf32>, %d: tensor<2x3x1x1xf32>, %q: tensor<2x3x4x5xf32>, %s: tensor<2x5x6xf32>) -> (tensor<2x1x4x6xf32>, tensor<2x5x6xf32>) {
  %0 = oriel.slice %u {limits = array<i64: 2, 1, 4, 6>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x6xf32>) -> tensor<2x1x4x6xf32>
  %1 = oriel.reshape %0 : (tensor<2x1x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = oriel.slice %w {limits = array<i64: 2, 1, 4, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %3 = oriel.reshape %2 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %4 = oriel.matmul %3, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %5 = oriel.sub %1, %4 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.slice %q {limits = array<i64: 2, 1, 4, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %7 = oriel.reshape %6 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %8 = oriel.matmul %7, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %9 = oriel.add %8, %5 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %10 = oriel.reshape %9 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %11 = oriel.slice %d {limits = array<i64: 2, 1, 1, 1>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x1x1xf32>) -> tensor<2x1x1x1xf32>
  %12 = oriel.reshape %11 : (tensor<2x1x1x1xf32>) -> tensor<2x1x1xf32>
  %13 = oriel.mul %s, %12 : (tensor<2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<2x5x6xf32>
  %14 = oriel.slice %k {limits = array<i64: 2, 1, 4, 5>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x5xf32>) -> tensor<2x1x4x5xf32>
  %15 = oriel.reshape %14 : (tensor<2x1x4x5xf32>) -> tensor<2x4x5xf32>
  %16 = oriel.transpose %15 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %17 = oriel.matmul %16, %5 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %18 = oriel.add %13, %17 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %19 = oriel.concat %10 {dim = 1 : i64} : (tensor<2x1x4x6xf32>) -> tensor<2x1x4x6xf32>
  return %19, %18 : tensor<2x1x4x6xf32>, tensor<2x5x6xf32>
}

// -----

// CHECK-LABEL: func.func @decays_of_columns
// CHECK-NOT: oriel.delta_scan
// CHECK: return
func.func @decays_of_columns(%u: tensor<2x4x6xf32>, %w: tensor<2x4x5xf32>, %d: tensor<6xf32>, %s: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %0 = oriel.matmul %w, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %1 = oriel.sub %u, %0 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = oriel.matmul %w, %1 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %3 = oriel.mul %s, %d : (tensor<2x5x6xf32>, tensor<6xf32>) -> tensor<2x5x6xf32>
  %4 = oriel.add %3, %2 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %5 = oriel.matmul %w, %4 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.sub %u, %5 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %7 = oriel.matmul %w, %6 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %8 = oriel.mul %4, %d : (tensor<2x5x6xf32>, tensor<6xf32>) -> tensor<2x5x6xf32>
  %9 = oriel.add %8, %7 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %9 : tensor<2x5x6xf32>
}

// -----

// Nothing reads the state behind the last chunk, so the loop does not compute it: the scan takes
// what would follow, keys and decays as of the chunks before.
// CHECK-LABEL: func.func @last_state_unread
// CHECK-DAG: %[[LAST:.*]] = oriel.constant {value = dense<2> : tensor<i64>}
// CHECK: oriel.gather %{{.*}}, %[[LAST]] {dim = 1 : i64} : (tensor<2x3x1x1xf32>
// CHECK: oriel.delta_scan {{.*}} : (tensor<2x3x4x6xf32>, tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<2x3x1x1xf32>, tensor<2x5x6xf32>)
// CHECK-NOT: oriel.sub
// CHECK: return
func.func @last_state_unread(%u: tensor<2x3x4x6xf32>, %w: tensor<2x3x4x5xf32>, %k: tensor<2x3x4x5xf32>, %g: tensor<2x3x1x1xf32>, %q: tensor<2x3x4x5xf32>, %s: tensor<2x5x6xf32>) -> tensor<2x3x4x6xf32> {
  %0 = oriel.constant  {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %1 = oriel.gather %u, %0 {dim = 1 : i64} : (tensor<2x3x4x6xf32>, tensor<i64>) -> tensor<2x4x6xf32>
  %2 = oriel.constant  {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %3 = oriel.gather %w, %2 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %4 = oriel.matmul %3, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %5 = oriel.sub %1, %4 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %6 = oriel.constant  {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %7 = oriel.gather %q, %6 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %8 = oriel.matmul %7, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %9 = oriel.add %8, %5 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %10 = oriel.reshape %9 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %11 = oriel.constant  {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %12 = oriel.gather %g, %11 {dim = 1 : i64} : (tensor<2x3x1x1xf32>, tensor<i64>) -> tensor<2x1x1xf32>
  %13 = oriel.exp %12 : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %14 = oriel.mul %s, %13 : (tensor<2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<2x5x6xf32>
  %15 = oriel.constant  {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %16 = oriel.gather %k, %15 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %17 = oriel.mul %16, %13 : (tensor<2x4x5xf32>, tensor<2x1x1xf32>) -> tensor<2x4x5xf32>
  %18 = oriel.transpose %17 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %19 = oriel.matmul %18, %5 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %20 = oriel.add %14, %19 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %21 = oriel.constant  {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %22 = oriel.gather %u, %21 {dim = 1 : i64} : (tensor<2x3x4x6xf32>, tensor<i64>) -> tensor<2x4x6xf32>
  %23 = oriel.constant  {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %24 = oriel.gather %w, %23 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %25 = oriel.matmul %24, %20 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %26 = oriel.sub %22, %25 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %27 = oriel.constant  {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %28 = oriel.gather %q, %27 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %29 = oriel.matmul %28, %20 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %30 = oriel.add %29, %26 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %31 = oriel.reshape %30 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %32 = oriel.constant  {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %33 = oriel.gather %g, %32 {dim = 1 : i64} : (tensor<2x3x1x1xf32>, tensor<i64>) -> tensor<2x1x1xf32>
  %34 = oriel.exp %33 : (tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %35 = oriel.mul %20, %34 : (tensor<2x5x6xf32>, tensor<2x1x1xf32>) -> tensor<2x5x6xf32>
  %36 = oriel.constant  {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %37 = oriel.gather %k, %36 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %38 = oriel.mul %37, %34 : (tensor<2x4x5xf32>, tensor<2x1x1xf32>) -> tensor<2x4x5xf32>
  %39 = oriel.transpose %38 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x5xf32>) -> tensor<2x5x4xf32>
  %40 = oriel.matmul %39, %26 : (tensor<2x5x4xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %41 = oriel.add %35, %40 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %42 = oriel.constant  {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %43 = oriel.gather %u, %42 {dim = 1 : i64} : (tensor<2x3x4x6xf32>, tensor<i64>) -> tensor<2x4x6xf32>
  %44 = oriel.constant  {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %45 = oriel.gather %w, %44 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %46 = oriel.matmul %45, %41 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %47 = oriel.sub %43, %46 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %48 = oriel.constant  {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %49 = oriel.gather %q, %48 {dim = 1 : i64} : (tensor<2x3x4x5xf32>, tensor<i64>) -> tensor<2x4x5xf32>
  %50 = oriel.matmul %49, %41 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %51 = oriel.add %50, %47 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %52 = oriel.reshape %51 : (tensor<2x4x6xf32>) -> tensor<2x1x4x6xf32>
  %53 = oriel.concat %10, %31, %52 {dim = 1 : i64} : (tensor<2x1x4x6xf32>, tensor<2x1x4x6xf32>, tensor<2x1x4x6xf32>) -> tensor<2x3x4x6xf32>
  return %53 : tensor<2x3x4x6xf32>
}

// -----

// Of two products, that with the state is what is read of it.
// CHECK-LABEL: func.func @values_are_products
// CHECK: oriel.delta_scan {{.*}} : (tensor<2x2x4x6xf32>, tensor<2x2x4x5xf32>
func.func @values_are_products(%t: tensor<2x4x4xf32>, %u0: tensor<2x4x6xf32>, %w0: tensor<2x4x5xf32>, %s: tensor<2x5x6xf32>) -> tensor<2x5x6xf32> {
  %v = oriel.matmul %t, %u0 : (tensor<2x4x4xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %p0 = oriel.matmul %w0, %s : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %x0 = oriel.add %v, %p0 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %k0 = oriel.matmul %w0, %x0 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %s1 = oriel.add %s, %k0 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  %p1 = oriel.matmul %w0, %s1 : (tensor<2x4x5xf32>, tensor<2x5x6xf32>) -> tensor<2x4x6xf32>
  %x1 = oriel.add %v, %p1 : (tensor<2x4x6xf32>, tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %k1 = oriel.matmul %w0, %x1 {transpose_lhs = true} : (tensor<2x4x5xf32>, tensor<2x4x6xf32>) -> tensor<2x5x6xf32>
  %s2 = oriel.add %s1, %k1 : (tensor<2x5x6xf32>, tensor<2x5x6xf32>) -> tensor<2x5x6xf32>
  return %s2 : tensor<2x5x6xf32>
}
