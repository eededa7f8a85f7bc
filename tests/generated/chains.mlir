// Functions that generated_value_test compiles to one launch each, and compares bit by bit with the
// ops' own kernels.

func.func @sums(%a: tensor<3x37xf32>, %b: tensor<3x37xf32>, %c: tensor<3x37xf32>, %d: tensor<37xf32>) -> tensor<3x37xf32> {
  %0 = oriel.add %a, %b : (tensor<3x37xf32>, tensor<3x37xf32>) -> tensor<3x37xf32>
  %1 = oriel.mul %0, %c : (tensor<3x37xf32>, tensor<3x37xf32>) -> tensor<3x37xf32>
  %2 = oriel.sub %1, %d : (tensor<3x37xf32>, tensor<37xf32>) -> tensor<3x37xf32>
  %3 = oriel.div %2, %b : (tensor<3x37xf32>, tensor<3x37xf32>) -> tensor<3x37xf32>
  return %3 : tensor<3x37xf32>
}

// A product and a sum are rounded each.
func.func @product_and_sum(%a: tensor<4099xf32>, %b: tensor<4099xf32>, %c: tensor<4099xf32>) -> tensor<4099xf32> {
  %0 = oriel.mul %a, %b : (tensor<4099xf32>, tensor<4099xf32>) -> tensor<4099xf32>
  %1 = oriel.add %0, %c : (tensor<4099xf32>, tensor<4099xf32>) -> tensor<4099xf32>
  return %1 : tensor<4099xf32>
}

// Each value is rounded to bf16, also those in between.
func.func @bf16(%a: tensor<2x50x64xbf16>, %b: tensor<2x50x64xbf16>, %c: tensor<2x50x64xf32>) -> (tensor<2x50x64xbf16>, tensor<2x50x64xf32>) {
  %0 = oriel.cast %c : (tensor<2x50x64xf32>) -> tensor<2x50x64xbf16>
  %1 = oriel.add %a, %0 : (tensor<2x50x64xbf16>, tensor<2x50x64xbf16>) -> tensor<2x50x64xbf16>
  %2 = oriel.mul %1, %b : (tensor<2x50x64xbf16>, tensor<2x50x64xbf16>) -> tensor<2x50x64xbf16>
  %3 = oriel.cast %2 : (tensor<2x50x64xbf16>) -> tensor<2x50x64xf32>
  return %1, %3 : tensor<2x50x64xbf16>, tensor<2x50x64xf32>
}

func.func @unary(%a: tensor<1000xf32>) -> tensor<1000xf32> {
  %0 = oriel.neg %a : (tensor<1000xf32>) -> tensor<1000xf32>
  %1 = oriel.abs %0 : (tensor<1000xf32>) -> tensor<1000xf32>
  %2 = oriel.sqrt %1 : (tensor<1000xf32>) -> tensor<1000xf32>
  %3 = oriel.rsqrt %1 : (tensor<1000xf32>) -> tensor<1000xf32>
  %4 = oriel.reciprocal %3 : (tensor<1000xf32>) -> tensor<1000xf32>
  %5 = oriel.sign %a : (tensor<1000xf32>) -> tensor<1000xf32>
  %6 = oriel.relu %a : (tensor<1000xf32>) -> tensor<1000xf32>
  %7 = oriel.add %2, %4 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %8 = oriel.mul %5, %6 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  %9 = oriel.sub %7, %8 : (tensor<1000xf32>, tensor<1000xf32>) -> tensor<1000xf32>
  return %9 : tensor<1000xf32>
}

func.func @extremes(%a: tensor<9x8xf32>, %b: tensor<9x1xf32>, %c: tensor<f32>) -> (tensor<9x8xf32>, tensor<9x8xf32>) {
  %0 = oriel.max %a, %b : (tensor<9x8xf32>, tensor<9x1xf32>) -> tensor<9x8xf32>
  %1 = oriel.min %0, %c : (tensor<9x8xf32>, tensor<f32>) -> tensor<9x8xf32>
  %2 = oriel.relu %0 : (tensor<9x8xf32>) -> tensor<9x8xf32>
  return %1, %2 : tensor<9x8xf32>, tensor<9x8xf32>
}

func.func @comparisons(%a: tensor<5x40xf32>, %b: tensor<5x40xf32>) -> (tensor<5x40xi1>, tensor<5x40xf32>) {
  %0 = oriel.equal %a, %b : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xi1>
  %1 = oriel.less %a, %b : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xi1>
  %2 = oriel.less_equal %a, %b : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xi1>
  %3 = oriel.greater %a, %b : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xi1>
  %4 = oriel.greater_equal %a, %b : (tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xi1>
  %5 = oriel.and %2, %4 : (tensor<5x40xi1>, tensor<5x40xi1>) -> tensor<5x40xi1>
  %6 = oriel.or %0, %1 : (tensor<5x40xi1>, tensor<5x40xi1>) -> tensor<5x40xi1>
  %7 = oriel.xor %5, %6 : (tensor<5x40xi1>, tensor<5x40xi1>) -> tensor<5x40xi1>
  %8 = oriel.not %3 : (tensor<5x40xi1>) -> tensor<5x40xi1>
  %9 = oriel.or %7, %8 : (tensor<5x40xi1>, tensor<5x40xi1>) -> tensor<5x40xi1>
  %10 = oriel.select %9, %a, %b : (tensor<5x40xi1>, tensor<5x40xf32>, tensor<5x40xf32>) -> tensor<5x40xf32>
  return %7, %10 : tensor<5x40xi1>, tensor<5x40xf32>
}

func.func @casts(%a: tensor<77xi64>, %b: tensor<77xi32>, %c: tensor<77xi1>, %d: tensor<77xf64>) -> (tensor<77xf64>, tensor<77xbf16>, tensor<77xi1>) {
  %0 = oriel.cast %a : (tensor<77xi64>) -> tensor<77xi32>
  %1 = oriel.add %0, %b : (tensor<77xi32>, tensor<77xi32>) -> tensor<77xi32>
  %2 = oriel.cast %1 : (tensor<77xi32>) -> tensor<77xf64>
  %3 = oriel.cast %c : (tensor<77xi1>) -> tensor<77xf64>
  %4 = oriel.mul %2, %3 : (tensor<77xf64>, tensor<77xf64>) -> tensor<77xf64>
  %5 = oriel.add %4, %d : (tensor<77xf64>, tensor<77xf64>) -> tensor<77xf64>
  %6 = oriel.cast %5 : (tensor<77xf64>) -> tensor<77xbf16>
  %7 = oriel.cast %6 : (tensor<77xbf16>) -> tensor<77xi1>
  return %5, %6, %7 : tensor<77xf64>, tensor<77xbf16>, tensor<77xi1>
}

func.func @integers(%a: tensor<6x7xi64>, %b: tensor<6x7xi64>, %c: tensor<7xi64>) -> tensor<6x7xi64> {
  %0 = oriel.mul %a, %b : (tensor<6x7xi64>, tensor<6x7xi64>) -> tensor<6x7xi64>
  %1 = oriel.sub %0, %c : (tensor<6x7xi64>, tensor<7xi64>) -> tensor<6x7xi64>
  %2 = oriel.abs %1 : (tensor<6x7xi64>) -> tensor<6x7xi64>
  %3 = oriel.neg %2 : (tensor<6x7xi64>) -> tensor<6x7xi64>
  %4 = oriel.max %3, %a : (tensor<6x7xi64>, tensor<6x7xi64>) -> tensor<6x7xi64>
  %5 = oriel.min %4, %b : (tensor<6x7xi64>, tensor<6x7xi64>) -> tensor<6x7xi64>
  %6 = oriel.sign %5 : (tensor<6x7xi64>) -> tensor<6x7xi64>
  %7 = oriel.add %5, %6 : (tensor<6x7xi64>, tensor<6x7xi64>) -> tensor<6x7xi64>
  %8 = oriel.relu %7 : (tensor<6x7xi64>) -> tensor<6x7xi64>
  return %8 : tensor<6x7xi64>
}

func.func @f64(%a: tensor<130xf64>, %b: tensor<130xf64>) -> tensor<130xf64> {
  %0 = oriel.div %a, %b : (tensor<130xf64>, tensor<130xf64>) -> tensor<130xf64>
  %1 = oriel.abs %0 : (tensor<130xf64>) -> tensor<130xf64>
  %2 = oriel.rsqrt %1 : (tensor<130xf64>) -> tensor<130xf64>
  %3 = oriel.min %2, %b : (tensor<130xf64>, tensor<130xf64>) -> tensor<130xf64>
  return %3 : tensor<130xf64>
}

// Operands that repeat along outer, inner and middle dimensions.
func.func @broadcasts(%a: tensor<4x5x6xf32>, %b: tensor<5x1xf32>, %c: tensor<4x1x6xf32>, %d: tensor<1x1x1xf32>) -> tensor<4x5x6xf32> {
  %0 = oriel.mul %a, %b : (tensor<4x5x6xf32>, tensor<5x1xf32>) -> tensor<4x5x6xf32>
  %1 = oriel.add %0, %c : (tensor<4x5x6xf32>, tensor<4x1x6xf32>) -> tensor<4x5x6xf32>
  %2 = oriel.sub %1, %d : (tensor<4x5x6xf32>, tensor<1x1x1xf32>) -> tensor<4x5x6xf32>
  return %2 : tensor<4x5x6xf32>
}

func.func @scalars(%a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %0 = oriel.sqrt %a : (tensor<f32>) -> tensor<f32>
  %1 = oriel.mul %0, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %2 = oriel.max %1, %a : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %3 = oriel.reciprocal %2 : (tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
