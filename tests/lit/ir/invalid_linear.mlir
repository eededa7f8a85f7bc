// Each message of the verifiers of linear.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @matmul_batches(%x: tensor<2x4x8xf32>, %y: tensor<3x8x4xf32>) {
  // expected-error@+2 {{expects operands with the same leading dimensions before 1 + 1 and 1 + 1 others (row_dims + sum_dims, sum_dims + column_dims; each at least 1), got [2, 4, 8] and [3, 8, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.matmul %x, %y : (tensor<2x4x8xf32>, tensor<3x8x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @matmul_of_vectors(%x: tensor<8xf32>) {
  // expected-error@+2 {{expects operands with the same leading dimensions before 1 + 1 and 1 + 1 others (row_dims + sum_dims, sum_dims + column_dims; each at least 1), got [8] and [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.matmul %x, %x : (tensor<8xf32>, tensor<8xf32>) -> tensor<f32>
  return
}

// -----

func.func @matmul_contraction(%x: tensor<4x8xf32>, %y: tensor<6x8xf32>) {
  // expected-error@+2 {{sums over [8] of lhs and [6] of rhs; the shapes are [4, 8] and [6, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.matmul %x, %y : (tensor<4x8xf32>, tensor<6x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @matmul_dims(%x: tensor<2x4x8xf32>, %y: tensor<2x8x4xf32>) {
  // expected-error@+2 {{expects operands with the same leading dimensions before 2 + 1 and 1 + 1 others (row_dims + sum_dims, sum_dims + column_dims; each at least 1), got [2, 4, 8] and [2, 8, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.matmul %x, %y {row_dims = 2 : i64} : (tensor<2x4x8xf32>, tensor<2x8x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @matmul_no_dims(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) {
  // expected-error@+2 {{expects operands with the same leading dimensions before 1 + 0 and 0 + 1 others (row_dims + sum_dims, sum_dims + column_dims; each at least 1), got [4, 8] and [8, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.matmul %x, %y {sum_dims = 0 : i64} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x8x8x4xf32>
  return
}

// -----

func.func @matmul_huge_dims(%x: tensor<4x8xf32>, %y: tensor<8x4xf32>) {
  // expected-error@+2 {{expects operands with the same leading dimensions before 4611686018427387904 + 1 and 1 + -1 others}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.matmul %x, %y {row_dims = 4611686018427387904 : i64, column_dims = -1 : i64} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return
}

// -----

func.func @linear_weight_rank(%x: tensor<4x8xf32>, %w: tensor<8xf32>) {
  // expected-error@+2 {{expects a weight of rank 2, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_contraction(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>) {
  // expected-error@+2 {{expects an input with a last dimension of 16, got [4, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_of_scalar(%x: tensor<f32>, %w: tensor<16x8xf32>) {
  // expected-error@+2 {{expects an input with a last dimension of 16, got []}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.linear %x, %w : (tensor<f32>, tensor<16x8xf32>) -> tensor<8xf32>
  return
}

// -----

func.func @linear_bias(%x: tensor<4x16xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>) {
  // expected-error@+2 {{expects a bias of shape [8], got [16]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.linear %x, %w, %b : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @linear_weight_grad_rows(%x: tensor<4x8xf32>, %y: tensor<5x8xf32>) {
  // expected-error@+2 {{expects an input and a cotangent that differ in their last dimension only, got [4, 8] and [5, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.linear_weight_grad %x, %y : (tensor<4x8xf32>, tensor<5x8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @conv_ranks(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4xf32>) {
  // expected-error@+2 {{expects an input and a weight of one rank of at least 3, got [1, 3, 8, 8] and [4, 3, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_strides(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf32>) {
  // expected-error@+2 {{expects 2 strides of at least 1, got [0, 1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 0, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_dilations(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf32>) {
  // expected-error@+2 {{expects 2 dilations of at least 1, got [1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_pads(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf32>) {
  // expected-error@+2 {{expects 4 pads of at least 0, got [0, 0, 0, -1]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, -1>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_channels(%x: tensor<1x3x8x8xf32>, %w: tensor<4x2x4x4xf32>) {
  // expected-error@+2 {{expects a weight of 1 equal groups that cover the input's channels, got the input [1, 3, 8, 8] and the weight [4, 2, 4, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x2x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_groups(%x: tensor<1x3x8x8xf32>, %w: tensor<4x1x4x4xf32>) {
  // expected-error@+2 {{expects a weight of 3 equal groups that cover the input's channels, got the input [1, 3, 8, 8] and the weight [4, 1, 4, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 3 : i64} : (tensor<1x3x8x8xf32>, tensor<4x1x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_no_groups(%x: tensor<1x3x8x8xf32>, %w: tensor<4x1x4x4xf32>) {
  // expected-error@+2 {{expects a weight of 0 equal groups}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 0 : i64} : (tensor<1x3x8x8xf32>, tensor<4x1x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_kernel_too_large(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x9x4xf32>) {
  // expected-error@+2 {{has no position for the kernel in spatial dimension 0; the shapes are [1, 3, 8, 8] and [4, 3, 9, 4]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x9x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_reach_overflows(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf32>) {
  // expected-error@+2 {{has no position for the kernel in spatial dimension 1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 17592186044416>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_weight_element_type(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf64>) {
  // expected-error@+2 {{expects a weight with elements of type 'f32', got 'tensor<4x3x4x4xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf64>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_bias_shape(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf32>, %b: tensor<3xf32>) {
  // expected-error@+2 {{expects a bias of shape [4], got [3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf32>, tensor<3xf32>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_bias_element_type(%x: tensor<1x3x8x8xf32>, %w: tensor<4x3x4x4xf32>, %b: tensor<4xf64>) {
  // expected-error@+2 {{expects a bias with elements of type 'f32', got 'tensor<4xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x3x8x8xf32>, tensor<4x3x4x4xf32>, tensor<4xf64>) -> tensor<1x4x5x5xf32>
  return
}

// -----

func.func @conv_input_grad_cotangent(%y: tensor<1x4x6x5xf32>, %w: tensor<4x3x4x4xf32>) {
  // expected-error@+1 {{expects a cotangent of shape [1, 4, 5, 5], got [1, 4, 6, 5]}}
  %0 = oriel.conv_input_grad %y, %w {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x6x5xf32>, tensor<4x3x4x4xf32>) -> tensor<1x3x8x8xf32>
  return
}

// -----

func.func @conv_weight_grad_channels(%y: tensor<1x4x5x5xf32>, %x: tensor<1x3x8x8xf32>) {
  // expected-error@+1 {{expects a weight of 1 equal groups}}
  %0 = oriel.conv_weight_grad %y, %x {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<1x3x8x8xf32>) -> tensor<4x2x4x4xf32>
  return
}

// -----

func.func @conv_grad_element_types(%y: tensor<1x4x5x5xf32>, %x: tensor<1x3x8x8xf64>) {
  // expected-error@+1 {{expects an input with elements of type 'f32', got 'tensor<1x3x8x8xf64>'}}
  %0 = oriel.conv_weight_grad %y, %x {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<1x4x5x5xf32>, tensor<1x3x8x8xf64>) -> tensor<4x3x4x4xf32>
  return
}

// -----

func.func @solve_not_square(%t: tensor<2x3x4xf32>, %b: tensor<2x3x5xf32>) {
  // expected-error@+2 {{expects square matrices, and right-hand sides with as many rows and the same leading dimensions, got [2, 3, 4] and [2, 3, 5]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.triangular_solve %t, %b : (tensor<2x3x4xf32>, tensor<2x3x5xf32>) -> tensor<2x3x5xf32>
  return
}

// -----

func.func @solve_other_batch(%t: tensor<2x3x3xf32>, %b: tensor<1x3x5xf32>) {
  // expected-error@+2 {{the same leading dimensions, got [2, 3, 3] and [1, 3, 5]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.triangular_solve %t, %b : (tensor<2x3x3xf32>, tensor<1x3x5xf32>) -> tensor<1x3x5xf32>
  return
}
