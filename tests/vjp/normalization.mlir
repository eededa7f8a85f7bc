// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @layer_norm(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>, %b: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %0, %1, %2 = oriel.layer_norm %x, %w, %b {epsilon = 1.0e-3} : (tensor<2x3x5xf64>, tensor<5xf64>, tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<2x3xf64>, tensor<2x3xf64>)
  return %0 : tensor<2x3x5xf64>
}

func.func @layer_norm_without_bias(%x: tensor<4x5xf64>, %w: tensor<5xf64>) -> tensor<4x5xf64> {
  %0, %1, %2 = oriel.layer_norm %x, %w {epsilon = 1.0e-3} : (tensor<4x5xf64>, tensor<5xf64>) -> (tensor<4x5xf64>, tensor<4xf64>, tensor<4xf64>)
  return %0 : tensor<4x5xf64>
}

func.func @rms_norm(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %0, %1 = oriel.rms_norm %x, %w {epsilon = 1.0e-3} : (tensor<2x3x5xf64>, tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<2x3xf64>)
  return %0 : tensor<2x3x5xf64>
}

// The weight is stored as its distance from 1.
func.func @rms_norm_weight_offset(%x: tensor<2x3x5xf64>, %w: tensor<5xf64>) -> tensor<2x3x5xf64> {
  %0, %1 = oriel.rms_norm %x, %w {epsilon = 1.0e-3, weight_offset = 1.0} : (tensor<2x3x5xf64>, tensor<5xf64>) -> (tensor<2x3x5xf64>, tensor<2x3xf64>)
  return %0 : tensor<2x3x5xf64>
}

func.func @softmax_last(%x: tensor<3x5xf64>) -> tensor<3x5xf64> {
  %0 = oriel.softmax %x {dim = 1 : i64} : (tensor<3x5xf64>) -> tensor<3x5xf64>
  return %0 : tensor<3x5xf64>
}

func.func @softmax_middle(%x: tensor<2x4x3xf64>) -> tensor<2x4x3xf64> {
  %0 = oriel.softmax %x {dim = 1 : i64} : (tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}
