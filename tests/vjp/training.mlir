// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

// The token count has no derivative; the sum of the losses has.
func.func @cross_entropy(%x: tensor<2x3x5xf64>) -> (tensor<f64>, tensor<f64>) {
  %l = oriel.constant {value = dense<[[1, 0, 4], [-100, 2, -100]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0, %1, %2 = oriel.cross_entropy %x, %l : (tensor<2x3x5xf64>, tensor<2x3xi64>) -> (tensor<f64>, tensor<f64>, tensor<2x3xf64>)
  return %0, %1 : tensor<f64>, tensor<f64>
}

func.func @cross_entropy_other_ignored(%x: tensor<4x5xf64>) -> tensor<f64> {
  %l = oriel.constant {value = dense<[1, 0, 0, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
  %0, %1, %2 = oriel.cross_entropy %x, %l {ignore_index = 0 : i64} : (tensor<4x5xf64>, tensor<4xi32>) -> (tensor<f64>, tensor<f64>, tensor<4xf64>)
  return %0 : tensor<f64>
}

// Each token's loss, with a cotangent of its own.
func.func @token_losses(%x: tensor<2x3x5xf64>) -> tensor<2x3xf64> {
  %l = oriel.constant {value = dense<[[1, 0, 4], [-100, 2, -100]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0, %1 = oriel.token_losses %x, %l : (tensor<2x3x5xf64>, tensor<2x3xi64>) -> (tensor<2x3xf64>, tensor<2x3xf64>)
  return %0 : tensor<2x3xf64>
}

func.func @token_losses_other_ignored(%x: tensor<4x6xf64>) -> tensor<4xf64> {
  %l = oriel.constant {value = dense<[1, 0, 5, 3]> : tensor<4xi32>} : () -> tensor<4xi32>
  %0, %1 = oriel.token_losses %x, %l {ignore_index = 0 : i64} : (tensor<4x6xf64>, tensor<4xi32>) -> (tensor<4xf64>, tensor<4xf64>)
  return %0 : tensor<4xf64>
}

// With a bias, by a weight as it is multiplied and one that is stored transposed.
func.func @linear_cross_entropy(%x: tensor<2x3x4xf64>, %w: tensor<4x6xf64>, %b: tensor<6xf64>) -> (tensor<f64>, tensor<f64>) {
  %l = oriel.constant {value = dense<[[1, 0, 4], [-100, 2, -100]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0, %1, %2 = oriel.linear_cross_entropy %x, %w, %l, %b : (tensor<2x3x4xf64>, tensor<4x6xf64>, tensor<2x3xi64>, tensor<6xf64>) -> (tensor<f64>, tensor<f64>, tensor<2x3xf64>)
  return %0, %1 : tensor<f64>, tensor<f64>
}

// Each token's.
func.func @linear_token_losses(%x: tensor<2x3x4xf64>, %w: tensor<4x6xf64>, %b: tensor<6xf64>) -> tensor<2x3xf64> {
  %l = oriel.constant {value = dense<[[1, 0, 4], [-100, 2, -100]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0, %1 = oriel.linear_token_losses %x, %w, %l, %b : (tensor<2x3x4xf64>, tensor<4x6xf64>, tensor<2x3xi64>, tensor<6xf64>) -> (tensor<2x3xf64>, tensor<2x3xf64>)
  return %0 : tensor<2x3xf64>
}

func.func @linear_cross_entropy_transposed(%x: tensor<4x4xf64>, %w: tensor<6x4xf64>) -> tensor<f64> {
  %l = oriel.constant {value = dense<[1, 0, 0, 5]> : tensor<4xi32>} : () -> tensor<4xi32>
  %0, %1, %2 = oriel.linear_cross_entropy %x, %w, %l {transpose_weight = true, ignore_index = 0 : i64} : (tensor<4x4xf64>, tensor<6x4xf64>, tensor<4xi32>) -> (tensor<f64>, tensor<f64>, tensor<4xf64>)
  return %0 : tensor<f64>
}
