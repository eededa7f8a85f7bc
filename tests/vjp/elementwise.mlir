// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @neg(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.neg %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @abs(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.abs %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @exp(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.exp %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @log(%x: tensor<2x5xf64> {check.low = 0.5, check.high = 3.0}) -> tensor<2x5xf64> {
  %0 = oriel.log %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @sqrt(%x: tensor<2x5xf64> {check.low = 0.5, check.high = 3.0}) -> tensor<2x5xf64> {
  %0 = oriel.sqrt %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

// A norm has the subgradient 0 where it is 0.
func.func @norm_of_zeros(%x: tensor<2x5xf64> {check.low = 0.0, check.high = 0.0}) -> tensor<2xf64> {
  %0 = oriel.mul %x, %x : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5xf64>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>} : (tensor<2x5xf64>) -> tensor<2xf64>
  %2 = oriel.sqrt %1 : (tensor<2xf64>) -> tensor<2xf64>
  return %2 : tensor<2xf64>
}

func.func @norm_of_zeros_by_cubes(%x: tensor<2x5xf64> {check.low = 0.0, check.high = 0.0}) -> tensor<2xf64> {
  %three = oriel.constant {value = dense<3.0> : tensor<f64>} : () -> tensor<f64>
  %third = oriel.constant {value = dense<0.333333333333333333> : tensor<f64>} : () -> tensor<f64>
  %0 = oriel.abs %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  %1 = oriel.pow %0, %three : (tensor<2x5xf64>, tensor<f64>) -> tensor<2x5xf64>
  %2 = oriel.reduce_sum %1 {dims = array<i64: 1>} : (tensor<2x5xf64>) -> tensor<2xf64>
  %3 = oriel.pow %2, %third : (tensor<2xf64>, tensor<f64>) -> tensor<2xf64>
  return %3 : tensor<2xf64>
}

func.func @rsqrt(%x: tensor<2x5xf64> {check.low = 0.5, check.high = 3.0}) -> tensor<2x5xf64> {
  %0 = oriel.rsqrt %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @reciprocal(%x: tensor<2x5xf64> {check.low = 0.5, check.high = 3.0}) -> tensor<2x5xf64> {
  %0 = oriel.reciprocal %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @sin(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.sin %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @cos(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.cos %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @tan(%x: tensor<2x5xf64> {check.low = -1.0, check.high = 1.0}) -> tensor<2x5xf64> {
  %0 = oriel.tan %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @asin(%x: tensor<2x5xf64> {check.low = -0.8, check.high = 0.8}) -> tensor<2x5xf64> {
  %0 = oriel.asin %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @acos(%x: tensor<2x5xf64> {check.low = -0.8, check.high = 0.8}) -> tensor<2x5xf64> {
  %0 = oriel.acos %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @atan(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.atan %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @sinh(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.sinh %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @cosh(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.cosh %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @asinh(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.asinh %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @acosh(%x: tensor<2x5xf64> {check.low = 1.5, check.high = 3.0}) -> tensor<2x5xf64> {
  %0 = oriel.acosh %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @atanh(%x: tensor<2x5xf64> {check.low = -0.8, check.high = 0.8}) -> tensor<2x5xf64> {
  %0 = oriel.atanh %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @tanh(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.tanh %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @sigmoid(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.sigmoid %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @erf(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.erf %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @relu(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.relu %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @sign(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.sign %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @floor(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.floor %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @ceil(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.ceil %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

func.func @round(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.round %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

// Beside what has a derivative.
func.func @floor_beside(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.floor %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  %1 = oriel.mul %0, %x : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5xf64>
  return %1 : tensor<2x5xf64>
}

// Of what has the derivative 0 anyway.
func.func @stop_gradient(%x: tensor<2x5xf64>) -> tensor<2x5xf64> {
  %0 = oriel.floor %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  %1 = oriel.stop_gradient %0 : (tensor<2x5xf64>) -> tensor<2x5xf64>
  %2 = oriel.mul %1, %x : (tensor<2x5xf64>, tensor<2x5xf64>) -> tensor<2x5xf64>
  return %2 : tensor<2x5xf64>
}

func.func @mod(%a: tensor<2x5xf64> {check.low = -4.0, check.high = 4.0}, %b: tensor<5xf64> {check.low = 0.5, check.high = 1.5}) -> tensor<2x5xf64> {
  %0 = oriel.mod %a, %b : (tensor<2x5xf64>, tensor<5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

// The derivative at 0 is 0, as the symmetric difference is.
func.func @abs_at_zero(%x: tensor<2x5xf64> {check.low = 0.0, check.high = 0.0}) -> tensor<2x5xf64> {
  %0 = oriel.abs %x : (tensor<2x5xf64>) -> tensor<2x5xf64>
  return %0 : tensor<2x5xf64>
}

// Each kind of broadcasting: the cotangent is summed over what repeats.
func.func @add_same(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @add_row(%a: tensor<2x3xf64>, %b: tensor<3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @add_column(%a: tensor<2x3xf64>, %b: tensor<2x1xf64>) -> tensor<2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<2x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @add_scalar(%a: tensor<f64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<f64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @add_outer(%a: tensor<2x1xf64>, %b: tensor<1x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<2x1xf64>, tensor<1x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @add_leading(%a: tensor<4x1x3xf64>, %b: tensor<2x1xf64>) -> tensor<4x2x3xf64> {
  %0 = oriel.add %a, %b : (tensor<4x1x3xf64>, tensor<2x1xf64>) -> tensor<4x2x3xf64>
  return %0 : tensor<4x2x3xf64>
}

func.func @sub_same(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.sub %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @sub_outer(%a: tensor<1x3xf64>, %b: tensor<2x1xf64>) -> tensor<2x3xf64> {
  %0 = oriel.sub %a, %b : (tensor<1x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @mul_same(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.mul %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @mul_outer(%a: tensor<1x3xf64>, %b: tensor<2x1xf64>) -> tensor<2x3xf64> {
  %0 = oriel.mul %a, %b : (tensor<1x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @div_same(%a: tensor<2x3xf64>, %b: tensor<2x3xf64> {check.low = 0.5, check.high = 2.0}) -> tensor<2x3xf64> {
  %0 = oriel.div %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @div_outer(%a: tensor<1x3xf64>, %b: tensor<2x1xf64> {check.low = 0.5, check.high = 2.0}) -> tensor<2x3xf64> {
  %0 = oriel.div %a, %b : (tensor<1x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @max_same(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.max %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @max_outer(%a: tensor<1x3xf64>, %b: tensor<2x1xf64>) -> tensor<2x3xf64> {
  %0 = oriel.max %a, %b : (tensor<1x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @min_same(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.min %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @min_outer(%a: tensor<1x3xf64>, %b: tensor<2x1xf64>) -> tensor<2x3xf64> {
  %0 = oriel.min %a, %b : (tensor<1x3xf64>, tensor<2x1xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @pow_same(%a: tensor<2x3xf64> {check.low = 0.5, check.high = 2.0}, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.pow %a, %b : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @pow_row(%a: tensor<2x3xf64> {check.low = 0.5, check.high = 2.0}, %b: tensor<3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.pow %a, %b : (tensor<2x3xf64>, tensor<3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// As pooling has it; of operands that differ the gradient is the same.
func.func @max_first(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.max %a, %b {oriel.first_of_equal} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// Equal operands share the cotangent in halves.
func.func @max_tie(%a: tensor<4xf64> {check.low = 1.0, check.high = 1.0}, %b: tensor<4xf64> {check.low = 1.0, check.high = 1.0}) -> tensor<4xf64> {
  %0 = oriel.max %a, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

func.func @min_tie(%a: tensor<4xf64> {check.low = 1.0, check.high = 1.0}, %b: tensor<4xf64> {check.low = 1.0, check.high = 1.0}) -> tensor<4xf64> {
  %0 = oriel.min %a, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// 0^b is flat in b, although log 0 is not finite.
func.func @pow_zero_base(%b: tensor<4xf64> {check.low = 2.0, check.high = 3.0}) -> tensor<4xf64> {
  %a = oriel.constant {value = dense<0.0> : tensor<4xf64>} : () -> tensor<4xf64>
  %0 = oriel.pow %a, %b : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// Defined for negative bases too.
func.func @pow_square(%a: tensor<4xf64>) -> tensor<4xf64> {
  %e = oriel.constant {value = dense<2.0> : tensor<f64>} : () -> tensor<f64>
  %0 = oriel.pow %a, %e : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// Defined for negative bases too.
func.func @pow_cube(%a: tensor<4xf64>) -> tensor<4xf64> {
  %e = oriel.constant {value = dense<3.0> : tensor<f64>} : () -> tensor<f64>
  %0 = oriel.pow %a, %e : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// 1 everywhere, at 0 included.
func.func @pow_to_zero(%a: tensor<4xf64> {check.low = 0.0, check.high = 0.0}) -> tensor<4xf64> {
  %e = oriel.constant {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %0 = oriel.pow %a, %e : (tensor<4xf64>, tensor<f64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// x^0 is 1 everywhere: not 0 * 0^-1.
func.func @pow_exponent_zero(%a: tensor<4xf64> {check.low = 0.0, check.high = 0.0}) -> tensor<4xf64> {
  %e = oriel.constant {value = dense<[0.0, 1.0, 2.0, 3.0]> : tensor<4xf64>} : () -> tensor<4xf64>
  %0 = oriel.pow %a, %e : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

func.func @select(%a: tensor<2x3xf64>, %b: tensor<2x3xf64>) -> tensor<2x3xf64> {
  %c = oriel.constant {value = dense<[[true, false, true], [false, false, true]]> : tensor<2x3xi1>} : () -> tensor<2x3xi1>
  %0 = oriel.select %c, %a, %b : (tensor<2x3xi1>, tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @select_broadcast(%a: tensor<f64>, %b: tensor<2x1x3xf64>) -> tensor<2x2x3xf64> {
  %c = oriel.constant {value = dense<[[true], [false]]> : tensor<2x1xi1>} : () -> tensor<2x1xi1>
  %0 = oriel.select %c, %a, %b : (tensor<2x1xi1>, tensor<f64>, tensor<2x1x3xf64>) -> tensor<2x2x3xf64>
  return %0 : tensor<2x2x3xf64>
}

// f32 has 7 digits: the function is linear, so that a large step loses none.
func.func @cast_through_f32(%x: tensor<6xf64>) -> tensor<6xf64> attributes {check.step = 1.0} {
  %0 = oriel.cast %x : (tensor<6xf64>) -> tensor<6xf32>
  %1 = oriel.cast %0 : (tensor<6xf32>) -> tensor<6xf64>
  return %1 : tensor<6xf64>
}

// Nothing passes through an integer.
func.func @cast_through_integer(%x: tensor<6xf64> {check.low = 0.1, check.high = 0.9}) -> tensor<6xf64> {
  %0 = oriel.cast %x : (tensor<6xf64>) -> tensor<6xi64>
  %1 = oriel.cast %0 : (tensor<6xi64>) -> tensor<6xf64>
  %2 = oriel.mul %1, %x : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
  return %2 : tensor<6xf64>
}

// A value used twice: its cotangents add up.
func.func @two_uses(%x: tensor<6xf64>) -> tensor<6xf64> {
  %0 = oriel.exp %x : (tensor<6xf64>) -> tensor<6xf64>
  %1 = oriel.sin %0 : (tensor<6xf64>) -> tensor<6xf64>
  %2 = oriel.mul %0, %1 : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
  %3 = oriel.mul %2, %x : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
  return %3 : tensor<6xf64>
}

// Two results, each with a cotangent.
func.func @two_results(%x: tensor<6xf64>) -> (tensor<6xf64>, tensor<6xf64>) {
  %0 = oriel.exp %x : (tensor<6xf64>) -> tensor<6xf64>
  %1 = oriel.tanh %0 : (tensor<6xf64>) -> tensor<6xf64>
  return %0, %1 : tensor<6xf64>, tensor<6xf64>
}

// By sample, which has two rows.
func.func @dropout(%x: tensor<4x3x6xf64>) -> tensor<4x3x6xf64> {
  %bits = oriel.constant {value = dense<[5, 9]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = oriel.dropout %x, %bits {ratio = 0.5, site = 7 : i64} : (tensor<4x3x6xf64>, tensor<2xi64>) -> tensor<4x3x6xf64>
  return %0 : tensor<4x3x6xf64>
}

func.func @dropout_of_one_sample(%x: tensor<4x6xf64>) -> tensor<4x6xf64> {
  %bits = oriel.constant {value = dense<5> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = oriel.dropout %x, %bits {ratio = 0.3, site = 7 : i64} : (tensor<4x6xf64>, tensor<1xi64>) -> tensor<4x6xf64>
  return %0 : tensor<4x6xf64>
}
