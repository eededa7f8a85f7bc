// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

// Two choices of one row each; expert 1 is chosen by none, -1 is the last one.
func.func @expert_linear(%x: tensor<3x4xf64>, %w: tensor<4x4x5xf64>) -> tensor<3x2x5xf64> {
  %i = oriel.constant {value = dense<[[0, 2], [3, 0], [2, -1]]> : tensor<3x2xi64>} : () -> tensor<3x2xi64>
  %0 = oriel.expert_linear %x, %w, %i : (tensor<3x4xf64>, tensor<4x4x5xf64>, tensor<3x2xi64>) -> tensor<3x2x5xf64>
  return %0 : tensor<3x2x5xf64>
}

// A row for each choice, and the weight as layers store it.
func.func @expert_linear_transposed(%x: tensor<2x2x2x3xf64>, %w: tensor<2x5x3xf64>) -> tensor<2x2x2x5xf64> {
  %i = oriel.constant {value = dense<[[[0, 1], [1, 1]], [[0, 0], [1, 0]]]> : tensor<2x2x2xi64>} : () -> tensor<2x2x2xi64>
  %0 = oriel.expert_linear %x, %w, %i {transpose_weight = true} : (tensor<2x2x2x3xf64>, tensor<2x5x3xf64>, tensor<2x2x2xi64>) -> tensor<2x2x2x5xf64>
  return %0 : tensor<2x2x2x5xf64>
}
