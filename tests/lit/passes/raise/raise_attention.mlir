// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention,canonicalize))" --split-input-file | FileCheck %s

// Scales on both operands are multiplied; the key was transposed with merged heads.
// CHECK-LABEL: func.func @scaled_operands
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x3x16xf32>, %[[K:.*]]: tensor<2x4x3x16xf32>, %[[V:.*]]: tensor<2x4x3x16xf32>)
// CHECK-NEXT: %[[Y:[^,]*]], %{{.*}} = oriel.attention %[[Q]], %[[K]], %[[V]] {scale = 2.500000e-01 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @scaled_operands(%q: tensor<2x4x3x16xf32>, %k: tensor<2x4x3x16xf32>, %v: tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reshape %k : (tensor<2x4x3x16xf32>) -> tensor<8x3x16xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<8x3x16xf32>) -> tensor<8x16x3xf32>
  %2 = oriel.reshape %1 : (tensor<8x16x3xf32>) -> tensor<2x4x16x3xf32>
  %3 = oriel.mul %q, %half : (tensor<2x4x3x16xf32>, tensor<f32>) -> tensor<2x4x3x16xf32>
  %4 = oriel.mul %2, %half : (tensor<2x4x16x3xf32>, tensor<f32>) -> tensor<2x4x16x3xf32>
  %5 = oriel.matmul %3, %4 : (tensor<2x4x3x16xf32>, tensor<2x4x16x3xf32>) -> tensor<2x4x3x3xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<2x4x3x3xf32>) -> tensor<2x4x3x3xf32>
  %7 = oriel.matmul %6, %v : (tensor<2x4x3x3xf32>, tensor<2x4x3x16xf32>) -> tensor<2x4x3x16xf32>
  return %7 : tensor<2x4x3x16xf32>
}

// -----

// A known triangular mask is causal, repeated heads are grouped queries, the NaN guard goes.
// CHECK-LABEL: func.func @causal_grouped
// CHECK-SAME: (%[[Q:.*]]: tensor<1x4x2x8xf32>, %[[K:.*]]: tensor<1x2x2x8xf32>, %[[V:.*]]: tensor<1x2x2x8xf32>)
// CHECK-NEXT: %[[Y:[^,]*]], %{{.*}} = oriel.attention %[[Q]], %[[K]], %[[V]] {causal = true, scale = 1.000000e+00 : f64}
// CHECK-NEXT: return %[[Y]]
func.func @causal_grouped(%q: tensor<1x4x2x8xf32>, %k: tensor<1x2x2x8xf32>, %v: tensor<1x2x2x8xf32>) -> tensor<1x4x2x8xf32> {
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %keep = oriel.constant {value = dense<[[[[true, false], [true, true]]]]> : tensor<1x1x2x2xi1>} : () -> tensor<1x1x2x2xi1>
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %k1 = oriel.reshape %k : (tensor<1x2x2x8xf32>) -> tensor<1x2x1x2x8xf32>
  %k2 = oriel.broadcast %k1 : (tensor<1x2x1x2x8xf32>) -> tensor<1x2x2x2x8xf32>
  %k3 = oriel.reshape %k2 : (tensor<1x2x2x2x8xf32>) -> tensor<1x4x2x8xf32>
  %v1 = oriel.reshape %v : (tensor<1x2x2x8xf32>) -> tensor<1x2x1x2x8xf32>
  %v2 = oriel.broadcast %v1 : (tensor<1x2x1x2x8xf32>) -> tensor<1x2x2x2x8xf32>
  %v3 = oriel.reshape %v2 : (tensor<1x2x2x2x8xf32>) -> tensor<1x4x2x8xf32>
  %0 = oriel.matmul %q, %k3 {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %m = oriel.select %keep, %zero, %low : (tensor<1x1x2x2xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %1 = oriel.add %0, %m : (tensor<1x4x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.equal %2, %2 : (tensor<1x4x2x2xf32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xi1>
  %4 = oriel.not %3 : (tensor<1x4x2x2xi1>) -> tensor<1x4x2x2xi1>
  %5 = oriel.select %4, %zero, %2 : (tensor<1x4x2x2xi1>, tensor<f32>, tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %6 = oriel.matmul %5, %v3 : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %6 : tensor<1x4x2x8xf32>
}

// -----

// A mask that is not known is added; with finite large numbers it can't be a boolean mask, since
// a row that sees nothing would differ.
// CHECK-LABEL: func.func @unknown_mask
// CHECK-SAME: %[[KEEP:[a-z0-9]*]]: tensor<1x1x2x2xi1>
// CHECK: %[[M:.*]] = oriel.select %[[KEEP]]
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[M]] {scale
func.func @unknown_mask(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %m = oriel.select %keep, %zero, %low : (tensor<1x1x2x2xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.add %0, %m : (tensor<1x4x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// With -inf it is one.
// CHECK-LABEL: func.func @boolean_mask
// CHECK-SAME: %[[KEEP:[a-z0-9]*]]: tensor<1x1x2x2xi1>
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %[[KEEP]] {scale
func.func @boolean_mask(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %v: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %m = oriel.select %keep, %zero, %low : (tensor<1x1x2x2xi1>, tensor<f32>, tensor<f32>) -> tensor<1x1x2x2xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.add %0, %m : (tensor<1x4x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// A learned bias on the scores needs a cotangent, which attention's mask has not: nothing changes.
// CHECK-LABEL: func.func @learned_bias
// CHECK-NOT: oriel.attention
func.func @learned_bias(%q: tensor<1x4x2x8xf32> {oriel.kind = "input", oriel.ref = "q"},
                        %bias: tensor<4x2x2xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) -> tensor<1x4x2x8xf32> {
  %0 = oriel.matmul %q, %q {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %m = oriel.exp %bias : (tensor<4x2x2xf32>) -> tensor<4x2x2xf32>
  %1 = oriel.add %0, %m : (tensor<1x4x2x2xf32>, tensor<4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %q : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// What is no attention in the end, here for its scaled value, is left alone: nothing is made of
// its mask on the way.
// CHECK-LABEL: func.func @masked_scores_scaled_value
// CHECK-NOT: oriel.attention
// CHECK: oriel.select
// CHECK-NOT: oriel.select
// CHECK: return
func.func @masked_scores_scaled_value(%q: tensor<1x4x2x8xf32>, %k: tensor<1x4x2x8xf32>, %keep: tensor<1x1x2x2xi1>) -> tensor<1x4x2x8xf32> {
  %low = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %v = oriel.mul %k, %two : (tensor<1x4x2x8xf32>, tensor<f32>) -> tensor<1x4x2x8xf32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x4x2x8xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x2xf32>
  %1 = oriel.select %keep, %0, %low : (tensor<1x1x2x2xi1>, tensor<1x4x2x2xf32>, tensor<f32>) -> tensor<1x4x2x2xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<1x4x2x2xf32>) -> tensor<1x4x2x2xf32>
  %3 = oriel.matmul %2, %v : (tensor<1x4x2x2xf32>, tensor<1x4x2x8xf32>) -> tensor<1x4x2x8xf32>
  return %3 : tensor<1x4x2x8xf32>
}

// -----

// CHECK-LABEL: func.func @no_heads
// CHECK-NOT: oriel.attention
// CHECK: return
func.func @no_heads(%q: tensor<1x0x2x8xf32>) -> tensor<1x0x2x8xf32> {
  %0 = oriel.matmul %q, %q {transpose_rhs = true} : (tensor<1x0x2x8xf32>, tensor<1x0x2x8xf32>) -> tensor<1x0x2x2xf32>
  %1 = oriel.softmax %0 {dim = 3 : i64} : (tensor<1x0x2x2xf32>) -> tensor<1x0x2x2xf32>
  %2 = oriel.matmul %1, %q : (tensor<1x0x2x2xf32>, tensor<1x0x2x8xf32>) -> tensor<1x0x2x8xf32>
  return %2 : tensor<1x0x2x8xf32>
}
