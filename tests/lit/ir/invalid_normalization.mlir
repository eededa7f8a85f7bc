// Each message of the verifiers of normalization.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @layer_norm_of_scalar(%x: tensor<f32>, %w: tensor<64xf32>) {
  // expected-error@+2 {{expects an input of rank at least 1, got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm %x, %w {epsilon = 0.0 : f64} : (tensor<f32>, tensor<64xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return
}

// -----

func.func @layer_norm_weight(%x: tensor<2x8x64xf32>, %w: tensor<8xf32>) {
  // expected-error@+2 {{expects a weight of shape [64], got [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm %x, %w {epsilon = 0.0 : f64} : (tensor<2x8x64xf32>, tensor<8xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_bias(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>, %b: tensor<1xf32>) {
  // expected-error@+2 {{expects a bias of shape [64], got [1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm %x, %w, %b {epsilon = 0.0 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>, tensor<1xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_epsilon(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>) {
  // expected-error@+2 {{expects an epsilon of at least 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm %x, %w {epsilon = -1.0 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @layer_norm_grad_cotangent(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>, %r: tensor<2x8xf32>) {
  // expected-error@+2 {{expects a cotangent of type 'tensor<2x8x64xf32>', got 'tensor<2x8xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm_grad %r, %x, %w, %r, %r : (tensor<2x8xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @layer_norm_grad_mean(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>, %r: tensor<2x8xf32>) {
  // expected-error@+2 {{expects a mean of type 'tensor<2x8xf32>', got 'tensor<64xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm_grad %x, %x, %w, %w, %r : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @layer_norm_grad_inv_std(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>, %r: tensor<2x8xf32>) {
  // expected-error@+2 {{expects an inv_std of type 'tensor<2x8xf32>', got 'tensor<64xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm_grad %x, %x, %w, %r, %w : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @rms_norm_weight(%x: tensor<2x8x64xf32>, %w: tensor<2x8xf32>) {
  // expected-error@+2 {{expects a weight of shape [64], got [2, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.rms_norm %x, %w {epsilon = 0.0 : f64} : (tensor<2x8x64xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_epsilon_is_nan(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>) {
  // expected-error@+2 {{expects an epsilon of at least 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.rms_norm %x, %w {epsilon = 0x7FF8000000000000 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_weight_offset_is_infinite(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>) {
  // expected-error@+2 {{expects a finite weight_offset}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.rms_norm %x, %w {epsilon = 0.0 : f64, weight_offset = 0x7FF0000000000000 : f64} : (tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>)
  return
}

// -----

func.func @rms_norm_grad_cotangent(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>, %r: tensor<2x8xf32>) {
  // expected-error@+2 {{expects a cotangent of type 'tensor<2x8x64xf32>', got 'tensor<64xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.rms_norm_grad %w, %x, %w, %r : (tensor<64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @rms_norm_grad_inv_rms(%x: tensor<2x8x64xf32>, %w: tensor<64xf32>) {
  // expected-error@+2 {{expects an inv_rms of type 'tensor<2x8xf32>', got 'tensor<2x8x64xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.rms_norm_grad %x, %x, %w, %x : (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8x64xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @softmax_dim(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{expects a dim from 0 to 1, got 2}}
  %0 = oriel.softmax %x {dim = 2 : i64} : (tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @softmax_grad_dim(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{expects a dim from 0 to 1, got -1}}
  %0 = oriel.softmax_grad %x, %x {dim = -1 : i64} : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
  return
}
