// Each message of the verifiers of activation.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @unknown_kind(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects the kind gelu, gelu_tanh, gelu_quick or silu, got "swish"}}
  %0 = oriel.activation %x {kind = "swish"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unknown_kind_of_grad(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects the kind gelu, gelu_tanh, gelu_quick or silu, got ""}}
  %0 = oriel.activation_grad %x, %x {kind = ""} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unknown_kind_of_gated(%x: tensor<4xf32>) {
  // expected-error@+1 {{expects the kind gelu, gelu_tanh, gelu_quick or silu, got "relu"}}
  %0 = oriel.gated_activation %x, %x {kind = "relu"} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unknown_kind_of_gated_grad(%x: tensor<4xf32>) {
  // expected-error@+2 {{expects the kind gelu, gelu_tanh, gelu_quick or silu, got "relu"}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.gated_activation_grad %x, %x, %x {kind = "relu"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @gate_of_another_type(%x: tensor<4xf32>, %y: tensor<5xf32>) {
  // expected-error@+2 {{expects a gate of type 'tensor<4xf32>', got 'tensor<5xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.gated_activation_grad %x, %y, %x {kind = "silu"} : (tensor<4xf32>, tensor<5xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @up_of_another_type(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error@+2 {{expects an up operand of type 'tensor<4xf32>', got 'tensor<4xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.gated_activation_grad %x, %x, %y {kind = "silu"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf64>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
