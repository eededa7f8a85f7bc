// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @matmul_nn(%a: tensor<2x3x4xf64>, %b: tensor<2x4x5xf64>) -> tensor<2x3x5xf64> {
  %0 = oriel.matmul %a, %b : (tensor<2x3x4xf64>, tensor<2x4x5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @matmul_nt(%a: tensor<2x3x4xf64>, %b: tensor<2x5x4xf64>) -> tensor<2x3x5xf64> {
  %0 = oriel.matmul %a, %b {transpose_rhs = true} : (tensor<2x3x4xf64>, tensor<2x5x4xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @matmul_tn(%a: tensor<2x4x3xf64>, %b: tensor<2x4x5xf64>) -> tensor<2x3x5xf64> {
  %0 = oriel.matmul %a, %b {transpose_lhs = true} : (tensor<2x4x3xf64>, tensor<2x4x5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @matmul_tt(%a: tensor<2x4x3xf64>, %b: tensor<2x5x4xf64>) -> tensor<2x3x5xf64> {
  %0 = oriel.matmul %a, %b {transpose_lhs = true, transpose_rhs = true} : (tensor<2x4x3xf64>, tensor<2x5x4xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @matmul_rank_2(%a: tensor<3x4xf64>, %b: tensor<4x5xf64>) -> tensor<3x5xf64> {
  %0 = oriel.matmul %a, %b : (tensor<3x4xf64>, tensor<4x5xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}

// Several dimensions of rows, of columns and of what is summed over.
func.func @matmul_dims_nn(%a: tensor<2x3x2x4xf64>, %b: tensor<2x4x5xf64>) -> tensor<2x3x2x5xf64> {
  %0 = oriel.matmul %a, %b {row_dims = 2 : i64} : (tensor<2x3x2x4xf64>, tensor<2x4x5xf64>) -> tensor<2x3x2x5xf64>
  return %0 : tensor<2x3x2x5xf64>
}

func.func @matmul_dims_nt(%a: tensor<2x3x4x2xf64>, %b: tensor<2x3x5x4x2xf64>) -> tensor<2x3x3x5xf64> {
  %0 = oriel.matmul %a, %b {transpose_rhs = true, sum_dims = 2 : i64, column_dims = 2 : i64} : (tensor<2x3x4x2xf64>, tensor<2x3x5x4x2xf64>) -> tensor<2x3x3x5xf64>
  return %0 : tensor<2x3x3x5xf64>
}

func.func @matmul_dims_tn(%a: tensor<3x2x2x4xf64>, %b: tensor<3x2x5xf64>) -> tensor<2x4x5xf64> {
  %0 = oriel.matmul %a, %b {transpose_lhs = true, row_dims = 2 : i64, sum_dims = 2 : i64} : (tensor<3x2x2x4xf64>, tensor<3x2x5xf64>) -> tensor<2x4x5xf64>
  return %0 : tensor<2x4x5xf64>
}

func.func @matmul_dims_tt(%a: tensor<2x4x3xf64>, %b: tensor<2x2x2x4xf64>) -> tensor<2x3x2x2xf64> {
  %0 = oriel.matmul %a, %b {transpose_lhs = true, transpose_rhs = true, column_dims = 2 : i64} : (tensor<2x4x3xf64>, tensor<2x2x2x4xf64>) -> tensor<2x3x2x2xf64>
  return %0 : tensor<2x3x2x2xf64>
}

func.func @linear_plain(%x: tensor<2x3x4xf64>, %w: tensor<4x5xf64>) -> tensor<2x3x5xf64> {
  %0 = oriel.linear %x, %w : (tensor<2x3x4xf64>, tensor<4x5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @linear_bias(%x: tensor<2x3x4xf64>, %w: tensor<4x5xf64>, %b: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %0 = oriel.linear %x, %w, %b : (tensor<2x3x4xf64>, tensor<4x5xf64>, tensor<5xf64>) -> tensor<2x3x5xf64>
  return %0 : tensor<2x3x5xf64>
}

func.func @linear_transposed(%x: tensor<3x4xf64>, %w: tensor<5x4xf64>) -> tensor<3x5xf64> {
  %0 = oriel.linear %x, %w {transpose_weight = true} : (tensor<3x4xf64>, tensor<5x4xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}

func.func @linear_transposed_bias(%x: tensor<2x2x3x4xf64>, %w: tensor<5x4xf64>, %b: tensor<5xf64>) -> tensor<2x2x3x5xf64> {
  %0 = oriel.linear %x, %w, %b {transpose_weight = true} : (tensor<2x2x3x4xf64>, tensor<5x4xf64>, tensor<5xf64>) -> tensor<2x2x3x5xf64>
  return %0 : tensor<2x2x3x5xf64>
}

func.func @linear_vector(%x: tensor<4xf64>, %w: tensor<4x5xf64>, %b: tensor<5xf64>) -> tensor<5xf64> {
  %0 = oriel.linear %x, %w, %b : (tensor<4xf64>, tensor<4x5xf64>, tensor<5xf64>) -> tensor<5xf64>
  return %0 : tensor<5xf64>
}

// Stride and kernel equal: the patch embedding of a vision tower.
func.func @conv_patches(%x: tensor<2x3x4x6xf64>, %w: tensor<4x3x2x2xf64>) -> tensor<2x4x2x3xf64> {
  %0 = oriel.conv %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x4x6xf64>, tensor<4x3x2x2xf64>) -> tensor<2x4x2x3xf64>
  return %0 : tensor<2x4x2x3xf64>
}

func.func @conv_padded_bias(%x: tensor<1x2x4x4xf64>, %w: tensor<3x2x3x3xf64>, %b: tensor<3xf64>) -> tensor<1x3x4x4xf64> {
  %0 = oriel.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 1, 1, 1, 1>, dilations = array<i64: 1, 1>} : (tensor<1x2x4x4xf64>, tensor<3x2x3x3xf64>, tensor<3xf64>) -> tensor<1x3x4x4xf64>
  return %0 : tensor<1x3x4x4xf64>
}

// Each spatial dimension its own stride, padding and dilation; the last row is not covered.
func.func @conv_uneven(%x: tensor<1x2x5x4xf64>, %w: tensor<3x2x3x2xf64>) -> tensor<1x3x2x3xf64> {
  %0 = oriel.conv %x, %w {strides = array<i64: 2, 1>, pads = array<i64: 0, 1, 0, 0>, dilations = array<i64: 1, 2>} : (tensor<1x2x5x4xf64>, tensor<3x2x3x2xf64>) -> tensor<1x3x2x3xf64>
  return %0 : tensor<1x3x2x3xf64>
}

func.func @conv_grouped(%x: tensor<1x4x3x3xf64>, %w: tensor<6x2x2x2xf64>, %b: tensor<6xf64>) -> tensor<1x6x2x2xf64> {
  %0 = oriel.conv %x, %w, %b {strides = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>, group = 2 : i64} : (tensor<1x4x3x3xf64>, tensor<6x2x2x2xf64>, tensor<6xf64>) -> tensor<1x6x2x2xf64>
  return %0 : tensor<1x6x2x2xf64>
}

func.func @conv_one_dimension(%x: tensor<2x2x6xf64>, %w: tensor<3x2x3xf64>) -> tensor<2x3x4xf64> {
  %0 = oriel.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<2x2x6xf64>, tensor<3x2x3xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @conv_input_grad(%x: tensor<2x4x3x3xf64>, %w: tensor<4x2x3x2xf64>) -> tensor<2x4x6x5xf64> {
  %0 = oriel.conv_input_grad %x, %w {strides = array<i64: 2, 2>, pads = array<i64: 1, 0, 0, 1>, dilations = array<i64: 1, 1>, group = 2 : i64} : (tensor<2x4x3x3xf64>, tensor<4x2x3x2xf64>) -> tensor<2x4x6x5xf64>
  return %0 : tensor<2x4x6x5xf64>
}

func.func @triangular_solve(%t: tensor<2x3x3xf64> {check.low = 1.0, check.high = 2.0}, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %0 = oriel.triangular_solve %t, %b : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %0 : tensor<2x3x2xf64>
}

func.func @triangular_solve_unit(%t: tensor<2x3x3xf64>, %b: tensor<2x3x2xf64>) -> tensor<2x3x2xf64> {
  %0 = oriel.triangular_solve %t, %b {unit_diagonal = true} : (tensor<2x3x3xf64>, tensor<2x3x2xf64>) -> tensor<2x3x2xf64>
  return %0 : tensor<2x3x2xf64>
}

func.func @triangular_solve_transposed(%t: tensor<3x3xf64>, %b: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %0 = oriel.triangular_solve %t, %b {transpose = true, unit_diagonal = true} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %0 : tensor<3x2xf64>
}

func.func @triangular_solve_upper(%t: tensor<3x3xf64> {check.low = 1.0, check.high = 2.0}, %b: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %0 = oriel.triangular_solve %t, %b {upper = true} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %0 : tensor<3x2xf64>
}

func.func @triangular_solve_upper_transposed(%t: tensor<3x3xf64>, %b: tensor<3x2xf64>) -> tensor<3x2xf64> {
  %0 = oriel.triangular_solve %t, %b {transpose = true, unit_diagonal = true, upper = true} : (tensor<3x3xf64>, tensor<3x2xf64>) -> tensor<3x2xf64>
  return %0 : tensor<3x2xf64>
}
