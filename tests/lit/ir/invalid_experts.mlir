// Each message of the verifiers of experts.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @no_choices(%x: tensor<8xf32>, %w: tensor<4x8x6xf32>, %c: tensor<i64>) {
  // expected-error@+2 {{expects choices of at least one dimension}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.expert_linear %x, %w, %c : (tensor<8xf32>, tensor<4x8x6xf32>, tensor<i64>) -> tensor<6xf32>
  return
}

// -----

func.func @rows(%x: tensor<3x8xf32>, %w: tensor<4x8x6xf32>, %c: tensor<2x3xi64>) {
  // expected-error@+2 {{expects an input with the dimensions of the choices [2, 3] before its last, or all but the last of them, got [3, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.expert_linear %x, %w, %c : (tensor<3x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @weight_rank(%x: tensor<2x8xf32>, %w: tensor<8x6xf32>, %c: tensor<2x3xi64>) {
  // expected-error@+2 {{expects a weight of rank 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.expert_linear %x, %w, %c : (tensor<2x8xf32>, tensor<8x6xf32>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @depth(%x: tensor<2x8xf32>, %w: tensor<4x8x6xf32>, %c: tensor<2x3xi64>) {
  // expected-error@+2 {{expects an input with a last dimension of 6, got [2, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.expert_linear %x, %w, %c {transpose_weight = true} : (tensor<2x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi64>) -> tensor<2x3x8xf32>
  return
}

// -----

func.func @weight_type(%x: tensor<2x8xf32>, %w: tensor<4x8x6xf64>, %c: tensor<2x3xi64>) {
  // expected-error@+2 {{expects a weight with elements of type 'f32', got 'tensor<4x8x6xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.expert_linear %x, %w, %c : (tensor<2x8xf32>, tensor<4x8x6xf64>, tensor<2x3xi64>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @piece(%x: tensor<2x8xf32>, %w: tensor<4x8x6xf32>, %c: tensor<2x3xi64>, %first: tensor<i64>) {
  // expected-error@+2 {{experts}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.expert_linear %x, %w, %c, %first {experts = 3 : i64} : (tensor<2x8xf32>, tensor<4x8x6xf32>, tensor<2x3xi64>, tensor<i64>) -> tensor<2x3x6xf32>
  return
}

// -----

func.func @cotangent(%x: tensor<2x8xf32>, %y: tensor<2x4x6xf32>, %c: tensor<2x3xi64>) {
  // expected-error@+1 {{expects a cotangent with the dimensions of the choices [2, 3] before its last, got [2, 4, 6]}}
  %0 = oriel.expert_linear_weight_grad %x, %y, %c : (tensor<2x8xf32>, tensor<2x4x6xf32>, tensor<2x3xi64>) -> tensor<4x8x6xf32>
  return
}

// -----

func.func @cotangent_type(%x: tensor<2x8xf32>, %y: tensor<2x3x6xf64>, %c: tensor<2x3xi64>) {
  // expected-error@+1 {{expects a cotangent with elements of type 'f32', got 'tensor<2x3x6xf64>'}}
  %0 = oriel.expert_linear_weight_grad %x, %y, %c : (tensor<2x8xf32>, tensor<2x3x6xf64>, tensor<2x3xi64>) -> tensor<4x8x6xf32>
  return
}

// -----

func.func @result(%x: tensor<2x8xf32>, %y: tensor<2x3x6xf32>, %c: tensor<2x3xi64>) {
  // expected-error@+1 {{expects a result of shape [4, 8, 6], got [4, 6, 8]}}
  %0 = oriel.expert_linear_weight_grad %x, %y, %c : (tensor<2x8xf32>, tensor<2x3x6xf32>, tensor<2x3xi64>) -> tensor<4x6x8xf32>
  return
}

// -----

func.func @result_type(%x: tensor<2x8xf32>, %y: tensor<2x3x6xf32>, %c: tensor<2x3xi64>) {
  // expected-error@+1 {{expects a result with elements of type 'f32', got 'tensor<4x8x6xbf16>'}}
  %0 = oriel.expert_linear_weight_grad %x, %y, %c : (tensor<2x8xf32>, tensor<2x3x6xf32>, tensor<2x3xi64>) -> tensor<4x8x6xbf16>
  return
}
