// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-substitution),canonicalize)" --split-input-file | FileCheck %s

// As PyTorch's exporter writes `for i in range(1, n): a[:, i, :i] += (a[:, i, :i, None] * a[:, :i, :i]).sum(1)`,
// of a matrix that was masked and negated: no second negation.
// CHECK-LABEL: func.func @loop_over_rows
// CHECK-SAME: (%[[A:.*]]: tensor<2x4x4xf32>)
// CHECK: %[[LOWER:.*]] = oriel.select %{{.*}}, %[[A]], %{{.*}}
// CHECK: %[[B:.*]] = oriel.neg %[[LOWER]]
// CHECK: %[[X:.*]] = oriel.triangular_solve %[[LOWER]], %[[B]] {unit_diagonal = true}
// CHECK: return %[[X]]
func.func @loop_over_rows(%a: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %0 = oriel.constant {value = dense<[[false, false, false, false], [true, false, false, false], [true, true, false, false], [true, true, true, false]]> : tensor<4x4xi1>} : () -> tensor<4x4xi1>
  %1 = oriel.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %0, %a, %1 : (tensor<4x4xi1>, tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
  %3 = oriel.neg %2 : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %4 = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %5 = oriel.gather %3, %4 {dim = 1 : i64} : (tensor<2x4x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  %6 = oriel.slice %5 {limits = array<i64: 2, 1>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %7 = oriel.slice %3 {limits = array<i64: 2, 1, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %8 = oriel.slice %7 {limits = array<i64: 2, 1, 1>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x1x4xf32>) -> tensor<2x1x1xf32>
  %9 = oriel.reshape %6 : (tensor<2x1xf32>) -> tensor<2x1x1xf32>
  %10 = oriel.mul %9, %8 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %11 = oriel.reduce_sum %10 {dims = array<i64: 1>} : (tensor<2x1x1xf32>) -> tensor<2x1xf32>
  %12 = oriel.add %6, %11 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %13 = oriel.transpose %5 {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %14 = oriel.slice %13 {limits = array<i64: 4, 2>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<3x2xf32>
  %15 = oriel.transpose %12 {permutation = array<i64: 1, 0>} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %16 = oriel.concat %15, %14 {dim = 0 : i64} : (tensor<1x2xf32>, tensor<3x2xf32>) -> tensor<4x2xf32>
  %17 = oriel.transpose %16 {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %18 = oriel.slice %3 {limits = array<i64: 2, 1, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %19 = oriel.reshape %17 : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
  %20 = oriel.slice %3 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %21 = oriel.concat %18, %19, %20 {dim = 1 : i64} : (tensor<2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x4x4xf32>
  %22 = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %23 = oriel.gather %21, %22 {dim = 1 : i64} : (tensor<2x4x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  %24 = oriel.slice %23 {limits = array<i64: 2, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x2xf32>
  %25 = oriel.slice %21 {limits = array<i64: 2, 2, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %26 = oriel.slice %25 {limits = array<i64: 2, 2, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x2x4xf32>) -> tensor<2x2x2xf32>
  %27 = oriel.reshape %24 : (tensor<2x2xf32>) -> tensor<2x2x1xf32>
  %28 = oriel.mul %27, %26 : (tensor<2x2x1xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %29 = oriel.reduce_sum %28 {dims = array<i64: 1>} : (tensor<2x2x2xf32>) -> tensor<2x2xf32>
  %30 = oriel.add %24, %29 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %31 = oriel.transpose %23 {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %32 = oriel.slice %31 {limits = array<i64: 4, 2>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<2x2xf32>
  %33 = oriel.transpose %30 {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %34 = oriel.concat %33, %32 {dim = 0 : i64} : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<4x2xf32>
  %35 = oriel.transpose %34 {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %36 = oriel.slice %21 {limits = array<i64: 2, 2, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %37 = oriel.reshape %35 : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
  %38 = oriel.slice %21 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %39 = oriel.concat %36, %37, %38 {dim = 1 : i64} : (tensor<2x2x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  %40 = oriel.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  %41 = oriel.gather %39, %40 {dim = 1 : i64} : (tensor<2x4x4xf32>, tensor<i64>) -> tensor<2x4xf32>
  %42 = oriel.slice %41 {limits = array<i64: 2, 3>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x4xf32>) -> tensor<2x3xf32>
  %43 = oriel.slice %39 {limits = array<i64: 2, 3, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x3x4xf32>
  %44 = oriel.slice %43 {limits = array<i64: 2, 3, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x4xf32>) -> tensor<2x3x3xf32>
  %45 = oriel.reshape %42 : (tensor<2x3xf32>) -> tensor<2x3x1xf32>
  %46 = oriel.mul %45, %44 : (tensor<2x3x1xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %47 = oriel.reduce_sum %46 {dims = array<i64: 1>} : (tensor<2x3x3xf32>) -> tensor<2x3xf32>
  %48 = oriel.add %42, %47 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  %49 = oriel.transpose %41 {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %50 = oriel.slice %49 {limits = array<i64: 4, 2>, starts = array<i64: 3, 0>, strides = array<i64: 1, 1>} : (tensor<4x2xf32>) -> tensor<1x2xf32>
  %51 = oriel.transpose %48 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %52 = oriel.concat %51, %50 {dim = 0 : i64} : (tensor<3x2xf32>, tensor<1x2xf32>) -> tensor<4x2xf32>
  %53 = oriel.transpose %52 {permutation = array<i64: 1, 0>} : (tensor<4x2xf32>) -> tensor<2x4xf32>
  %54 = oriel.slice %39 {limits = array<i64: 2, 3, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x3x4xf32>
  %55 = oriel.reshape %53 : (tensor<2x4xf32>) -> tensor<2x1x4xf32>
  %56 = oriel.concat %54, %55 {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %56 : tensor<2x4x4xf32>
}

// -----

// A product in place of a sum of products, with all rows; subtracted; masked by a product with zeros.
// CHECK-LABEL: func.func @subtracted_products
// CHECK-SAME: (%[[A:.*]]: tensor<2x4x4xf32>)
// CHECK: %[[B:.*]] = oriel.mul %[[A]], %{{.*}}
// CHECK: %[[X:.*]] = oriel.triangular_solve %[[B]], %[[B]] {unit_diagonal = true}
// CHECK: return %[[X]]
func.func @subtracted_products(%a: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %0 = oriel.constant {value = dense<[[0.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 0.0], [1.0, 1.0, 1.0, 0.0]]> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %1 = oriel.mul %a, %0 : (tensor<2x4x4xf32>, tensor<4x4xf32>) -> tensor<2x4x4xf32>
  %2 = oriel.slice %1 {limits = array<i64: 2, 2, 4>, starts = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %3 = oriel.matmul %2, %1 : (tensor<2x1x4xf32>, tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %4 = oriel.sub %2, %3 : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %5 = oriel.slice %1 {limits = array<i64: 2, 1, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %6 = oriel.slice %1 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %7 = oriel.concat %5, %4, %6 {dim = 1 : i64} : (tensor<2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x4x4xf32>
  %8 = oriel.slice %7 {limits = array<i64: 2, 3, 4>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %9 = oriel.matmul %8, %7 : (tensor<2x1x4xf32>, tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %10 = oriel.sub %8, %9 : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %11 = oriel.slice %7 {limits = array<i64: 2, 2, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %12 = oriel.slice %7 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %13 = oriel.concat %11, %10, %12 {dim = 1 : i64} : (tensor<2x2x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  %14 = oriel.slice %13 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %15 = oriel.matmul %14, %13 : (tensor<2x1x4xf32>, tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %16 = oriel.sub %14, %15 : (tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x1x4xf32>
  %17 = oriel.slice %13 {limits = array<i64: 2, 3, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x3x4xf32>
  %18 = oriel.concat %17, %16 {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  return %18 : tensor<2x4x4xf32>
}

// -----

// The diagonal is not masked: rows are multiplied with what is not the inverse.
// CHECK-LABEL: func.func @diagonal_counts
// CHECK-NOT: oriel.triangular_solve
func.func @diagonal_counts(%a: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
  %0 = oriel.constant {value = dense<[[true, false, false], [true, true, false], [true, true, true]]> : tensor<3x3xi1>} : () -> tensor<3x3xi1>
  %1 = oriel.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %0, %a, %1 : (tensor<3x3xi1>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
  %3 = oriel.neg %2 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %5 = oriel.gather %3, %4 {dim = 1 : i64} : (tensor<2x3x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  %6 = oriel.slice %5 {limits = array<i64: 2, 1>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %7 = oriel.slice %3 {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %8 = oriel.slice %7 {limits = array<i64: 2, 1, 1>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x1x3xf32>) -> tensor<2x1x1xf32>
  %9 = oriel.reshape %6 : (tensor<2x1xf32>) -> tensor<2x1x1xf32>
  %10 = oriel.mul %9, %8 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %11 = oriel.reduce_sum %10 {dims = array<i64: 1>} : (tensor<2x1x1xf32>) -> tensor<2x1xf32>
  %12 = oriel.add %6, %11 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %13 = oriel.transpose %5 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %14 = oriel.slice %13 {limits = array<i64: 3, 2>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<2x2xf32>
  %15 = oriel.transpose %12 {permutation = array<i64: 1, 0>} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %16 = oriel.concat %15, %14 {dim = 0 : i64} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %17 = oriel.transpose %16 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %18 = oriel.slice %3 {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %19 = oriel.reshape %17 : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %20 = oriel.slice %3 {limits = array<i64: 2, 3, 3>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %21 = oriel.concat %18, %19, %20 {dim = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  %22 = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %23 = oriel.gather %21, %22 {dim = 1 : i64} : (tensor<2x3x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  %24 = oriel.slice %23 {limits = array<i64: 2, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  %25 = oriel.slice %21 {limits = array<i64: 2, 2, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x2x3xf32>
  %26 = oriel.slice %25 {limits = array<i64: 2, 2, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x2x3xf32>) -> tensor<2x2x2xf32>
  %27 = oriel.reshape %24 : (tensor<2x2xf32>) -> tensor<2x2x1xf32>
  %28 = oriel.mul %27, %26 : (tensor<2x2x1xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %29 = oriel.reduce_sum %28 {dims = array<i64: 1>} : (tensor<2x2x2xf32>) -> tensor<2x2xf32>
  %30 = oriel.add %24, %29 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %31 = oriel.transpose %23 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %32 = oriel.slice %31 {limits = array<i64: 3, 2>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<1x2xf32>
  %33 = oriel.transpose %30 {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %34 = oriel.concat %33, %32 {dim = 0 : i64} : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %35 = oriel.transpose %34 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %36 = oriel.slice %21 {limits = array<i64: 2, 2, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x2x3xf32>
  %37 = oriel.reshape %35 : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %38 = oriel.concat %36, %37 {dim = 1 : i64} : (tensor<2x2x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  return %38 : tensor<2x3x3xf32>
}

// -----

// A row is left as it was.
// CHECK-LABEL: func.func @row_left_out
// CHECK-NOT: oriel.triangular_solve
func.func @row_left_out(%a: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
  %0 = oriel.constant {value = dense<[[false, false, false], [true, false, false], [true, true, false]]> : tensor<3x3xi1>} : () -> tensor<3x3xi1>
  %1 = oriel.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %0, %a, %1 : (tensor<3x3xi1>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
  %3 = oriel.neg %2 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %5 = oriel.gather %3, %4 {dim = 1 : i64} : (tensor<2x3x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  %6 = oriel.slice %5 {limits = array<i64: 2, 1>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %7 = oriel.slice %3 {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %8 = oriel.slice %7 {limits = array<i64: 2, 1, 1>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x1x3xf32>) -> tensor<2x1x1xf32>
  %9 = oriel.reshape %6 : (tensor<2x1xf32>) -> tensor<2x1x1xf32>
  %10 = oriel.mul %9, %8 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %11 = oriel.reduce_sum %10 {dims = array<i64: 1>} : (tensor<2x1x1xf32>) -> tensor<2x1xf32>
  %12 = oriel.add %6, %11 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %13 = oriel.transpose %5 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %14 = oriel.slice %13 {limits = array<i64: 3, 2>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<2x2xf32>
  %15 = oriel.transpose %12 {permutation = array<i64: 1, 0>} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %16 = oriel.concat %15, %14 {dim = 0 : i64} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %17 = oriel.transpose %16 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %18 = oriel.slice %3 {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %19 = oriel.reshape %17 : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %20 = oriel.slice %3 {limits = array<i64: 2, 3, 3>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %21 = oriel.concat %18, %19, %20 {dim = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  return %21 : tensor<2x3x3xf32>
}

// -----

// The sum is over the other dimension.
// CHECK-LABEL: func.func @summed_over_columns
// CHECK-NOT: oriel.triangular_solve
func.func @summed_over_columns(%a: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
  %0 = oriel.constant {value = dense<[[false, false, false], [true, false, false], [true, true, false]]> : tensor<3x3xi1>} : () -> tensor<3x3xi1>
  %1 = oriel.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %0, %a, %1 : (tensor<3x3xi1>, tensor<2x3x3xf32>, tensor<f32>) -> tensor<2x3x3xf32>
  %3 = oriel.neg %2 : (tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  %4 = oriel.constant {value = dense<1> : tensor<i64>} : () -> tensor<i64>
  %5 = oriel.gather %3, %4 {dim = 1 : i64} : (tensor<2x3x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  %6 = oriel.slice %5 {limits = array<i64: 2, 1>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x1xf32>
  %7 = oriel.slice %3 {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %8 = oriel.slice %7 {limits = array<i64: 2, 1, 1>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x1x3xf32>) -> tensor<2x1x1xf32>
  %9 = oriel.reshape %6 : (tensor<2x1xf32>) -> tensor<2x1x1xf32>
  %10 = oriel.mul %9, %8 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %11 = oriel.reduce_sum %10 {dims = array<i64: 2>} : (tensor<2x1x1xf32>) -> tensor<2x1xf32>
  %12 = oriel.add %6, %11 : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  %13 = oriel.transpose %5 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %14 = oriel.slice %13 {limits = array<i64: 3, 2>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<2x2xf32>
  %15 = oriel.transpose %12 {permutation = array<i64: 1, 0>} : (tensor<2x1xf32>) -> tensor<1x2xf32>
  %16 = oriel.concat %15, %14 {dim = 0 : i64} : (tensor<1x2xf32>, tensor<2x2xf32>) -> tensor<3x2xf32>
  %17 = oriel.transpose %16 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %18 = oriel.slice %3 {limits = array<i64: 2, 1, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %19 = oriel.reshape %17 : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %20 = oriel.slice %3 {limits = array<i64: 2, 3, 3>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %21 = oriel.concat %18, %19, %20 {dim = 1 : i64} : (tensor<2x1x3xf32>, tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  %22 = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %23 = oriel.gather %21, %22 {dim = 1 : i64} : (tensor<2x3x3xf32>, tensor<i64>) -> tensor<2x3xf32>
  %24 = oriel.slice %23 {limits = array<i64: 2, 2>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x3xf32>) -> tensor<2x2xf32>
  %25 = oriel.slice %21 {limits = array<i64: 2, 2, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x2x3xf32>
  %26 = oriel.slice %25 {limits = array<i64: 2, 2, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x2x3xf32>) -> tensor<2x2x2xf32>
  %27 = oriel.reshape %24 : (tensor<2x2xf32>) -> tensor<2x2x1xf32>
  %28 = oriel.mul %27, %26 : (tensor<2x2x1xf32>, tensor<2x2x2xf32>) -> tensor<2x2x2xf32>
  %29 = oriel.reduce_sum %28 {dims = array<i64: 2>} : (tensor<2x2x2xf32>) -> tensor<2x2xf32>
  %30 = oriel.add %24, %29 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  %31 = oriel.transpose %23 {permutation = array<i64: 1, 0>} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %32 = oriel.slice %31 {limits = array<i64: 3, 2>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<3x2xf32>) -> tensor<1x2xf32>
  %33 = oriel.transpose %30 {permutation = array<i64: 1, 0>} : (tensor<2x2xf32>) -> tensor<2x2xf32>
  %34 = oriel.concat %33, %32 {dim = 0 : i64} : (tensor<2x2xf32>, tensor<1x2xf32>) -> tensor<3x2xf32>
  %35 = oriel.transpose %34 {permutation = array<i64: 1, 0>} : (tensor<3x2xf32>) -> tensor<2x3xf32>
  %36 = oriel.slice %21 {limits = array<i64: 2, 2, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x3xf32>) -> tensor<2x2x3xf32>
  %37 = oriel.reshape %35 : (tensor<2x3xf32>) -> tensor<2x1x3xf32>
  %38 = oriel.concat %36, %37 {dim = 1 : i64} : (tensor<2x2x3xf32>, tensor<2x1x3xf32>) -> tensor<2x3x3xf32>
  return %38 : tensor<2x3x3xf32>
}

// -----

// What is made of the first rows alone has a use of its own: it stays.
// CHECK-LABEL: func.func @part_of_the_loop
// CHECK: oriel.concat
// CHECK: oriel.triangular_solve
// CHECK: oriel.add
// CHECK-NEXT: return
func.func @part_of_the_loop(%a: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %0 = oriel.constant {value = dense<[[false, false, false, false], [true, false, false, false], [true, true, false, false], [true, true, true, false]]> : tensor<4x4xi1>} : () -> tensor<4x4xi1>
  %1 = oriel.constant {value = dense<0.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.select %0, %a, %1 : (tensor<4x4xi1>, tensor<2x4x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
  %3 = oriel.neg %2 : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %4 = oriel.slice %3 {limits = array<i64: 2, 2, 1>, starts = array<i64: 0, 1, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x1xf32>
  %5 = oriel.slice %3 {limits = array<i64: 2, 1, 1>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x1xf32>
  %6 = oriel.matmul %4, %5 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %7 = oriel.add %4, %6 : (tensor<2x1x1xf32>, tensor<2x1x1xf32>) -> tensor<2x1x1xf32>
  %8 = oriel.slice %3 {limits = array<i64: 2, 2, 4>, starts = array<i64: 0, 1, 1>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x3xf32>
  %9 = oriel.concat %7, %8 {dim = 2 : i64} : (tensor<2x1x1xf32>, tensor<2x1x3xf32>) -> tensor<2x1x4xf32>
  %10 = oriel.slice %3 {limits = array<i64: 2, 1, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %11 = oriel.slice %3 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %12 = oriel.concat %10, %9, %11 {dim = 1 : i64} : (tensor<2x1x4xf32>, tensor<2x1x4xf32>, tensor<2x2x4xf32>) -> tensor<2x4x4xf32>
  %13 = oriel.slice %12 {limits = array<i64: 2, 3, 2>, starts = array<i64: 0, 2, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x2xf32>
  %14 = oriel.slice %12 {limits = array<i64: 2, 2, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x2xf32>
  %15 = oriel.matmul %13, %14 : (tensor<2x1x2xf32>, tensor<2x2x2xf32>) -> tensor<2x1x2xf32>
  %16 = oriel.add %13, %15 : (tensor<2x1x2xf32>, tensor<2x1x2xf32>) -> tensor<2x1x2xf32>
  %17 = oriel.slice %12 {limits = array<i64: 2, 3, 4>, starts = array<i64: 0, 2, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x2xf32>
  %18 = oriel.concat %16, %17 {dim = 2 : i64} : (tensor<2x1x2xf32>, tensor<2x1x2xf32>) -> tensor<2x1x4xf32>
  %19 = oriel.slice %12 {limits = array<i64: 2, 2, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x2x4xf32>
  %20 = oriel.slice %12 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x4xf32>
  %21 = oriel.concat %19, %18, %20 {dim = 1 : i64} : (tensor<2x2x4xf32>, tensor<2x1x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  %22 = oriel.slice %21 {limits = array<i64: 2, 4, 3>, starts = array<i64: 0, 3, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x3xf32>
  %23 = oriel.slice %21 {limits = array<i64: 2, 3, 3>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x3x3xf32>
  %24 = oriel.matmul %22, %23 : (tensor<2x1x3xf32>, tensor<2x3x3xf32>) -> tensor<2x1x3xf32>
  %25 = oriel.add %22, %24 : (tensor<2x1x3xf32>, tensor<2x1x3xf32>) -> tensor<2x1x3xf32>
  %26 = oriel.slice %21 {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 3, 3>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x1x1xf32>
  %27 = oriel.concat %25, %26 {dim = 2 : i64} : (tensor<2x1x3xf32>, tensor<2x1x1xf32>) -> tensor<2x1x4xf32>
  %28 = oriel.slice %21 {limits = array<i64: 2, 3, 4>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x4xf32>) -> tensor<2x3x4xf32>
  %29 = oriel.concat %28, %27 {dim = 1 : i64} : (tensor<2x3x4xf32>, tensor<2x1x4xf32>) -> tensor<2x4x4xf32>
  %30 = oriel.add %29, %21 : (tensor<2x4x4xf32>, tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  return %30 : tensor<2x4x4xf32>
}
