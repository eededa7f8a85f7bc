// Types that ops on bf16 refuse.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @rms_norm_statistics(%x: tensor<2x64xbf16>, %w: tensor<64xbf16>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{inferred type(s) 'tensor<2x64xbf16>', 'tensor<2xf32>' are incompatible with return type(s) of operation 'tensor<2x64xbf16>', 'tensor<2xbf16>'}}
  %0:2 = oriel.rms_norm %x, %w {epsilon = 0.0 : f64} : (tensor<2x64xbf16>, tensor<64xbf16>) -> (tensor<2x64xbf16>, tensor<2xbf16>)
  return
}

// -----

func.func @layer_norm_grad_weight(%x: tensor<2x64xbf16>, %w: tensor<64xf32>, %r: tensor<2xf32>) {
  // expected-error@+2 {{expects a weight with elements of type 'bf16', got 'tensor<64xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.layer_norm_grad %x, %x, %w, %r, %r : (tensor<2x64xbf16>, tensor<2x64xbf16>, tensor<64xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2x64xbf16>, tensor<64xf32>, tensor<64xf32>)
  return
}

// -----

func.func @rope_tables(%x: tensor<2x4x8x16xf32>, %t: tensor<1x1x8x16xbf16>) {
  // expected-error@+2 {{expects cos with elements of type 'f32', got 'tensor<1x1x8x16xbf16>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.rope %x, %t, %t : (tensor<2x4x8x16xf32>, tensor<1x1x8x16xbf16>, tensor<1x1x8x16xbf16>) -> tensor<2x4x8x16xf32>
  return
}

// -----

func.func @attention_mask(%q: tensor<2x4x8x16xf32>, %m: tensor<1x1x8x8xbf16>) {
  // expected-error@+2 {{expects a mask with elements of type i1 or 'f32', got 'tensor<1x1x8x8xbf16>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %q, %q, %m {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<1x1x8x8xbf16>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @narrow_sum(%x: tensor<2x4x8xf32>, %g: tensor<2x4x16xf32>) {
  // expected-error@+2 {{failed to infer returned types}}
  // expected-error@+1 {{inferred type(s) 'tensor<8x16xf32>' are incompatible with return type(s) of operation 'tensor<8x16xbf16>'}}
  %0 = oriel.linear_weight_grad %x, %g : (tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<8x16xbf16>
  return
}

// -----

func.func @conv_weight_grad_type(%x: tensor<2x3x8x8xbf16>, %g: tensor<2x16x2x2xbf16>) {
  // expected-error@+1 {{expects a weight with elements of type 'bf16', got 'tensor<16x3x4x4xf16>'}}
  %0 = oriel.conv_weight_grad %g, %x {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x16x2x2xbf16>, tensor<2x3x8x8xbf16>) -> tensor<16x3x4x4xf16>
  return
}

// -----

func.func @conv_weight_grad_input(%x: tensor<2x3x8x8xf32>, %g: tensor<2x16x2x2xbf16>) {
  // expected-error@+1 {{expects an input with elements of type 'bf16', got 'tensor<2x3x8x8xf32>'}}
  %0 = oriel.conv_weight_grad %g, %x {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x16x2x2xbf16>, tensor<2x3x8x8xf32>) -> tensor<16x3x4x4xbf16>
  return
}

// -----

func.func @scatter_add_type(%i: tensor<2x4xi64>, %x: tensor<2x4x8xf32>) {
  // expected-error@+1 {{expects updates with elements of type 'bf16', got 'tensor<2x4x8xf32>'}}
  %0 = oriel.scatter_add %i, %x {dim = 0 : i64} : (tensor<2x4xi64>, tensor<2x4x8xf32>) -> tensor<32x8xbf16>
  return
}

// -----

func.func @cross_entropy_grad_cotangent(%x: tensor<2x8x32xbf16>, %l: tensor<2x8xi64>, %lse: tensor<2x8xf32>, %g: tensor<bf16>) {
  // expected-error@+2 {{expects a cotangent of type 'tensor<f32>', got 'tensor<bf16>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.cross_entropy_grad %g, %x, %l, %lse : (tensor<bf16>, tensor<2x8x32xbf16>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x32xbf16>
  return
}

// -----

func.func @sum_exp_shift(%x: tensor<2x8x32xbf16>, %m: tensor<2x8xbf16>) {
  // expected-error@+2 {{expects a shift with elements of type 'f32', got 'tensor<2x8xbf16>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.sum_exp %x, %m : (tensor<2x8x32xbf16>, tensor<2x8xbf16>) -> tensor<2x8xbf16>
  return
}
