// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention),canonicalize)" --split-input-file | FileCheck %s

// A bias for each row of an image of keys, and one for each column, of relative positions that are
// learned: as columns of queries, times columns of keys that are 1 where the key is of that row.
// CHECK-LABEL: func.func @rows_and_columns
// CHECK-DAG: %[[FOUR:.*]] = oriel.constant {{.*}}dense<4.000000e+00> : tensor<f32>
// CHECK-DAG: %[[ROWS:.*]] = oriel.mul %{{.*}}, %[[FOUR]] : (tensor<6x4x5x4x1xf32>, tensor<f32>)
// CHECK-DAG: %[[ROW:.*]] = oriel.reshape %[[ROWS]] : {{.*}} -> tensor<2x3x20x4xf32>
// CHECK-DAG: %[[COLUMNS:.*]] = oriel.mul %{{.*}}, %[[FOUR]] : (tensor<6x4x5x1x5xf32>, tensor<f32>)
// CHECK-DAG: %[[COLUMN:.*]] = oriel.reshape %[[COLUMNS]] : {{.*}} -> tensor<2x3x20x5xf32>
// CHECK-DAG: %[[Q:.*]] = oriel.concat %arg0, %[[ROW]], %[[COLUMN]], %[[ZEROS:.*]] {dim = 3 : i64}
// CHECK-DAG: %[[K:.*]] = oriel.concat %arg1, %{{.*}}, %{{.*}} {dim = 3 : i64} : (tensor<2x3x20x8xf32>, tensor<2x3x20x9xf32>, tensor<2x3x20x7xf32>)
// CHECK: oriel.attention %[[Q]], %[[K]], %arg2 {scale = 2.500000e-01 : f64}
func.func @rows_and_columns(%q: tensor<2x3x20x8xf32>, %k: tensor<2x3x20x8xf32>, %v: tensor<2x3x20x8xf32>, %rows: tensor<4x8x4xf32> {oriel.kind = "parameter", oriel.ref = "rows"}, %columns: tensor<8x5xf32> {oriel.kind = "parameter", oriel.ref = "columns"}) -> tensor<2x3x20x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x3x20x8xf32>) -> tensor<6x20x8xf32>
  %1 = oriel.reshape %k : (tensor<2x3x20x8xf32>) -> tensor<6x20x8xf32>
  %2 = oriel.reshape %v : (tensor<2x3x20x8xf32>) -> tensor<6x20x8xf32>
  %3 = oriel.constant  {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %4 = oriel.mul %0, %3 : (tensor<6x20x8xf32>, tensor<f32>) -> tensor<6x20x8xf32>
  %5 = oriel.matmul %4, %1 {transpose_rhs = true} : (tensor<6x20x8xf32>, tensor<6x20x8xf32>) -> tensor<6x20x20xf32>
  %6 = oriel.reshape %q : (tensor<2x3x20x8xf32>) -> tensor<6x4x5x8xf32>
  %7 = oriel.transpose %6 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<6x4x5x8xf32>) -> tensor<4x6x5x8xf32>
  %8 = oriel.reshape %7 : (tensor<4x6x5x8xf32>) -> tensor<4x30x8xf32>
  %9 = oriel.matmul %8, %rows : (tensor<4x30x8xf32>, tensor<4x8x4xf32>) -> tensor<4x30x4xf32>
  %10 = oriel.reshape %9 : (tensor<4x30x4xf32>) -> tensor<4x6x5x4xf32>
  %11 = oriel.transpose %10 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<4x6x5x4xf32>) -> tensor<6x4x5x4xf32>
  %12 = oriel.reshape %11 : (tensor<6x4x5x4xf32>) -> tensor<6x4x5x4x1xf32>
  %13 = oriel.linear %6, %columns : (tensor<6x4x5x8xf32>, tensor<8x5xf32>) -> tensor<6x4x5x5xf32>
  %14 = oriel.reshape %13 : (tensor<6x4x5x5xf32>) -> tensor<6x4x5x1x5xf32>
  %15 = oriel.add %12, %14 : (tensor<6x4x5x4x1xf32>, tensor<6x4x5x1x5xf32>) -> tensor<6x4x5x4x5xf32>
  %16 = oriel.reshape %15 : (tensor<6x4x5x4x5xf32>) -> tensor<6x20x20xf32>
  %17 = oriel.add %5, %16 : (tensor<6x20x20xf32>, tensor<6x20x20xf32>) -> tensor<6x20x20xf32>
  %18 = oriel.softmax %17 {dim = 2 : i64} : (tensor<6x20x20xf32>) -> tensor<6x20x20xf32>
  %19 = oriel.matmul %18, %2 : (tensor<6x20x20xf32>, tensor<6x20x8xf32>) -> tensor<6x20x8xf32>
  %20 = oriel.reshape %19 : (tensor<6x20x8xf32>) -> tensor<2x3x20x8xf32>
  return %20 : tensor<2x3x20x8xf32>
}

// -----

// CHECK-LABEL: func.func @of_an_attention
// CHECK-DAG: %[[FOUR:.*]] = oriel.constant {{.*}}dense<4.000000e+00> : tensor<f32>
// CHECK-DAG: %[[ROWS:.*]] = oriel.mul %{{.*}}, %[[FOUR]] : (tensor<6x4x5x4x1xf32>, tensor<f32>)
// CHECK-DAG: %[[ROW:.*]] = oriel.reshape %[[ROWS]] : {{.*}} -> tensor<2x3x20x4xf32>
// CHECK-DAG: %[[COLUMNS:.*]] = oriel.mul %{{.*}}, %[[FOUR]] : (tensor<6x4x5x1x5xf32>, tensor<f32>)
// CHECK-DAG: %[[COLUMN:.*]] = oriel.reshape %[[COLUMNS]] : {{.*}} -> tensor<2x3x20x5xf32>
// CHECK-DAG: %[[Q:.*]] = oriel.concat %arg0, %[[ROW]], %[[COLUMN]], %[[ZEROS:.*]] {dim = 3 : i64}
// CHECK-DAG: %[[K:.*]] = oriel.concat %arg1, %{{.*}}, %{{.*}} {dim = 3 : i64} : (tensor<2x3x20x8xf32>, tensor<2x3x20x9xf32>, tensor<2x3x20x7xf32>)
// CHECK: oriel.attention %[[Q]], %[[K]], %arg2 {scale = 2.500000e-01 : f64}
func.func @of_an_attention(%q: tensor<2x3x20x8xf32>, %k: tensor<2x3x20x8xf32>, %v: tensor<2x3x20x8xf32>, %rows: tensor<4x8x4xf32> {oriel.kind = "parameter", oriel.ref = "rows"}, %columns: tensor<8x5xf32> {oriel.kind = "parameter", oriel.ref = "columns"}) -> tensor<2x3x20x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x3x20x8xf32>) -> tensor<6x4x5x8xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<6x4x5x8xf32>) -> tensor<4x6x5x8xf32>
  %2 = oriel.reshape %1 : (tensor<4x6x5x8xf32>) -> tensor<4x30x8xf32>
  %3 = oriel.matmul %2, %rows : (tensor<4x30x8xf32>, tensor<4x8x4xf32>) -> tensor<4x30x4xf32>
  %4 = oriel.reshape %3 : (tensor<4x30x4xf32>) -> tensor<4x6x5x4xf32>
  %5 = oriel.transpose %4 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<4x6x5x4xf32>) -> tensor<6x4x5x4xf32>
  %6 = oriel.reshape %5 : (tensor<6x4x5x4xf32>) -> tensor<6x4x5x4x1xf32>
  %7 = oriel.linear %0, %columns : (tensor<6x4x5x8xf32>, tensor<8x5xf32>) -> tensor<6x4x5x5xf32>
  %8 = oriel.reshape %7 : (tensor<6x4x5x5xf32>) -> tensor<6x4x5x1x5xf32>
  %9 = oriel.add %6, %8 : (tensor<6x4x5x4x1xf32>, tensor<6x4x5x1x5xf32>) -> tensor<6x4x5x4x5xf32>
  %10 = oriel.reshape %9 : (tensor<6x4x5x4x5xf32>) -> tensor<2x3x20x20xf32>
  %o, %lse = oriel.attention %q, %k, %v, %10 {scale = 0.25 : f64} : (tensor<2x3x20x8xf32>, tensor<2x3x20x8xf32>, tensor<2x3x20x8xf32>, tensor<2x3x20x20xf32>) -> (tensor<2x3x20x8xf32>, tensor<2x3x20xf32>)
  return %o : tensor<2x3x20x8xf32>
}

// -----

// As many biases as keys are a mask.
// CHECK-LABEL: func.func @a_bias_for_each_key
// CHECK: oriel.attention %arg0, %arg1, %arg2, %{{.*}} {scale
func.func @a_bias_for_each_key(%q: tensor<2x3x20x8xf32>, %k: tensor<2x3x20x8xf32>, %v: tensor<2x3x20x8xf32>, %all: tensor<8x20xf32> {oriel.kind = "parameter", oriel.ref = "all"}) -> tensor<2x3x20x8xf32> {
  %0 = oriel.linear %q, %all : (tensor<2x3x20x8xf32>, tensor<8x20xf32>) -> tensor<2x3x20x20xf32>
  %o, %lse = oriel.attention %q, %k, %v, %0 {scale = 0.25 : f64} : (tensor<2x3x20x8xf32>, tensor<2x3x20x8xf32>, tensor<2x3x20x8xf32>, tensor<2x3x20x20xf32>) -> (tensor<2x3x20x8xf32>, tensor<2x3x20xf32>)
  return %o : tensor<2x3x20x8xf32>
}

// -----

// The same, added to scores whose keys are in rows and columns.
// CHECK-LABEL: func.func @added_to_rows_and_columns
// CHECK-NOT: oriel.softmax
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %arg2 {scale = 2.500000e-01 : f64} : (tensor<2x3x20x24xf32>, tensor<2x3x20x24xf32>, tensor<2x3x20x8xf32>)
func.func @added_to_rows_and_columns(%q: tensor<2x3x20x8xf32>, %k: tensor<2x3x20x8xf32>, %v: tensor<2x3x20x8xf32>, %rows: tensor<4x8x4xf32> {oriel.kind = "parameter", oriel.ref = "rows"}, %columns: tensor<8x5xf32> {oriel.kind = "parameter", oriel.ref = "columns"}) -> tensor<2x3x20x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x3x20x8xf32>) -> tensor<6x20x8xf32>
  %1 = oriel.reshape %k : (tensor<2x3x20x8xf32>) -> tensor<6x20x8xf32>
  %2 = oriel.reshape %v : (tensor<2x3x20x8xf32>) -> tensor<6x20x8xf32>
  %3 = oriel.constant  {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %4 = oriel.mul %0, %3 : (tensor<6x20x8xf32>, tensor<f32>) -> tensor<6x20x8xf32>
  %5 = oriel.matmul %4, %1 {transpose_rhs = true} : (tensor<6x20x8xf32>, tensor<6x20x8xf32>) -> tensor<6x20x20xf32>
  %6 = oriel.reshape %q : (tensor<2x3x20x8xf32>) -> tensor<6x4x5x8xf32>
  %7 = oriel.transpose %6 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<6x4x5x8xf32>) -> tensor<4x6x5x8xf32>
  %8 = oriel.reshape %7 : (tensor<4x6x5x8xf32>) -> tensor<4x30x8xf32>
  %9 = oriel.matmul %8, %rows : (tensor<4x30x8xf32>, tensor<4x8x4xf32>) -> tensor<4x30x4xf32>
  %10 = oriel.reshape %9 : (tensor<4x30x4xf32>) -> tensor<4x6x5x4xf32>
  %11 = oriel.transpose %10 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<4x6x5x4xf32>) -> tensor<6x4x5x4xf32>
  %12 = oriel.reshape %11 : (tensor<6x4x5x4xf32>) -> tensor<6x4x5x4x1xf32>
  %13 = oriel.linear %6, %columns : (tensor<6x4x5x8xf32>, tensor<8x5xf32>) -> tensor<6x4x5x5xf32>
  %14 = oriel.reshape %13 : (tensor<6x4x5x5xf32>) -> tensor<6x4x5x1x5xf32>
  %split = oriel.reshape %5 : (tensor<6x20x20xf32>) -> tensor<6x4x5x4x5xf32>
  %with_rows = oriel.add %split, %12 : (tensor<6x4x5x4x5xf32>, tensor<6x4x5x4x1xf32>) -> tensor<6x4x5x4x5xf32>
  %15 = oriel.add %with_rows, %14 : (tensor<6x4x5x4x5xf32>, tensor<6x4x5x1x5xf32>) -> tensor<6x4x5x4x5xf32>
  %16 = oriel.reshape %15 : (tensor<6x4x5x4x5xf32>) -> tensor<6x20x20xf32>
  %18 = oriel.softmax %16 {dim = 2 : i64} : (tensor<6x20x20xf32>) -> tensor<6x20x20xf32>
  %19 = oriel.matmul %18, %2 : (tensor<6x20x20xf32>, tensor<6x20x8xf32>) -> tensor<6x20x8xf32>
  %20 = oriel.reshape %19 : (tensor<6x20x8xf32>) -> tensor<2x3x20x8xf32>
  return %20 : tensor<2x3x20x8xf32>
}

// -----

// A row that is hidden is no product, whose zeros would leave nothing of it.
// CHECK-LABEL: func.func @a_hidden_row
// CHECK: oriel.attention %arg0, %arg1, %arg2, %{{.*}} {scale
func.func @a_hidden_row(%q: tensor<2x3x20x8xf32>, %k: tensor<2x3x20x8xf32>, %v: tensor<2x3x20x8xf32>, %seen: tensor<4x1xi1>, %rows: tensor<4x1xf32> {oriel.kind = "parameter", oriel.ref = "rows"}, %all: tensor<2x3x20x1x1xf32>) -> tensor<2x3x20x8xf32> {
  %low = oriel.constant {value = dense<-3.4e38> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.select %seen, %rows, %low : (tensor<4x1xi1>, tensor<4x1xf32>, tensor<f32>) -> tensor<4x1xf32>
  %1 = oriel.add %all, %0 : (tensor<2x3x20x1x1xf32>, tensor<4x1xf32>) -> tensor<2x3x20x4x1xf32>
  %2 = oriel.broadcast %1 : (tensor<2x3x20x4x1xf32>) -> tensor<2x3x20x4x5xf32>
  %3 = oriel.reshape %2 : (tensor<2x3x20x4x5xf32>) -> tensor<2x3x20x20xf32>
  %o, %lse = oriel.attention %q, %k, %v, %3 {scale = 0.25 : f64} : (tensor<2x3x20x8xf32>, tensor<2x3x20x8xf32>, tensor<2x3x20x8xf32>, tensor<2x3x20x20xf32>) -> (tensor<2x3x20x8xf32>, tensor<2x3x20xf32>)
  return %o : tensor<2x3x20x8xf32>
}
