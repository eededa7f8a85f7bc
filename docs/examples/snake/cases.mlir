// For oriel-opt --oriel-check-ops: the derivative, in f64, and the sharding rules of snake and of its derivative.
func.func @snake(%x: tensor<4x6xf64>, %alpha: tensor<6xf64> {check.low = 0.5}) -> tensor<4x6xf64> {
  %0 = acme.snake %x, %alpha : (tensor<4x6xf64>, tensor<6xf64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
