// Each message of the verifiers of elementwise.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @no_common_shape(%x: tensor<4x8xf32>, %y: tensor<4xf32>) {
  // expected-error@+2 {{expects operands that broadcast to a common shape, got [4, 8] and [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.add %x, %y : (tensor<4x8xf32>, tensor<4xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @another_result_shape(%x: tensor<4x8xf32>) {
  // expected-error@+2 {{inferred type(s) 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<8x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.add %x, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @two_element_types(%x: tensor<4xf32>, %y: tensor<4xf64>) {
  // expected-error@+1 {{requires the same element type for all operands}}
  %0 = oriel.mul %x, %y : (tensor<4xf32>, tensor<4xf64>) -> tensor<4xf32>
  return
}

// -----

func.func @more_elements_than_can_be(%x: tensor<1048576x1xf32>, %y: tensor<33554432xf32>) {
  // expected-error@+2 {{would have the result shape [1048576, 33554432], which has more than 17592186044416 elements}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.add %x, %y : (tensor<1048576x1xf32>, tensor<33554432xf32>) -> tensor<1048576x33554432xf32>
  return
}

// -----

func.func @a_larger_size_than_can_be(%x: tensor<35184372088832x0xf32>) {
  // expected-error@+2 {{would have the result shape [35184372088832, 0], which has the size 35184372088832, outside 0 to 17592186044416}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.add %x, %x : (tensor<35184372088832x0xf32>, tensor<35184372088832x0xf32>) -> tensor<35184372088832x0xf32>
  return
}

// -----

func.func @exp_of_integers(%x: tensor<4xi64>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or 16-bit float or bfloat16 type values, but got 'tensor<4xi64>'}}
  %0 = oriel.exp %x : (tensor<4xi64>) -> tensor<4xi64>
  return
}

// -----

func.func @dynamic_shape(%x: tensor<?xf32>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of 32-bit float or 64-bit float or 16-bit float or bfloat16 type values, but got 'tensor<?xf32>'}}
  %0 = oriel.exp %x : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @sum_of_booleans(%x: tensor<4xi1>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of}}
  %0 = oriel.add %x, %x : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  return
}

// -----

func.func @and_of_floats(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %0 = oriel.and %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @comparison_without_common_shape(%x: tensor<4xf32>, %y: tensor<3xf32>) {
  // expected-error@+2 {{expects operands that broadcast to a common shape, got [4] and [3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.less %x, %y : (tensor<4xf32>, tensor<3xf32>) -> tensor<4xi1>
  return
}

// -----

func.func @select_without_common_shape(%c: tensor<3xi1>, %x: tensor<4xf32>) {
  // expected-error@+2 {{expects operands that broadcast to a common shape, got [3], [4] and [4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.select %c, %x, %x : (tensor<3xi1>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @select_of_two_element_types(%c: tensor<4xi1>, %x: tensor<4xf32>, %y: tensor<4xi64>) {
  // expected-error@+2 {{expects an on_false with elements of type 'f32', got 'tensor<4xi64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.select %c, %x, %y : (tensor<4xi1>, tensor<4xf32>, tensor<4xi64>) -> tensor<4xf32>
  return
}

// -----

func.func @cast_to_another_shape(%x: tensor<4xi64>) {
  // expected-error@+1 {{expects a result of shape [4], got [2, 2]}}
  %0 = oriel.cast %x : (tensor<4xi64>) -> tensor<2x2xf32>
  return
}
