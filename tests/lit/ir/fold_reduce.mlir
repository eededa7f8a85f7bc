// Reductions and running sums of constants.
// RUN: oriel-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @integers
func.func @integers() -> (tensor<2xi64>, tensor<3xi64>, tensor<1x3xi64>, tensor<i64>, tensor<2x1xi64>) {
  // CHECK-DAG: %[[SUM:.*]] = oriel.constant {value = dense<[6, 15]> : tensor<2xi64>}
  // CHECK-DAG: %[[MEAN:.*]] = oriel.constant {value = dense<[2, 3, 4]> : tensor<3xi64>}
  // CHECK-DAG: %[[MAX:.*]] = oriel.constant {value = dense<{{\[}}[4, 5, 6]]> : tensor<1x3xi64>}
  // CHECK-DAG: %[[MIN:.*]] = oriel.constant {value = dense<1> : tensor<i64>}
  // CHECK-DAG: %[[PROD:.*]] = oriel.constant {value = dense<{{\[}}[6], [120]]> : tensor<2x1xi64>}
  // CHECK: return %[[SUM]], %[[MEAN]], %[[MAX]], %[[MIN]], %[[PROD]]
  %x = oriel.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.reduce_sum %x {dims = array<i64: 1>} : (tensor<2x3xi64>) -> tensor<2xi64>
  %1 = oriel.reduce_mean %x {dims = array<i64: 0>} : (tensor<2x3xi64>) -> tensor<3xi64>
  %2 = oriel.reduce_max %x {dims = array<i64: 0>, keep_dims = true} : (tensor<2x3xi64>) -> tensor<1x3xi64>
  %3 = oriel.reduce_min %x {dims = array<i64: 0, 1>} : (tensor<2x3xi64>) -> tensor<i64>
  %4 = oriel.reduce_prod %x {dims = array<i64: 1>, keep_dims = true} : (tensor<2x3xi64>) -> tensor<2x1xi64>
  return %0, %1, %2, %3, %4 : tensor<2xi64>, tensor<3xi64>, tensor<1x3xi64>, tensor<i64>, tensor<2x1xi64>
}

// CHECK-LABEL: @floats
func.func @floats() -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  // CHECK-DAG: dense<6.000000e+00>
  // CHECK-DAG: dense<1.500000e+00>
  // CHECK-DAG: dense<-1.000000e+00>
  %x = oriel.constant {value = dense<[0.5, -1.0, 2.5, 4.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %0 = oriel.reduce_sum %x {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %1 = oriel.reduce_mean %x {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  %2 = oriel.reduce_min %x {dims = array<i64: 0>} : (tensor<4xf32>) -> tensor<f32>
  return %0, %1, %2 : tensor<f32>, tensor<f32>, tensor<f32>
}

// A splat counts as often as it stands for an element.
// CHECK-LABEL: @splat
func.func @splat() -> tensor<2xf32> {
  // CHECK-NEXT: dense<2.000000e+01> : tensor<2xf32>
  %x = oriel.constant {value = dense<2.0> : tensor<2x10xf32>} : () -> tensor<2x10xf32>
  %0 = oriel.reduce_sum %x {dims = array<i64: 1>} : (tensor<2x10xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// Nothing sums to 0 and multiplies to 1; it has no mean and no maximum.
// CHECK-LABEL: @of_nothing
func.func @of_nothing() -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) {
  // CHECK-DAG: dense<0> : tensor<2xi64>
  // CHECK-DAG: dense<1> : tensor<2xi64>
  // CHECK-DAG: oriel.reduce_mean
  // CHECK-DAG: oriel.reduce_max
  %x = oriel.constant {value = dense<> : tensor<2x0xi64>} : () -> tensor<2x0xi64>
  %0 = oriel.reduce_sum %x {dims = array<i64: 1>} : (tensor<2x0xi64>) -> tensor<2xi64>
  %1 = oriel.reduce_prod %x {dims = array<i64: 1>} : (tensor<2x0xi64>) -> tensor<2xi64>
  %2 = oriel.reduce_mean %x {dims = array<i64: 1>} : (tensor<2x0xi64>) -> tensor<2xi64>
  %3 = oriel.reduce_max %x {dims = array<i64: 1>} : (tensor<2x0xi64>) -> tensor<2xi64>
  return %0, %1, %2, %3 : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>
}

// CHECK-LABEL: @cumsum
func.func @cumsum() -> (tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>) {
  // CHECK-DAG: %[[PLAIN:.*]] = oriel.constant {value = dense<{{\[}}[1, 3, 6], [4, 9, 15]]>
  // CHECK-DAG: %[[BEFORE:.*]] = oriel.constant {value = dense<{{\[}}[0, 1, 3], [0, 4, 9]]>
  // CHECK-DAG: %[[BACK:.*]] = oriel.constant {value = dense<{{\[}}[6, 5, 3], [15, 11, 6]]>
  // CHECK-DAG: %[[COLUMNS:.*]] = oriel.constant {value = dense<{{\[}}[1, 2, 3], [5, 7, 9]]>
  // CHECK: return %[[PLAIN]], %[[BEFORE]], %[[BACK]], %[[COLUMNS]]
  %x = oriel.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.cumsum %x {dim = 1 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %1 = oriel.cumsum %x {dim = 1 : i64, exclusive = true} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %2 = oriel.cumsum %x {dim = 1 : i64, reverse = true} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  %3 = oriel.cumsum %x {dim = 0 : i64} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  return %0, %1, %2, %3 : tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>, tensor<2x3xi64>
}

// Equal elements by ascending index.
// CHECK-LABEL: @topk
func.func @topk() -> (tensor<2x2xi64>, tensor<1x3xi64>) {
  // CHECK-DAG: %[[LARGEST:.*]] = oriel.constant {value = dense<{{\[}}[0, 2], [2, 0]]>
  // CHECK-DAG: %[[SMALLEST:.*]] = oriel.constant {value = dense<0> : tensor<1x3xi64>}
  // CHECK: return %[[LARGEST]], %[[SMALLEST]]
  %x = oriel.constant {value = dense<[[3.0, 1.0, 3.0], [4.0, 2.0, 5.0]]> : tensor<2x3xf32>} : () -> tensor<2x3xf32>
  %0 = oriel.topk %x {k = 2 : i64, dim = 1 : i64} : (tensor<2x3xf32>) -> tensor<2x2xi64>
  %1 = oriel.topk %x {k = 1 : i64, dim = 0 : i64, largest = false} : (tensor<2x3xf32>) -> tensor<1x3xi64>
  return %0, %1 : tensor<2x2xi64>, tensor<1x3xi64>
}
