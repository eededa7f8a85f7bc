// Reductions of rows with what goes before and after, each function one launch.

// One value for each row.
func.func @sum(%a: tensor<5x300xf32>) -> tensor<5xf32> {
  %0 = oriel.reduce_sum %a {dims = array<i64: 1>} : (tensor<5x300xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// Rows shorter than a block of CUDA, several of which a block takes; a mean of squares.
func.func @mean_of_squares(%a: tensor<7x33xf32>) -> tensor<7x1xf32> {
  %0 = oriel.mul %a, %a : (tensor<7x33xf32>, tensor<7x33xf32>) -> tensor<7x33xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<7x33xf32>) -> tensor<7x1xf32>
  return %1 : tensor<7x1xf32>
}

func.func @softmax(%a: tensor<3x4x1000xf32>) -> tensor<3x4x1000xf32> {
  %0 = oriel.reduce_max %a {dims = array<i64: 2>, keep_dims = true} : (tensor<3x4x1000xf32>) -> tensor<3x4x1xf32>
  %1 = oriel.sub %a, %0 : (tensor<3x4x1000xf32>, tensor<3x4x1xf32>) -> tensor<3x4x1000xf32>
  %2 = oriel.exp %1 : (tensor<3x4x1000xf32>) -> tensor<3x4x1000xf32>
  %3 = oriel.reduce_sum %2 {dims = array<i64: 2>, keep_dims = true} : (tensor<3x4x1000xf32>) -> tensor<3x4x1xf32>
  %4 = oriel.div %2, %3 : (tensor<3x4x1000xf32>, tensor<3x4x1xf32>) -> tensor<3x4x1000xf32>
  return %4 : tensor<3x4x1000xf32>
}

// With a weight for each column, and a statistic that others use, too.
func.func @rms_norm(%a: tensor<9x256xf32>, %w: tensor<256xf32>, %epsilon: tensor<f32> {check.low = 0.001, check.high = 0.01}) -> (tensor<9x256xf32>, tensor<9x1xf32>) {
  %0 = oriel.mul %a, %a : (tensor<9x256xf32>, tensor<9x256xf32>) -> tensor<9x256xf32>
  %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<9x256xf32>) -> tensor<9x1xf32>
  %2 = oriel.add %1, %epsilon : (tensor<9x1xf32>, tensor<f32>) -> tensor<9x1xf32>
  %3 = oriel.rsqrt %2 : (tensor<9x1xf32>) -> tensor<9x1xf32>
  %4 = oriel.mul %a, %3 : (tensor<9x256xf32>, tensor<9x1xf32>) -> tensor<9x256xf32>
  %5 = oriel.mul %4, %w : (tensor<9x256xf32>, tensor<256xf32>) -> tensor<9x256xf32>
  return %5, %3 : tensor<9x256xf32>, tensor<9x1xf32>
}

func.func @layer_norm_bf16(%a: tensor<6x500xbf16>, %w: tensor<500xbf16>) -> tensor<6x500xbf16> {
  %0 = oriel.reduce_mean %a {dims = array<i64: 1>, keep_dims = true} : (tensor<6x500xbf16>) -> tensor<6x1xbf16>
  %1 = oriel.sub %a, %0 : (tensor<6x500xbf16>, tensor<6x1xbf16>) -> tensor<6x500xbf16>
  %2 = oriel.cast %1 : (tensor<6x500xbf16>) -> tensor<6x500xf32>
  %3 = oriel.mul %2, %2 : (tensor<6x500xf32>, tensor<6x500xf32>) -> tensor<6x500xf32>
  %4 = oriel.reduce_mean %3 {dims = array<i64: 1>, keep_dims = true} : (tensor<6x500xf32>) -> tensor<6x1xf32>
  %5 = oriel.rsqrt %4 : (tensor<6x1xf32>) -> tensor<6x1xf32>
  %6 = oriel.mul %2, %5 : (tensor<6x500xf32>, tensor<6x1xf32>) -> tensor<6x500xf32>
  %7 = oriel.cast %6 : (tensor<6x500xf32>) -> tensor<6x500xbf16>
  %8 = oriel.mul %7, %w : (tensor<6x500xbf16>, tensor<500xbf16>) -> tensor<6x500xbf16>
  return %8 : tensor<6x500xbf16>
}

// Over several dimensions, with operands that repeat along rows and columns; the widest rows' lanes
// are not filled by the last elements.
func.func @dimensions(%a: tensor<2x3x4x70xf32>, %b: tensor<3x1x70xf32>, %c: tensor<2x1x1x1xf32>) -> (tensor<2x3xf32>, tensor<2x3x1x1xf32>) {
  %0 = oriel.mul %a, %b : (tensor<2x3x4x70xf32>, tensor<3x1x70xf32>) -> tensor<2x3x4x70xf32>
  %1 = oriel.add %0, %c : (tensor<2x3x4x70xf32>, tensor<2x1x1x1xf32>) -> tensor<2x3x4x70xf32>
  %2 = oriel.reduce_min %1 {dims = array<i64: 2, 3>} : (tensor<2x3x4x70xf32>) -> tensor<2x3xf32>
  %3 = oriel.reduce_sum %1 {dims = array<i64: 2, 3>, keep_dims = true} : (tensor<2x3x4x70xf32>) -> tensor<2x3x1x1xf32>
  %4 = oriel.mul %3, %c : (tensor<2x3x1x1xf32>, tensor<2x1x1x1xf32>) -> tensor<2x3x1x1xf32>
  return %2, %4 : tensor<2x3xf32>, tensor<2x3x1x1xf32>
}

// As many rows as columns: the weight goes along columns, though the sums have its type.
func.func @square(%a: tensor<40x40xf32>, %w: tensor<40xf32>) -> tensor<40xf32> {
  %0 = oriel.mul %a, %w : (tensor<40x40xf32>, tensor<40xf32>) -> tensor<40x40xf32>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 1>} : (tensor<40x40xf32>) -> tensor<40xf32>
  return %1 : tensor<40xf32>
}

// All elements, to one; f64, which is neither widened nor rounded.
func.func @all(%a: tensor<2000xf64>) -> tensor<f64> {
  %0 = oriel.neg %a : (tensor<2000xf64>) -> tensor<2000xf64>
  %1 = oriel.reduce_sum %0 {dims = array<i64: 0>} : (tensor<2000xf64>) -> tensor<f64>
  return %1 : tensor<f64>
}
