// What PyTorch code that spells attention out leaves behind.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention,canonicalize))" --split-input-file | FileCheck %s

// The key's transpose is one with that of its heads.
// CHECK-LABEL: func.func @transposed_with_heads
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x16xf32>, %[[K:.*]]: tensor<2x3x4x16xf32>, %[[V:.*]]: tensor<2x4x3x16xf32>)
// CHECK-NEXT: %[[HEADS:.*]] = oriel.transpose %[[K]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-NEXT: %[[Y:[^,]*]], %{{.*}} = oriel.attention %[[Q]], %[[HEADS]], %[[V]] {scale = 5.000000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @transposed_with_heads(%q: tensor<2x4x3x16xf32>, %k: tensor<2x3x4x16xf32>, %v: tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x3x4x16xf32>) -> tensor<2x4x16x3xf32>
  %1 = oriel.matmul %q, %0 : (tensor<2x4x3x16xf32>, tensor<2x4x16x3xf32>) -> tensor<2x4x3x3xf32>
  %2 = oriel.mul %1, %half : (tensor<2x4x3x3xf32>, tensor<f32>) -> tensor<2x4x3x3xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %4 = oriel.matmul %3, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32>
  return %4 : tensor<2x4x3x16xf32>
}

// -----

// masked_fill with a known mask.
// CHECK-LABEL: func.func @filled_causal
// CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {causal = true
func.func @filled_causal(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-1.0e+9> : tensor<f32>} : () -> tensor<f32>
  %hide = oriel.constant {value = dense<[[false, true], [false, false]]> : tensor<2x2xi1>} : () -> tensor<2x2xi1>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %hide, %low, %0 : (tensor<2x2xi1>, tensor<f32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// With -inf it is a boolean mask.
// CHECK-LABEL: func.func @filled_unknown
// CHECK-SAME: %[[HIDE:[a-z0-9]*]]: tensor<1x1x2x2xi1>
// CHECK: %[[KEEP:.*]] = oriel.not %[[HIDE]]
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[KEEP]] {scale
func.func @filled_unknown(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %hide: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %hide, %low, %0 : (tensor<1x1x2x2xi1>, tensor<f32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// Beside -10000 a score may count.
// CHECK-LABEL: func.func @not_large
// CHECK-NOT: oriel.attention
// CHECK: return
func.func @not_large(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-1.0e+4> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// Heads merged with the batch, as a batched product of matrices has them.
// CHECK-LABEL: func.func @merged_heads
// CHECK-SAME: (%[[Q:.*]]: tensor<8x3x16xf32>, %[[K:.*]]: tensor<8x5x16xf32>, %[[V:.*]]: tensor<8x5x4xf32>, %[[M:.*]]: tensor<8x1x5xf32>)
// CHECK-DAG: %[[Q4:.*]] = oriel.reshape %[[Q]] : (tensor<8x3x16xf32>) -> tensor<8x1x3x16xf32>
// CHECK-DAG: %[[K4:.*]] = oriel.reshape %[[K]] : (tensor<8x5x16xf32>) -> tensor<8x1x5x16xf32>
// CHECK-DAG: %[[V4:.*]] = oriel.reshape %[[V]] : (tensor<8x5x4xf32>) -> tensor<8x1x5x4xf32>
// CHECK-DAG: %[[M4:.*]] = oriel.reshape %[[M]] : (tensor<8x1x5xf32>) -> tensor<8x1x1x5xf32>
// CHECK: %[[Y4:[^,]*]], %{{.*}} = oriel.attention %[[Q4]], %[[K4]], %[[V4]], %[[M4]] {scale = 5.000000e-01 : f64}
// CHECK-NEXT: %[[Y:.*]] = oriel.reshape %[[Y4]] : (tensor<8x1x3x4xf32>) -> tensor<8x3x4xf32>
// CHECK-NEXT: return %[[Y]]
func.func @merged_heads(%q: tensor<8x3x16xf32>, %k: tensor<8x5x16xf32>, %v: tensor<8x5x4xf32>, %m: tensor<8x1x5xf32>) -> tensor<8x3x4xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<8x5x16xf32>) -> tensor<8x16x5xf32>
  %1 = oriel.matmul %q, %0 : (tensor<8x3x16xf32>, tensor<8x16x5xf32>) -> tensor<8x3x5xf32>
  %2 = oriel.mul %1, %half : (tensor<8x3x5xf32>, tensor<f32>) -> tensor<8x3x5xf32>
  %3 = oriel.add %2, %m : (tensor<8x3x5xf32>, tensor<8x1x5xf32>) -> tensor<8x3x5xf32>
  %4 = oriel.softmax %3 {dim = 2 : i64} : (tensor<8x3x5xf32>) -> tensor<8x3x5xf32>
  %5 = oriel.matmul %4, %v : (tensor<8x3x5xf32>, tensor<8x5x4xf32>) -> tensor<8x3x4xf32>
  return %5 : tensor<8x3x4xf32>
}
