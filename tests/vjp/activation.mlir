// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @gelu(%x: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}) -> tensor<3x7xf64> {
  %0 = oriel.activation %x {kind = "gelu"} : (tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @gated_gelu(%g: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}, %u: tensor<3x7xf64>) -> tensor<3x7xf64> {
  %0 = oriel.gated_activation %g, %u {kind = "gelu"} : (tensor<3x7xf64>, tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @gelu_tanh(%x: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}) -> tensor<3x7xf64> {
  %0 = oriel.activation %x {kind = "gelu_tanh"} : (tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @gated_gelu_tanh(%g: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}, %u: tensor<3x7xf64>) -> tensor<3x7xf64> {
  %0 = oriel.gated_activation %g, %u {kind = "gelu_tanh"} : (tensor<3x7xf64>, tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @gelu_quick(%x: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}) -> tensor<3x7xf64> {
  %0 = oriel.activation %x {kind = "gelu_quick"} : (tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @gated_gelu_quick(%g: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}, %u: tensor<3x7xf64>) -> tensor<3x7xf64> {
  %0 = oriel.gated_activation %g, %u {kind = "gelu_quick"} : (tensor<3x7xf64>, tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @silu(%x: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}) -> tensor<3x7xf64> {
  %0 = oriel.activation %x {kind = "silu"} : (tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}

func.func @gated_silu(%g: tensor<3x7xf64> {check.low = -4.0, check.high = 4.0}, %u: tensor<3x7xf64>) -> tensor<3x7xf64> {
  %0 = oriel.gated_activation %g, %u {kind = "silu"} : (tensor<3x7xf64>, tensor<3x7xf64>) -> tensor<3x7xf64>
  return %0 : tensor<3x7xf64>
}
