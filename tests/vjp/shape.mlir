// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @reshape(%x: tensor<2x6xf64>) -> tensor<3x2x2xf64> {
  %0 = oriel.reshape %x : (tensor<2x6xf64>) -> tensor<3x2x2xf64>
  return %0 : tensor<3x2x2xf64>
}

func.func @reshape_scalar(%x: tensor<1x1xf64>) -> tensor<f64> {
  %0 = oriel.reshape %x : (tensor<1x1xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// Not its own inverse.
func.func @transpose(%x: tensor<2x3x4xf64>) -> tensor<4x2x3xf64> {
  %0 = oriel.transpose %x {permutation = array<i64: 2, 0, 1>} : (tensor<2x3x4xf64>) -> tensor<4x2x3xf64>
  return %0 : tensor<4x2x3xf64>
}

func.func @broadcast(%x: tensor<3x1xf64>) -> tensor<2x3x4xf64> {
  %0 = oriel.broadcast %x : (tensor<3x1xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

func.func @broadcast_scalar(%x: tensor<f64>) -> tensor<2x3xf64> {
  %0 = oriel.broadcast %x : (tensor<f64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @broadcast_same_rank(%x: tensor<1x3xf64>) -> tensor<4x3xf64> {
  %0 = oriel.broadcast %x : (tensor<1x3xf64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}

func.func @slice(%x: tensor<4x5xf64>) -> tensor<2x4xf64> {
  %0 = oriel.slice %x {starts = array<i64: 1, 0>, limits = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<4x5xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// Elements 1, 4, 7 of the last dimension.
func.func @slice_strided(%x: tensor<4x8xf64>) -> tensor<2x3xf64> {
  %0 = oriel.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 4, 8>, strides = array<i64: 2, 3>} : (tensor<4x8xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// Two elements behind the last one taken.
func.func @slice_stride_past_end(%x: tensor<8xf64>) -> tensor<3xf64> {
  %0 = oriel.slice %x {starts = array<i64: 0>, limits = array<i64: 7>, strides = array<i64: 3>} : (tensor<8xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// Two that lie side by side, one that overlaps them, and one alone.
func.func @slices(%x: tensor<2x9xf64>) -> tensor<2x2xf64> {
  %0 = oriel.slice %x {starts = array<i64: 0, 1>, limits = array<i64: 2, 3>, strides = array<i64: 1, 1>} : (tensor<2x9xf64>) -> tensor<2x2xf64>
  %1 = oriel.slice %x {starts = array<i64: 0, 3>, limits = array<i64: 2, 5>, strides = array<i64: 1, 1>} : (tensor<2x9xf64>) -> tensor<2x2xf64>
  %2 = oriel.slice %x {starts = array<i64: 0, 2>, limits = array<i64: 2, 4>, strides = array<i64: 1, 1>} : (tensor<2x9xf64>) -> tensor<2x2xf64>
  %3 = oriel.slice %x {starts = array<i64: 0, 7>, limits = array<i64: 2, 9>, strides = array<i64: 1, 1>} : (tensor<2x9xf64>) -> tensor<2x2xf64>
  %4 = oriel.mul %0, %1 : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %5 = oriel.mul %2, %3 : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  %6 = oriel.mul %4, %5 : (tensor<2x2xf64>, tensor<2x2xf64>) -> tensor<2x2xf64>
  return %6 : tensor<2x2xf64>
}

// Of a sum, of one of its operands, and of the sum of a tensor with itself.
func.func @slices_of_sums(%x: tensor<6xf64>) -> tensor<3xf64> {
  %0 = oriel.exp %x : (tensor<6xf64>) -> tensor<6xf64>
  %1 = oriel.add %x, %0 : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
  %2 = oriel.add %0, %0 : (tensor<6xf64>, tensor<6xf64>) -> tensor<6xf64>
  %3 = oriel.slice %1 {starts = array<i64: 0>, limits = array<i64: 3>, strides = array<i64: 1>} : (tensor<6xf64>) -> tensor<3xf64>
  %4 = oriel.slice %x {starts = array<i64: 3>, limits = array<i64: 6>, strides = array<i64: 1>} : (tensor<6xf64>) -> tensor<3xf64>
  %5 = oriel.slice %2 {starts = array<i64: 2>, limits = array<i64: 5>, strides = array<i64: 1>} : (tensor<6xf64>) -> tensor<3xf64>
  %6 = oriel.mul %3, %4 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %7 = oriel.mul %6, %5 : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  return %7 : tensor<3xf64>
}

func.func @pad(%x: tensor<2x3xf64>) -> tensor<5x4xf64> {
  %0 = oriel.pad %x {low = array<i64: 1, 0>, high = array<i64: 2, 1>, interior = array<i64: 0, 0>, value = 3.0} : (tensor<2x3xf64>) -> tensor<5x4xf64>
  return %0 : tensor<5x4xf64>
}

func.func @pad_interior(%x: tensor<2x3xf64>) -> tensor<4x8xf64> {
  %0 = oriel.pad %x {low = array<i64: 0, 1>, high = array<i64: 0, 0>, interior = array<i64: 2, 2>} : (tensor<2x3xf64>) -> tensor<4x8xf64>
  return %0 : tensor<4x8xf64>
}

func.func @concat(%a: tensor<2x1x3xf64>, %b: tensor<2x2x3xf64>, %c: tensor<2x3x3xf64>) -> tensor<2x6x3xf64> {
  %0 = oriel.concat %a, %b, %c {dim = 1 : i64} : (tensor<2x1x3xf64>, tensor<2x2x3xf64>, tensor<2x3x3xf64>) -> tensor<2x6x3xf64>
  return %0 : tensor<2x6x3xf64>
}

// The same tensor twice: its cotangents add up.
func.func @concat_repeated(%a: tensor<2x3xf64>) -> tensor<4x3xf64> {
  %0 = oriel.concat %a, %a {dim = 0 : i64} : (tensor<2x3xf64>, tensor<2x3xf64>) -> tensor<4x3xf64>
  return %0 : tensor<4x3xf64>
}

// An embedding: rows 1 and 3 are picked twice, row 0 never, and -1 is the last.
func.func @gather_rows(%t: tensor<5x3xf64>) -> tensor<2x3x3xf64> {
  %i = oriel.constant {value = dense<[[1, 3, 3], [2, 1, -1]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.gather %t, %i {dim = 0 : i64} : (tensor<5x3xf64>, tensor<2x3xi64>) -> tensor<2x3x3xf64>
  return %0 : tensor<2x3x3xf64>
}

func.func @gather_middle(%t: tensor<2x4x3xf64>) -> tensor<2x2x3xf64> {
  %i = oriel.constant {value = dense<[3, 0]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = oriel.gather %t, %i {dim = 1 : i64} : (tensor<2x4x3xf64>, tensor<2xi64>) -> tensor<2x2x3xf64>
  return %0 : tensor<2x2x3xf64>
}

// One index without dimensions removes the dimension.
func.func @gather_one(%t: tensor<2x4xf64>) -> tensor<2xf64> {
  %i = oriel.constant {value = dense<2> : tensor<i32>} : () -> tensor<i32>
  %0 = oriel.gather %t, %i {dim = 1 : i64} : (tensor<2x4xf64>, tensor<i32>) -> tensor<2xf64>
  return %0 : tensor<2xf64>
}

func.func @reduce_sum_last(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %0 = oriel.reduce_sum %x {dims = array<i64: 1>} : (tensor<3x5xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

func.func @reduce_sum_kept(%x: tensor<2x3x4xf64>) -> tensor<1x3x1xf64> {
  %0 = oriel.reduce_sum %x {dims = array<i64: 0, 2>, keep_dims = true} : (tensor<2x3x4xf64>) -> tensor<1x3x1xf64>
  return %0 : tensor<1x3x1xf64>
}

func.func @reduce_sum_all(%x: tensor<2x3xf64>) -> tensor<f64> {
  %0 = oriel.reduce_sum %x {dims = array<i64: 0, 1>} : (tensor<2x3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

func.func @reduce_mean_last(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %0 = oriel.reduce_mean %x {dims = array<i64: 1>} : (tensor<3x5xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

func.func @reduce_mean_kept(%x: tensor<2x3x4xf64>) -> tensor<1x3x1xf64> {
  %0 = oriel.reduce_mean %x {dims = array<i64: 0, 2>, keep_dims = true} : (tensor<2x3x4xf64>) -> tensor<1x3x1xf64>
  return %0 : tensor<1x3x1xf64>
}

func.func @reduce_mean_all(%x: tensor<2x3xf64>) -> tensor<f64> {
  %0 = oriel.reduce_mean %x {dims = array<i64: 0, 1>} : (tensor<2x3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

func.func @reduce_max_last(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %0 = oriel.reduce_max %x {dims = array<i64: 1>} : (tensor<3x5xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

func.func @reduce_max_kept(%x: tensor<2x3x4xf64>) -> tensor<1x3x1xf64> {
  %0 = oriel.reduce_max %x {dims = array<i64: 0, 2>, keep_dims = true} : (tensor<2x3x4xf64>) -> tensor<1x3x1xf64>
  return %0 : tensor<1x3x1xf64>
}

func.func @reduce_max_all(%x: tensor<2x3xf64>) -> tensor<f64> {
  %0 = oriel.reduce_max %x {dims = array<i64: 0, 1>} : (tensor<2x3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

func.func @reduce_min_last(%x: tensor<3x5xf64>) -> tensor<3xf64> {
  %0 = oriel.reduce_min %x {dims = array<i64: 1>} : (tensor<3x5xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

func.func @reduce_min_kept(%x: tensor<2x3x4xf64>) -> tensor<1x3x1xf64> {
  %0 = oriel.reduce_min %x {dims = array<i64: 0, 2>, keep_dims = true} : (tensor<2x3x4xf64>) -> tensor<1x3x1xf64>
  return %0 : tensor<1x3x1xf64>
}

func.func @reduce_min_all(%x: tensor<2x3xf64>) -> tensor<f64> {
  %0 = oriel.reduce_min %x {dims = array<i64: 0, 1>} : (tensor<2x3xf64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// As pooling has it; of elements that differ the gradient is the same.
func.func @reduce_max_first(%x: tensor<2x5x3xf64>) -> tensor<2x3xf64> {
  %0 = oriel.reduce_max %x {dims = array<i64: 1>, oriel.first_of_equal} : (tensor<2x5x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// Two equal elements share the cotangent.
func.func @reduce_max_tie(%x: tensor<3x2xf64> {check.low = 1.0, check.high = 1.0}) -> tensor<3xf64> {
  %0 = oriel.reduce_max %x {dims = array<i64: 1>} : (tensor<3x2xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

// Two equal elements share the cotangent.
func.func @reduce_min_tie(%x: tensor<3x2xf64> {check.low = 1.0, check.high = 1.0}) -> tensor<3xf64> {
  %0 = oriel.reduce_min %x {dims = array<i64: 1>} : (tensor<3x2xf64>) -> tensor<3xf64>
  return %0 : tensor<3xf64>
}

func.func @cumsum(%x: tensor<2x4x3xf64>) -> tensor<2x4x3xf64> {
  %0 = oriel.cumsum %x {dim = 1 : i64} : (tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}

func.func @cumsum_reverse(%x: tensor<2x4x3xf64>) -> tensor<2x4x3xf64> {
  %0 = oriel.cumsum %x {dim = 1 : i64, reverse = true} : (tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}

func.func @cumsum_exclusive(%x: tensor<2x4x3xf64>) -> tensor<2x4x3xf64> {
  %0 = oriel.cumsum %x {dim = 1 : i64, exclusive = true} : (tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}

func.func @cumsum_exclusive_reverse(%x: tensor<2x4x3xf64>) -> tensor<2x4x3xf64> {
  %0 = oriel.cumsum %x {dim = 1 : i64, exclusive = true, reverse = true} : (tensor<2x4x3xf64>) -> tensor<2x4x3xf64>
  return %0 : tensor<2x4x3xf64>
}

// Row 1 is added to twice.
func.func @scatter_add(%u: tensor<3x2xf64>) -> tensor<4x2xf64> {
  %i = oriel.constant {value = dense<[1, 3, 1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = oriel.scatter_add %i, %u {dim = 0 : i64} : (tensor<3xi64>, tensor<3x2xf64>) -> tensor<4x2xf64>
  return %0 : tensor<4x2xf64>
}

func.func @scatter_add_last(%u: tensor<2x3xf64>) -> tensor<2x4xf64> {
  %i = oriel.constant {value = dense<[0, -1, 0]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = oriel.scatter_add %i, %u {dim = 1 : i64} : (tensor<3xi64>, tensor<2x3xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

func.func @reduce_prod(%x: tensor<2x3x4xf64>) -> tensor<3x1xf64> {
  %0 = oriel.reduce_prod %x {dims = array<i64: 0, 2>} : (tensor<2x3x4xf64>) -> tensor<3xf64>
  %1 = oriel.reshape %0 : (tensor<3xf64>) -> tensor<3x1xf64>
  return %1 : tensor<3x1xf64>
}

// Rows with no zero, one and two: x is 0, and only steps of finite differences move it.
func.func @reduce_prod_of_zeros(%x: tensor<3x4xf64> {check.low = 0.0, check.high = 0.0}) -> tensor<3xf64> {
  %c = oriel.constant {value = dense<[[1.5, 2.0, -1.0, 0.5], [1.5, 0.0, -1.0, 0.5], [0.0, 2.0, 0.0, 0.5]]> : tensor<3x4xf64>} : () -> tensor<3x4xf64>
  %0 = oriel.add %x, %c : (tensor<3x4xf64>, tensor<3x4xf64>) -> tensor<3x4xf64>
  %1 = oriel.reduce_prod %0 {dims = array<i64: 1>} : (tensor<3x4xf64>) -> tensor<3xf64>
  return %1 : tensor<3xf64>
}

// Of each row by indices of its own, one of them twice.
func.func @gather_in_rows(%x: tensor<2x4xf64>) -> tensor<2x3xf64> {
  %i = oriel.constant {value = dense<[[0, 2, 0], [3, -1, 1]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.gather %x, %i {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<2x4xf64>, tensor<2x3xi64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

func.func @scatter_in_rows(%u: tensor<2x3x2xf64>) -> tensor<2x4x2xf64> {
  %i = oriel.constant {value = dense<[[0, 2, 0], [3, -1, 1]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.scatter_add %i, %u {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<2x3xi64>, tensor<2x3x2xf64>) -> tensor<2x4x2xf64>
  return %0 : tensor<2x4x2xf64>
}
