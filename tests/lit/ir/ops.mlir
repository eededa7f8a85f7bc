// Each op survives printing and parsing; default attributes are not printed.
// RUN: oriel-opt %s | oriel-opt | FileCheck %s

// CHECK: oriel.parameter @p0 {onnx_name = "lm_head.weight", trainable = true, type = tensor<128x64xf32>}
oriel.parameter @p0 {onnx_name = "lm_head.weight", type = tensor<128x64xf32>, trainable = true}

// CHECK-LABEL: @unary
func.func @unary(%x: tensor<4x8xf32>, %b: tensor<4xi1>) {
  // CHECK: oriel.neg %{{.*}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %0 = oriel.neg %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.abs
  %1 = oriel.abs %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.exp
  %2 = oriel.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.log
  %3 = oriel.log %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.sqrt
  %4 = oriel.sqrt %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.rsqrt
  %5 = oriel.rsqrt %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.reciprocal
  %6 = oriel.reciprocal %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.sin
  %7 = oriel.sin %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.cos
  %8 = oriel.cos %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.tanh
  %9 = oriel.tanh %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.sigmoid
  %10 = oriel.sigmoid %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.erf
  %11 = oriel.erf %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.relu
  %12 = oriel.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.sign
  %13 = oriel.sign %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.floor
  %14 = oriel.floor %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.ceil
  %15 = oriel.ceil %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.not %{{.*}} {origin = 7 : i64} : (tensor<4xi1>) -> tensor<4xi1>
  %16 = oriel.not %b {origin = 7 : i64} : (tensor<4xi1>) -> tensor<4xi1>
  // CHECK: oriel.cast %{{.*}} : (tensor<4xi1>) -> tensor<4xi64>
  %17 = oriel.cast %b {origin = -1 : i64} : (tensor<4xi1>) -> tensor<4xi64>
  return
}

// CHECK-LABEL: @angles
func.func @angles(%x: tensor<4xf32>) {
  // CHECK: oriel.tan
  %0 = oriel.tan %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.asin
  %1 = oriel.asin %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.acos
  %2 = oriel.acos %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.atan
  %3 = oriel.atan %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.sinh
  %4 = oriel.sinh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.cosh
  %5 = oriel.cosh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.asinh
  %6 = oriel.asinh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.acosh
  %7 = oriel.acosh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.atanh
  %8 = oriel.atanh %x : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.round
  %9 = oriel.round %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// CHECK-LABEL: @binary
func.func @binary(%x: tensor<4x8xf32>, %y: tensor<8xf32>, %b: tensor<4x1xi1>, %c: tensor<8xi1>) {
  // CHECK: oriel.add %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  %0 = oriel.add %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.sub
  %1 = oriel.sub %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.mul
  %2 = oriel.mul %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.div
  %3 = oriel.div %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.pow
  %4 = oriel.pow %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.max
  %5 = oriel.max %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.min
  %6 = oriel.min %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.mod
  %7 = oriel.mod %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.and %{{.*}}, %{{.*}} : (tensor<4x1xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  %8 = oriel.and %b, %c : (tensor<4x1xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  // CHECK: oriel.or
  %9 = oriel.or %b, %c : (tensor<4x1xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  // CHECK: oriel.xor
  %10 = oriel.xor %b, %c : (tensor<4x1xi1>, tensor<8xi1>) -> tensor<4x8xi1>
  // CHECK: oriel.equal %{{.*}}, %{{.*}} : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  %11 = oriel.equal %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: oriel.less
  %12 = oriel.less %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: oriel.less_equal
  %13 = oriel.less_equal %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: oriel.greater
  %14 = oriel.greater %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: oriel.greater_equal
  %15 = oriel.greater_equal %x, %y : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xi1>
  // CHECK: oriel.select
  %16 = oriel.select %b, %x, %y : (tensor<4x1xi1>, tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// CHECK-LABEL: @shape
func.func @shape(%x: tensor<4x8xf32>, %ids: tensor<2x3xi64>, %rows: tensor<2x3x8xf32>) {
  // CHECK: oriel.constant {value = dense<1.000000e+00> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  // CHECK: oriel.iota {dim = 1 : i64} : () -> tensor<2x3xi64>
  %1 = oriel.iota {dim = 1 : i64} : () -> tensor<2x3xi64>
  // CHECK: oriel.stop_gradient
  %stopped = oriel.stop_gradient %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.reshape
  %2 = oriel.reshape %x : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  // CHECK: oriel.transpose %{{.*}} {permutation = array<i64: 1, 0>}
  %3 = oriel.transpose %x {permutation = array<i64: 1, 0>} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  // CHECK: oriel.broadcast
  %4 = oriel.broadcast %x : (tensor<4x8xf32>) -> tensor<3x4x8xf32>
  // CHECK: oriel.slice %{{.*}} {limits = array<i64: 4, 8>, starts = array<i64: 0, 1>, strides = array<i64: 1, 2>}
  %5 = oriel.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 4, 8>, strides = array<i64: 1, 2>} : (tensor<4x8xf32>) -> tensor<4x4xf32>
  // CHECK: oriel.pad %{{.*}} {high = array<i64: 0, 1>, interior = array<i64: 1, 0>, low = array<i64: 1, 0>, value = 5.000000e-01 : f64}
  %6 = oriel.pad %x {low = array<i64: 1, 0>, high = array<i64: 0, 1>, interior = array<i64: 1, 0>, value = 0.5 : f64} : (tensor<4x8xf32>) -> tensor<8x9xf32>
  // CHECK: oriel.concat %{{.*}}, %{{.*}} {dim = 0 : i64}
  %7 = oriel.concat %x, %x {dim = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  // CHECK: oriel.gather %{{.*}}, %{{.*}} {dim = 0 : i64}
  %8 = oriel.gather %x, %ids {dim = 0 : i64} : (tensor<4x8xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  // CHECK: oriel.scatter_add
  %9 = oriel.scatter_add %ids, %rows {dim = 0 : i64} : (tensor<2x3xi64>, tensor<2x3x8xf32>) -> tensor<4x8xf32>
  // CHECK: oriel.reduce_sum %{{.*}} {dims = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>
  %10 = oriel.reduce_sum %x {dims = array<i64: 1>, keep_dims = false} : (tensor<4x8xf32>) -> tensor<4xf32>
  // CHECK: oriel.reduce_mean %{{.*}} {dims = array<i64: 1>, keep_dims = true}
  %11 = oriel.reduce_mean %x {dims = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
  // CHECK: oriel.reduce_max
  %12 = oriel.reduce_max %x {dims = array<i64: 0, 1>} : (tensor<4x8xf32>) -> tensor<f32>
  // CHECK: oriel.reduce_min
  %13 = oriel.reduce_min %x {dims = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
  // CHECK: oriel.reduce_prod
  %14 = oriel.reduce_prod %ids {dims = array<i64: 0>} : (tensor<2x3xi64>) -> tensor<3xi64>
  // CHECK: oriel.cumsum %{{.*}} {dim = 1 : i64, exclusive = true, reverse = true}
  %15 = oriel.cumsum %ids {dim = 1 : i64, exclusive = true, reverse = true} : (tensor<2x3xi64>) -> tensor<2x3xi64>
  // CHECK: oriel.argmax
  %16 = oriel.argmax %x {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4xi64>
  // CHECK: oriel.topk
  %17 = oriel.topk %x {k = 2 : i64, dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x2xi64>
  return
}

// CHECK-LABEL: @activation
func.func @activation(%x: tensor<4xf32>) {
  // CHECK: oriel.activation %{{.*}} {kind = "gelu"} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = oriel.activation %x {kind = "gelu"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.activation_grad
  %1 = oriel.activation_grad %x, %x {kind = "gelu_tanh"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.gated_activation
  %2 = oriel.gated_activation %x, %x {kind = "silu"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: oriel.gated_activation_grad
  %3:2 = oriel.gated_activation_grad %x, %x, %x {kind = "gelu_quick"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: @gather_in_rows
func.func @gather_in_rows(%x: tensor<2x3x8xf32>, %i: tensor<2x3x5xi64>) {
  // CHECK: oriel.gather %{{.*}} {batch_dims = 2 : i64, dim = 2 : i64}
  %0 = oriel.gather %x, %i {batch_dims = 2 : i64, dim = 2 : i64} : (tensor<2x3x8xf32>, tensor<2x3x5xi64>) -> tensor<2x3x5xf32>
  // CHECK: oriel.scatter_add %{{.*}} {batch_dims = 2 : i64, dim = 2 : i64}
  %1 = oriel.scatter_add %i, %0 {batch_dims = 2 : i64, dim = 2 : i64} : (tensor<2x3x5xi64>, tensor<2x3x5xf32>) -> tensor<2x3x8xf32>
  return
}

// CHECK-LABEL: @experts
func.func @experts(%x: tensor<2x8xf32>, %w: tensor<4x8x6xf32>, %c: tensor<2x3xi64>, %first: tensor<i64>) {
  // CHECK: oriel.expert_linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x8xf32>
  %0 = oriel.expert_linear %x, %w, %c : (tensor<2x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  // CHECK: oriel.expert_linear {{.*}} {experts = 9 : i64, transpose_weight = true}
  %1 = oriel.expert_linear %0, %w, %c, %first {experts = 9 : i64, transpose_weight = true} : (tensor<2x3x6xf32>, tensor<4x8x6xf32>, tensor<2x3xi64>, tensor<i64>) -> tensor<2x3x8xf32>
  // CHECK: oriel.expert_linear_weight_grad
  %2 = oriel.expert_linear_weight_grad %x, %0, %c : (tensor<2x8xf32>, tensor<2x3x6xf32>, tensor<2x3xi64>) -> tensor<4x8x6xf32>
  return
}

// CHECK-LABEL: @linear
func.func @linear(%x: tensor<2x4x8xf32>, %y: tensor<2x6x8xf32>, %w: tensor<16x8xf32>,
                  %bias: tensor<16xf32>, %dy: tensor<2x4x16xf32>, %a: tensor<3x2x4x8xf32>,
                  %b: tensor<3x8x6x5xf32>) {
  // CHECK: oriel.matmul %{{.*}}, %{{.*}} {transpose_rhs = true}
  %0 = oriel.matmul %x, %y {transpose_rhs = true} : (tensor<2x4x8xf32>, tensor<2x6x8xf32>) -> tensor<2x4x6xf32>
  // CHECK: oriel.matmul %{{.*}}, %{{.*}} {column_dims = 2 : i64, row_dims = 2 : i64}
  %m = oriel.matmul %a, %b {row_dims = 2 : i64, sum_dims = 1 : i64, column_dims = 2 : i64} : (tensor<3x2x4x8xf32>, tensor<3x8x6x5xf32>) -> tensor<3x2x4x6x5xf32>
  // CHECK: oriel.linear %{{.*}}, %{{.*}}, %{{.*}} {transpose_weight = true}
  %1 = oriel.linear %x, %w, %bias {transpose_weight = true} : (tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
  // CHECK: oriel.linear %{{.*}}, %{{.*}} : (tensor<2x4x16xf32>, tensor<16x8xf32>)
  %2 = oriel.linear %dy, %w : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
  // CHECK: oriel.linear_weight_grad
  %3 = oriel.linear_weight_grad %x, %dy {transpose_weight = true} : (tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<16x8xf32>
  return
}

// CHECK-LABEL: @conv
func.func @conv(%x: tensor<2x3x28x28xf32>, %w: tensor<64x3x4x4xf32>, %bias: tensor<64xf32>,
                %dy: tensor<2x64x7x7xf32>) {
  // CHECK: oriel.conv %{{.*}}, %{{.*}}, %{{.*}} {dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 4, 4>}
  %0 = oriel.conv %x, %w, %bias {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x28x28xf32>, tensor<64x3x4x4xf32>, tensor<64xf32>) -> tensor<2x64x7x7xf32>
  // CHECK: oriel.conv_input_grad
  %1 = oriel.conv_input_grad %dy, %w {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x64x7x7xf32>, tensor<64x3x4x4xf32>) -> tensor<2x3x28x28xf32>
  // CHECK: oriel.conv_weight_grad
  %2 = oriel.conv_weight_grad %dy, %x {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x64x7x7xf32>, tensor<2x3x28x28xf32>) -> tensor<64x3x4x4xf32>
  return
}

// CHECK-LABEL: @normalization
func.func @normalization(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>, %row: tensor<2x8xf32>) {
  // CHECK: oriel.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-05 : f64}
  %0:3 = oriel.layer_norm %x, %w, %w {epsilon = 1.0e-5 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: oriel.layer_norm %{{.*}}, %{{.*}} {epsilon
  %1:3 = oriel.layer_norm %x, %w {epsilon = 1.0e-5 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: oriel.layer_norm_grad
  %2:3 = oriel.layer_norm_grad %x, %x, %w, %row, %row : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>)
  // CHECK: oriel.rms_norm
  %3:2 = oriel.rms_norm %x, %w {epsilon = 1.0e-6 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>)
  // CHECK: oriel.rms_norm_grad
  %4:2 = oriel.rms_norm_grad %x, %x, %w, %row : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>)
  // CHECK: oriel.softmax
  %5 = oriel.softmax %row {dim = 1 : i64} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  // CHECK: oriel.softmax_grad
  %6 = oriel.softmax_grad %row, %row {dim = 1 : i64} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// CHECK-LABEL: @attention
func.func @attention(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x8x16xf32>, %mask: tensor<2x1x1x8xi1>,
                     %lse: tensor<2x4x8xf32>, %table: tensor<1x1x8x16xf32>, %s: tensor<4xf32>) {
  // CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}} {causal = true, scale = 2.500000e-01 : f64}
  %0:2 = oriel.attention %q, %k, %k {scale = 0.25 : f64, causal = true} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  // CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale
  %1:2 = oriel.attention %q, %k, %k, %mask {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x1x1x8xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  // CHECK: oriel.attention_grad
  %2:3 = oriel.attention_grad %q, %q, %k, %k, %q, %lse, %mask {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x1x1x8xi1>) -> (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)
  // CHECK: oriel.attention %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} sink %{{[^,]*}} {scale = 2.500000e-01 : f64}
  %4:2 = oriel.attention %q, %k, %k sink %s {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  // CHECK: oriel.attention_grad {{.*}}, %{{[^,]*}} sink %{{[^,]*}} {scale = 2.500000e-01 : f64}
  %5:3 = oriel.attention_grad %q, %q, %k, %k, %q, %lse, %mask sink %s {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>, tensor<2x1x1x8xi1>, tensor<4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)
  // CHECK: oriel.rope %{{.*}}, %{{.*}}, %{{.*}} {inverse = true}
  %3 = oriel.rope %q, %table, %table {inverse = true} : (tensor<2x4x8x16xf32>, tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xf32>
  return
}

// CHECK-LABEL: @multimodal
func.func @multimodal(%x: tensor<2x8x64xf32>, %each: tensor<2x8x64xi1>, %mask: tensor<2x8xi1>, %f: tensor<2x4x64xf32>, %images: tensor<2xi64>) {
  // CHECK: oriel.masked_scatter
  %0 = oriel.masked_scatter %x, %each, %f : (tensor<2x8x64xf32>, tensor<2x8x64xi1>, tensor<2x4x64xf32>) -> tensor<2x8x64xf32>
  // CHECK: oriel.masked_scatter_grad
  %1:2 = oriel.masked_scatter_grad %x, %each : (tensor<2x8x64xf32>, tensor<2x8x64xi1>) -> (tensor<2x8x64xf32>, tensor<2x4x64xf32>)
  // CHECK: oriel.merge_features
  %2 = oriel.merge_features %x, %mask, %f : (tensor<2x8x64xf32>, tensor<2x8xi1>, tensor<2x4x64xf32>) -> tensor<2x8x64xf32>
  // CHECK: oriel.check_image_slots %{{.*}}, %{{.*}} {rows_per_image = 4 : i64}
  %4 = oriel.check_image_slots %mask, %images {rows_per_image = 4 : i64} : (tensor<2x8xi1>, tensor<2xi64>) -> tensor<2x8xi1>
  // CHECK: oriel.merge_features_grad
  %3:2 = oriel.merge_features_grad %x, %mask : (tensor<2x8x64xf32>, tensor<2x8xi1>) -> (tensor<2x8x64xf32>, tensor<2x4x64xf32>)
  return
}

// On a piece of a dimension: where it begins, and the size of the whole.
// CHECK-LABEL: @pieces
func.func @pieces(%t: tensor<4x8xf32>, %ids: tensor<2x3xi64>, %rows: tensor<2x3x8xf32>, %first: tensor<i64>, %logits: tensor<2x8x32xf32>, %labels: tensor<2x8xi64>, %row: tensor<2x8xf32>, %s: tensor<f32>) {
  // CHECK: oriel.gather %{{.*}}, %{{.*}}, %{{.*}} {dim = 0 : i64, rows = 16 : i64} : (tensor<4x8xf32>, tensor<2x3xi64>, tensor<i64>) -> tensor<2x3x8xf32>
  %0 = oriel.gather %t, %ids, %first {dim = 0 : i64, rows = 16 : i64} : (tensor<4x8xf32>, tensor<2x3xi64>, tensor<i64>) -> tensor<2x3x8xf32>
  // CHECK: oriel.scatter_add %{{.*}}, %{{.*}}, %{{.*}} {dim = 0 : i64, rows = 16 : i64}
  %1 = oriel.scatter_add %ids, %rows, %first {dim = 0 : i64, rows = 16 : i64} : (tensor<2x3xi64>, tensor<2x3x8xf32>, tensor<i64>) -> tensor<4x8xf32>
  // CHECK: oriel.cross_entropy_grad %{{.*}} {classes = 64 : i64}
  %2 = oriel.cross_entropy_grad %s, %logits, %labels, %row, %first {classes = 64 : i64} : (tensor<f32>, tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<2x8xf32>, tensor<i64>) -> tensor<2x8x32xf32>
  // CHECK: oriel.label_logits %{{.*}} {classes = 64 : i64, ignore_index = 0 : i64}
  %3 = oriel.label_logits %logits, %labels, %first {ignore_index = 0 : i64, classes = 64 : i64} : (tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<i64>) -> tensor<2x8xf32>
  // CHECK: oriel.remaining_from %{{.*}} {size = 64 : i64}
  %r = oriel.remaining_from %logits, %row, %first {size = 64 : i64} : (tensor<2x8x32xf32>, tensor<2x8xf32>, tensor<i64>) -> tensor<2x8xi64>
  // CHECK: oriel.sum_exp %{{.*}}, %{{.*}} : (tensor<2x8x32xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  %4 = oriel.sum_exp %logits, %row : (tensor<2x8x32xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// CHECK-LABEL: @training
func.func @training(%logits: tensor<2x8x32xf32>, %labels: tensor<2x8xi64>, %lse: tensor<2x8xf32>, %p: tensor<8xf32>, %s: tensor<f32>) {
  // CHECK: oriel.cross_entropy %{{.*}}, %{{.*}} : (tensor<2x8x32xf32>, tensor<2x8xi64>)
  %0:3 = oriel.cross_entropy %logits, %labels {ignore_index = -100 : i64} : (tensor<2x8x32xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  // CHECK: oriel.token_losses %{{.*}}, %{{.*}} : (tensor<2x8x32xf32>, tensor<2x8xi64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %rows:2 = oriel.token_losses %logits, %labels : (tensor<2x8x32xf32>, tensor<2x8xi64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: oriel.cross_entropy_grad
  %1 = oriel.cross_entropy_grad %s, %logits, %labels, %lse : (tensor<f32>, tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x32xf32>
  // CHECK: oriel.sum_squares
  %2 = oriel.sum_squares %p, %logits : (tensor<8xf32>, tensor<2x8x32xf32>) -> tensor<f32>
  // CHECK: oriel.sgd
  %3 = oriel.sgd %p, %p, %s, %s {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: oriel.sgd_momentum %{{.*}} {momentum = 9.000000e-01 : f64, nesterov = true, weight_decay = 0.000000e+00 : f64}
  %moved:2 = oriel.sgd_momentum %p, %p, %p, %s, %s {momentum = 0.9 : f64, nesterov = true, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: oriel.adamw
  %4:3 = oriel.adamw %p, %p, %p, %p, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: @fused
func.func @fused(%x: tensor<2x8x32xf32>, %w: tensor<32x64xf32>, %part: tensor<32x16xf32>, %b: tensor<16xf32>, %labels: tensor<2x8xi64>, %lse: tensor<2x8xf32>, %first: tensor<i64>, %p: tensor<8xf32>, %q: tensor<4xf32>, %s: tensor<f32>) {
  // CHECK: oriel.linear_cross_entropy %{{.*}}, %{{.*}}, %{{.*}} {ignore_index = 0 : i64}
  %0:3 = oriel.linear_cross_entropy %x, %w, %labels {ignore_index = 0 : i64} : (tensor<2x8x32xf32>, tensor<32x64xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  // CHECK: oriel.linear_token_losses %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> (tensor<2x8xf32>, tensor<2x8xf32>)
  %each:2 = oriel.linear_token_losses %x, %w, %labels : (tensor<2x8x32xf32>, tensor<32x64xf32>, tensor<2x8xi64>) -> (tensor<2x8xf32>, tensor<2x8xf32>)
  // CHECK: oriel.linear_logsumexp %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {all_blocks = 8 : i64, blocks = 2 : i64}
  %1:2 = oriel.linear_logsumexp %x, %part, %labels, %b, %first {blocks = 2 : i64, all_blocks = 8 : i64} : (tensor<2x8x32xf32>, tensor<32x16xf32>, tensor<2x8xi64>, tensor<16xf32>, tensor<i64>) -> (tensor<2x8x2xf32>, tensor<2x8xf32>)
  // CHECK: oriel.linear_cross_entropy_grad %{{.*}} {classes = 64 : i64} : {{.*}} -> (tensor<2x8x32xf32>, tensor<32x16xf32>, tensor<16xf32>)
  %2:3 = oriel.linear_cross_entropy_grad %s, %x, %part, %labels, %lse, %b, %first {classes = 64 : i64} : (tensor<f32>, tensor<2x8x32xf32>, tensor<32x16xf32>, tensor<2x8xi64>, tensor<2x8xf32>, tensor<16xf32>, tensor<i64>) -> (tensor<2x8x32xf32>, tensor<32x16xf32>, tensor<16xf32>)
  // CHECK: oriel.sgd_list
  %3:4 = oriel.sgd_list %p, %q, %p, %q, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 2, 2, 0, 1, 1>, resultSegmentSizes = array<i32: 2, 0, 2>} : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<8xbf16>, tensor<4xbf16>)
  // CHECK: oriel.sgd_momentum_list
  %moved:2 = oriel.sgd_momentum_list %p, %p, %p, %s, %s {momentum = 0.9 : f64, weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)
  // CHECK: oriel.adamw_list
  %4:3 = oriel.adamw_list %p, %p, %p, %p, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return
}

// CHECK-LABEL: @distributed
func.func @distributed(%x: tensor<8x6xf32>, %s: tensor<f32>) {
  // CHECK: oriel.all_reduce %{{.*}}, %{{.*}} {axes = ["a0"], reduction = "sum"}
  %0:2 = oriel.all_reduce %x, %s {axes = ["a0"], reduction = "sum"} : (tensor<8x6xf32>, tensor<f32>) -> (tensor<8x6xf32>, tensor<f32>)
  // CHECK: oriel.all_gather %{{.*}} {axes = ["a0", "a2"], dim = 1 : i64}
  %1 = oriel.all_gather %x {axes = ["a0", "a2"], dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x24xf32>
  // CHECK: oriel.reduce_scatter %{{.*}} {axes = ["a0"], dim = 0 : i64, reduction = "max"}
  %2 = oriel.reduce_scatter %x {axes = ["a0"], dim = 0 : i64, reduction = "max"} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  // CHECK: oriel.all_to_all %{{.*}} {axes = ["a1"], concat_dim = 0 : i64, split_dim = 1 : i64}
  %3 = oriel.all_to_all %x {axes = ["a1"], concat_dim = 0 : i64, split_dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<16x3xf32>
  // CHECK: %[[A:.*]] = oriel.all_gather %{{.*}} {axes = ["a1"], dim = 1 : i64, oriel.bucket = 0 : i64, oriel.stream = 2 : i64}
  %a = oriel.all_gather %x {axes = ["a1"], dim = 1 : i64, oriel.bucket = 0 : i64, oriel.stream = 2 : i64} : (tensor<8x6xf32>) -> tensor<8x12xf32>
  // CHECK: %[[B:.*]] = oriel.all_gather
  %b = oriel.all_gather %x {axes = ["a1"], dim = 0 : i64, oriel.bucket = 0 : i64, oriel.stream = 2 : i64} : (tensor<8x6xf32>) -> tensor<16x6xf32>
  // CHECK: oriel.wait %[[A]], %[[B]] : (tensor<8x12xf32>, tensor<16x6xf32>)
  %w:2 = oriel.wait %a, %b : (tensor<8x12xf32>, tensor<16x6xf32>) -> (tensor<8x12xf32>, tensor<16x6xf32>)
  // CHECK: oriel.slice_local %{{.*}} {axes = ["a1"], dim = 1 : i64}
  %4 = oriel.slice_local %x {axes = ["a1"], dim = 1 : i64} : (tensor<8x6xf32>) -> tensor<8x3xf32>
  return
}
