// Ops on bf16: statistics and losses are f32, sums may be, tables too.
// RUN: oriel-opt %s | oriel-opt | FileCheck %s

// CHECK-LABEL: @norms
func.func @norms(%x: tensor<2x8x64xbf16>, %w: tensor<64xbf16>) {
  // CHECK: oriel.layer_norm {{.*}} -> (tensor<2x8x64xbf16>, tensor<2x8xf32>, tensor<2x8xf32>)
  %0:3 = oriel.layer_norm %x, %w, %w {epsilon = 1.0e-5 : f64} : (tensor<2x8x64xbf16>, tensor<64xbf16>, tensor<64xbf16>) -> (tensor<2x8x64xbf16>, tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: oriel.layer_norm_grad {{.*}} -> (tensor<2x8x64xbf16>, tensor<64xbf16>, tensor<64xbf16>)
  %1:3 = oriel.layer_norm_grad %x, %x, %w, %0#1, %0#2 : (tensor<2x8x64xbf16>, tensor<2x8x64xbf16>, tensor<64xbf16>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xbf16>, tensor<64xbf16>, tensor<64xbf16>)
  // CHECK: oriel.layer_norm_grad {{.*}} -> (tensor<2x8x64xbf16>, tensor<64xf32>, tensor<64xf32>)
  %2:3 = oriel.layer_norm_grad %x, %x, %w, %0#1, %0#2 : (tensor<2x8x64xbf16>, tensor<2x8x64xbf16>, tensor<64xbf16>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xbf16>, tensor<64xf32>, tensor<64xf32>)
  // CHECK: oriel.rms_norm {{.*}} -> (tensor<2x8x64xbf16>, tensor<2x8xf32>)
  %3:2 = oriel.rms_norm %x, %w {epsilon = 1.0e-6 : f64} : (tensor<2x8x64xbf16>, tensor<64xbf16>) -> (tensor<2x8x64xbf16>, tensor<2x8xf32>)
  // CHECK: oriel.rms_norm_grad {{.*}} -> (tensor<2x8x64xbf16>, tensor<64xf32>)
  %4:2 = oriel.rms_norm_grad %x, %x, %w, %3#1 : (tensor<2x8x64xbf16>, tensor<2x8x64xbf16>, tensor<64xbf16>, tensor<2x8xf32>) -> (tensor<2x8x64xbf16>, tensor<64xf32>)
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<2x4x8x16xbf16>, %k: tensor<2x2x8x16xbf16>, %m: tensor<1x1x8x8xf32>, %t: tensor<1x1x8x16xf32>) {
  // CHECK: oriel.attention {{.*}} -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
  %o, %lse = oriel.attention %q, %k, %k, %m {scale = 0.25 : f64} : (tensor<2x4x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<1x1x8x8xf32>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
  // CHECK: oriel.attention_grad {{.*}} -> (tensor<2x4x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<2x2x8x16xbf16>)
  %1:3 = oriel.attention_grad %o, %q, %k, %k, %o, %lse, %m {scale = 0.25 : f64} : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>, tensor<1x1x8x8xf32>) -> (tensor<2x4x8x16xbf16>, tensor<2x2x8x16xbf16>, tensor<2x2x8x16xbf16>)
  // CHECK: oriel.rope {{.*}}tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xbf16>
  %2 = oriel.rope %q, %t, %t : (tensor<2x4x8x16xbf16>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xbf16>
  return
}

// CHECK-LABEL: @loss
func.func @loss(%x: tensor<2x8x32xbf16>, %l: tensor<2x8xi64>) {
  // CHECK: oriel.cross_entropy {{.*}} -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  %sum, %count, %lse = oriel.cross_entropy %x, %l : (tensor<2x8x32xbf16>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  // CHECK: oriel.cross_entropy_grad {{.*}} -> tensor<2x8x32xbf16>
  %0 = oriel.cross_entropy_grad %sum, %x, %l, %lse : (tensor<f32>, tensor<2x8x32xbf16>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x32xbf16>
  // CHECK: oriel.token_losses {{.*}} -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %losses, %rows = oriel.token_losses %x, %l : (tensor<2x8x32xbf16>, tensor<2x8xi64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: oriel.sum_exp {{.*}} -> tensor<2x8xf32>
  %1 = oriel.sum_exp %x, %lse : (tensor<2x8x32xbf16>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// CHECK-LABEL: @sums
func.func @sums(%x: tensor<2x4x8xbf16>, %g: tensor<2x4x16xbf16>, %i: tensor<2x4xi64>, %image: tensor<2x3x8x8xbf16>, %patches: tensor<2x16x2x2xbf16>) {
  // CHECK: oriel.linear_weight_grad {{.*}} -> tensor<16x8xf32>
  %0 = oriel.linear_weight_grad %x, %g {transpose_weight = true} : (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>) -> tensor<16x8xf32>
  // CHECK: oriel.linear_weight_grad {{.*}} -> tensor<16x8xbf16>
  %1 = oriel.linear_weight_grad %x, %g {transpose_weight = true} : (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>) -> tensor<16x8xbf16>
  // CHECK: oriel.expert_linear_weight_grad {{.*}} -> tensor<3x8x16xf32>
  %e = oriel.expert_linear_weight_grad %x, %g, %i : (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<2x4xi64>) -> tensor<3x8x16xf32>
  // CHECK: oriel.conv_weight_grad {{.*}} -> tensor<16x3x4x4xf32>
  %2 = oriel.conv_weight_grad %patches, %image {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x16x2x2xbf16>, tensor<2x3x8x8xbf16>) -> tensor<16x3x4x4xf32>
  // CHECK: oriel.reduce_sum {{.*}} -> tensor<16xf32>
  %3 = oriel.reduce_sum %g {dims = array<i64: 0, 1>} : (tensor<2x4x16xbf16>) -> tensor<16xf32>
  // CHECK: oriel.scatter_add {{.*}} -> tensor<32x8xf32>
  %4 = oriel.scatter_add %i, %x {dim = 0 : i64} : (tensor<2x4xi64>, tensor<2x4x8xbf16>) -> tensor<32x8xf32>
  return
}
