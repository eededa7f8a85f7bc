// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @masked_scatter(%x: tensor<2x4xf64>, %s: tensor<2x3xf64>) -> tensor<2x4xf64> {
  %m = oriel.constant {value = dense<[[true, false, true, false], [false, true, true, false]]> : tensor<2x4xi1>} : () -> tensor<2x4xi1>
  %0 = oriel.masked_scatter %x, %m, %s : (tensor<2x4xf64>, tensor<2x4xi1>, tensor<2x3xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

func.func @merge_features(%x: tensor<2x4x3xf64>, %f: tensor<2x2x3xf64>) -> tensor<2x4x3xf64> {
  %m = oriel.constant {value = dense<[[true, false, true, false], [false, true, true, false]]> : tensor<2x4xi1>} : () -> tensor<2x4xi1>
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x4x3xf64>, tensor<2x4xi1>, tensor<2x2x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}

// A sample without an image: its features are a dummy without a cotangent.
func.func @merge_features_absent(%x: tensor<2x4x3xf64>, %f: tensor<2x2x3xf64>) -> tensor<2x4x3xf64> {
  %m = oriel.constant {value = dense<[[false, false, false, false], [true, false, false, true]]> : tensor<2x4xi1>} : () -> tensor<2x4xi1>
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x4x3xf64>, tensor<2x4xi1>, tensor<2x2x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}
