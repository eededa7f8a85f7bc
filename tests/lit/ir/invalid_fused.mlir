// RUN: oriel-opt %s --split-input-file --verify-diagnostics

func.func @weight_rank(%x: tensor<2x8x4xf32>, %l: tensor<2x8xi64>) {
  // expected-error@+2 {{expects a weight of rank 2, got the shape [2, 8, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.linear_cross_entropy %x, %x, %l : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  return
}

// -----

func.func @input_depth(%x: tensor<2x8x4xf32>, %w: tensor<5x6xf32>, %l: tensor<2x8xi64>) {
  // expected-error@+2 {{expects an input with a last dimension of 5, got [2, 8, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.linear_cross_entropy %x, %w, %l : (tensor<2x8x4xf32>, tensor<5x6xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  return
}

// -----

func.func @labels(%x: tensor<2x7x4xf32>, %w: tensor<4x6xf32>, %l: tensor<2x8xi64>) {
  // expected-error@+2 {{expects labels of shape [2, 7], got [2, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.linear_cross_entropy %x, %w, %l : (tensor<2x7x4xf32>, tensor<4x6xf32>, tensor<2x8xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x7xf32>)
  return
}

// -----

func.func @bias(%x: tensor<2x8x4xf32>, %w: tensor<4x6xf32>, %l: tensor<2x8xi64>, %b: tensor<4xf32>) {
  // expected-error@+2 {{expects a bias of shape [6], got [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.linear_cross_entropy %x, %w, %l, %b : (tensor<2x8x4xf32>, tensor<4x6xf32>, tensor<2x8xi64>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>, tensor<2x8xf32>)
  return
}

// -----

func.func @blocks(%x: tensor<2x8x4xf32>, %w: tensor<4x6xf32>, %l: tensor<2x8xi64>) {
  // expected-error@+2 {{can't cut 6 classes into 4 equal blocks}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.linear_logsumexp %x, %w, %l {blocks = 4 : i64} : (tensor<2x8x4xf32>, tensor<4x6xf32>, tensor<2x8xi64>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rest(%x: tensor<2x8x4xf32>, %w: tensor<4x6xf32>, %l: tensor<2x8xi64>, %b: tensor<6xf32>) {
  // expected-error@+2 {{expects at most a bias and the index of a piece behind its operands}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.linear_logsumexp %x, %w, %l, %b, %b {blocks = 2 : i64} : (tensor<2x8x4xf32>, tensor<4x6xf32>, tensor<2x8xi64>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x8x2xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @cotangents(%g: tensor<f32>, %x: tensor<2x8x4xf32>, %w: tensor<4x6xf32>, %l: tensor<2x8xi64>, %lse: tensor<2x8xf32>) {
  // expected-error@+1 {{expects a cotangent of the input and, unless of that alone, of the weight and the bias}}
  %0 = oriel.linear_cross_entropy_grad %g, %x, %w, %l, %lse : (tensor<f32>, tensor<2x8x4xf32>, tensor<4x6xf32>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @gradient(%p: tensor<8xf32>, %g: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expects a gradient of shape [8], got [4]}}
  %0 = oriel.sgd_list %p, %g, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<8xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
  return
}

// -----

func.func @new_parameters(%p: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expects new parameters of the types of those that they replace}}
  %0 = oriel.sgd_list %p, %p, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @rounded_count(%p: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expects 1 rounded parameters or none, got 2}}
  %0:3 = oriel.sgd_list %p, %p, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 2>} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xbf16>, tensor<8xbf16>)
  return
}

// -----

func.func @rounded_type(%p: tensor<8xf64>, %s: tensor<f64>) {
  // expected-error@+1 {{can't round 'tensor<8xf64>' to 'tensor<8xf32>'}}
  %0:2 = oriel.sgd_list %p, %p, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 1>} : (tensor<8xf64>, tensor<8xf64>, tensor<f64>, tensor<f64>) -> (tensor<8xf64>, tensor<8xf32>)
  return
}

// -----

func.func @exp_avgs(%p: tensor<8xf32>, %m: tensor<4xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{expects an exp_avg of shape [8], got [4]}}
  %0:3 = oriel.adamw_list %p, %p, %m, %p, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 0, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>)
  return
}

// -----

func.func @addend(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>, %row: tensor<6xf32>) {
  // expected-error@+1 {{expects an addend of type 'tensor<4x6xf32>', got 'tensor<6xf32>'}}
  %0 = oriel.linear_add %x, %w, %row : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @sum_type(%x: tensor<4x8xf32>, %dy: tensor<4x6xf32>, %dw: tensor<6x8xf32>) {
  // expected-error@+1 {{expects results of the types of oriel.linear_weight_grad}}
  %0 = oriel.linear_weight_grad_add %x, %dy, %dw : (tensor<4x8xf32>, tensor<4x6xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return
}

// -----

func.func @sum_of_experts(%x: tensor<4x8xf32>, %dy: tensor<4x2x6xf32>, %c: tensor<4x2xi64>, %dw: tensor<8x6xf32>) {
  // expected-error@+1 {{expects an addend of type 'tensor<3x8x6xf32>', got 'tensor<8x6xf32>'}}
  %0 = oriel.expert_linear_weight_grad_add %x, %dy, %c, %dw : (tensor<4x8xf32>, tensor<4x2x6xf32>, tensor<4x2xi64>, tensor<8x6xf32>) -> tensor<3x8x6xf32>
  return
}

// -----

func.func @narrow_sum_of_experts(%x: tensor<4x8xbf16>, %dy: tensor<4x2x6xbf16>, %c: tensor<4x2xi64>, %dw: tensor<3x8x6xbf16>) {
  // expected-error@+1 {{expects a result with elements of type 'f32', got 'tensor<3x8x6xbf16>'}}
  %0 = oriel.expert_linear_weight_grad_add %x, %dy, %c, %dw : (tensor<4x8xbf16>, tensor<4x2x6xbf16>, tensor<4x2xi64>, tensor<3x8x6xbf16>) -> tensor<3x8x6xbf16>
  return
}

// -----

func.func @sum_without_addend(%x: tensor<4x8xbf16>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects an addend and a sum, or neither}}
  %0:3 = oriel.fused_rms_norm %x, %w {epsilon = 1.0e-6 : f64} : (tensor<4x8xbf16>, tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4x8xbf16>)
  return
}

// -----

func.func @norm_weight(%x: tensor<4x8xbf16>, %w: tensor<8xf64>) {
  // expected-error@+1 {{expects a weight with elements of type 'f32', got 'tensor<8xf64>'}}
  %0:2 = oriel.fused_rms_norm %x, %w {epsilon = 1.0e-6 : f64} : (tensor<4x8xbf16>, tensor<8xf64>) -> (tensor<4x8xbf16>, tensor<4xf32>)
  return
}

// -----

func.func @norm_rank(%x: tensor<bf16>, %w: tensor<8xf32>) {
  // expected-error@+1 {{expects an input of rank 1 or more}}
  %0:2 = oriel.fused_rms_norm %x, %w {epsilon = 1.0e-6 : f64} : (tensor<bf16>, tensor<8xf32>) -> (tensor<bf16>, tensor<f32>)
  return
}

// -----

func.func @statistic(%x: tensor<4x8xbf16>, %w: tensor<8xf32>, %s: tensor<4xbf16>) {
  // expected-error@+1 {{expects an inv_rms of type 'tensor<4xf32>', got 'tensor<4xbf16>'}}
  %0:2 = oriel.fused_rms_norm_grad %x, %x, %w, %s : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<4xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>)
  return
}

// -----

func.func @preactivation(%dy: tensor<4x8xf32>, %w: tensor<8x6xf32>, %x: tensor<4x8xf32>) {
  // expected-error@+1 {{expects a preactivation of type 'tensor<4x6xf32>', got 'tensor<4x8xf32>'}}
  %0 = oriel.linear_activation_grad %dy, %w, %x {kind = "gelu_tanh"} : (tensor<4x8xf32>, tensor<8x6xf32>, tensor<4x8xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @activation_kind(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) {
  // expected-error@+1 {{expects the kind gelu, gelu_tanh, gelu_quick or silu, got "relu"}}
  %0 = oriel.linear_activation %x, %w {kind = "relu"} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  return
}

// -----

func.func @activation_type(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) {
  // expected-error@+1 {{expects a result of the type of oriel.linear, 'tensor<4x6xf32>'}}
  %0 = oriel.linear_activation %x, %w {kind = "gelu_tanh"} : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @bias_grad(%x: tensor<4x8xf32>, %dy: tensor<4x6xf32>) {
  // expected-error@+1 {{expects a bias_grad of the type 'tensor<6xf32>', or wider}}
  %0:2 = oriel.linear_grads %x, %dy : (tensor<4x8xf32>, tensor<4x6xf32>) -> (tensor<8x6xf32>, tensor<8xf32>)
  return
}

// -----

func.func @weight_grad(%x: tensor<4x8xf32>, %dy: tensor<4x6xf32>) {
  // expected-error@+1 {{expects a weight_grad of the type of oriel.linear_weight_grad, 'tensor<8x6xf32>'}}
  %0:2 = oriel.linear_grads %x, %dy : (tensor<4x8xf32>, tensor<4x6xf32>) -> (tensor<6x8xf32>, tensor<6xf32>)
  return
}

// -----

func.func @new_momentum_buffers(%p: tensor<8xf32>, %s: tensor<f32>) {
  // expected-error@+1 {{new momentum buffers}}
  %0:2 = oriel.sgd_momentum_list %p, %p, %p, %s, %s {momentum = 0.9 : f64, weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>)
  return
}

// -----

func.func @remainders_of_some(%p: tensor<8xbf16>, %r: tensor<8xi16>, %s: tensor<f32>) {
  // expected-error@+1 {{expects 2 remainders or none, got 1}}
  %0:3 = oriel.sgd_list %p, %p, %p, %p, %r, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 2, 2, 1, 1, 1>, resultSegmentSizes = array<i32: 2, 1, 0>} : (tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xbf16>, tensor<8xi16>, tensor<f32>, tensor<f32>) -> (tensor<8xbf16>, tensor<8xbf16>, tensor<8xi16>)
  return
}

// -----

func.func @remainders_of_f32(%p: tensor<8xf32>, %r: tensor<8xi16>, %s: tensor<f32>) {
  // expected-error@+1 {{expects parameters of bf16 beside remainders, got 'tensor<8xf32>'}}
  %0:2 = oriel.sgd_list %p, %p, %r, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xi16>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xi16>)
  return
}

// -----

func.func @remainders_without_new_ones(%p: tensor<8xbf16>, %r: tensor<8xi16>, %s: tensor<f32>) {
  // expected-error@+1 {{expects new remainders of the types of those that they replace}}
  %0 = oriel.sgd_list %p, %p, %r, %s, %s {weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 0, 0>} : (tensor<8xbf16>, tensor<8xbf16>, tensor<8xi16>, tensor<f32>, tensor<f32>) -> tensor<8xbf16>
  return
}
