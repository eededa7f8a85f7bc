// Functions that sharding_rule_test splits, beside those of tests/vjp: ops without a derivative,
// and shapes whose rules differ.

func.func @comparisons(%a: tensor<2x4xf64>, %b: tensor<4xf64>) -> (tensor<2x4xi1>, tensor<2x4xi1>) attributes {check.forward_only} {
  %0 = oriel.equal %a, %b : (tensor<2x4xf64>, tensor<4xf64>) -> tensor<2x4xi1>
  %1 = oriel.less %a, %b : (tensor<2x4xf64>, tensor<4xf64>) -> tensor<2x4xi1>
  %2 = oriel.less_equal %a, %b : (tensor<2x4xf64>, tensor<4xf64>) -> tensor<2x4xi1>
  %3 = oriel.greater %a, %b : (tensor<2x4xf64>, tensor<4xf64>) -> tensor<2x4xi1>
  %4 = oriel.greater_equal %a, %b : (tensor<2x4xf64>, tensor<4xf64>) -> tensor<2x4xi1>
  %5 = oriel.and %0, %1 : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  %6 = oriel.or %2, %3 : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  %7 = oriel.xor %4, %5 : (tensor<2x4xi1>, tensor<2x4xi1>) -> tensor<2x4xi1>
  %8 = oriel.not %7 : (tensor<2x4xi1>) -> tensor<2x4xi1>
  return %6, %8 : tensor<2x4xi1>, tensor<2x4xi1>
}

func.func @rounding(%a: tensor<2x4xf64>, %b: tensor<2x1xf64> {check.low = 1.0}) -> (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>) attributes {check.forward_only} {
  %0 = oriel.floor %a : (tensor<2x4xf64>) -> tensor<2x4xf64>
  %1 = oriel.ceil %a : (tensor<2x4xf64>) -> tensor<2x4xf64>
  %2 = oriel.sign %a : (tensor<2x4xf64>) -> tensor<2x4xf64>
  %3 = oriel.mod %a, %b : (tensor<2x4xf64>, tensor<2x1xf64>) -> tensor<2x4xf64>
  %4 = oriel.round %a : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0, %1, %2, %3, %4 : tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>
}

func.func @reductions(%a: tensor<2x4x3xf64>, %v: tensor<2x4xf64>) -> (tensor<2x3xf64>, tensor<2x1x3xi64>, tensor<2x4xi64>, tensor<2x2x3xi64>, tensor<2x4x1xi64>, tensor<2x4xi64>) attributes {check.forward_only} {
  %0 = oriel.reduce_prod %a {dims = array<i64: 1>} : (tensor<2x4x3xf64>) -> tensor<2x3xf64>
  %1 = oriel.argmax %a {dim = 1 : i64, keep_dims = true} : (tensor<2x4x3xf64>) -> tensor<2x1x3xi64>
  %2 = oriel.argmax %a {dim = 2 : i64} : (tensor<2x4x3xf64>) -> tensor<2x4xi64>
  %3 = oriel.topk %a {k = 2 : i64, dim = 1 : i64} : (tensor<2x4x3xf64>) -> tensor<2x2x3xi64>
  %4 = oriel.argmax %a {dim = 2 : i64, keep_dims = true} : (tensor<2x4x3xf64>) -> tensor<2x4x1xi64>
  %5 = oriel.remaining_from %a, %v : (tensor<2x4x3xf64>, tensor<2x4xf64>) -> tensor<2x4xi64>
  return %0, %1, %2, %3, %4, %5 : tensor<2x3xf64>, tensor<2x1x3xi64>, tensor<2x4xi64>, tensor<2x2x3xi64>, tensor<2x4x1xi64>, tensor<2x4xi64>
}

// A constant splits along dimensions in which it repeats.
func.func @constants() -> (tensor<2x4xi64>, tensor<4x2xf64>, tensor<2x4xf64>, tensor<2x2xf64>, tensor<2x3x2xi1>, tensor<2x8xi1>, tensor<2x2x2xi32>) {
  %0 = oriel.iota {dim = 1 : i64} : () -> tensor<2x4xi64>
  %3 = oriel.iota {dim = 0 : i64} : () -> tensor<4x2xf64>
  %1 = oriel.constant {value = dense<[[0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 3.0]]> : tensor<2x4xf64>} : () -> tensor<2x4xf64>
  %2 = oriel.constant {value = dense<5.0> : tensor<2x2xf64>} : () -> tensor<2x2xf64>
  // Booleans are stored as bits: slices that begin within a byte, and whole bytes.
  %4 = oriel.constant {value = dense<[[[true, true], [false, false], [true, true]], [[true, true], [false, false], [true, true]]]> : tensor<2x3x2xi1>} : () -> tensor<2x3x2xi1>
  %5 = oriel.constant {value = dense<[[true, false, false, true, true, false, true, false], [true, false, false, true, true, false, true, false]]> : tensor<2x8xi1>} : () -> tensor<2x8xi1>
  %6 = oriel.constant {value = dense<[[[1, 2], [1, 2]], [[3, 4], [3, 4]]]> : tensor<2x2x2xi32>} : () -> tensor<2x2x2xi32>
  return %0, %3, %1, %2, %4, %5, %6 : tensor<2x4xi64>, tensor<4x2xf64>, tensor<2x4xf64>, tensor<2x2xf64>, tensor<2x3x2xi1>, tensor<2x8xi1>, tensor<2x2x2xi32>
}

// Sizes that divide, that share a divisor, and that begin alike after a whole part.
func.func @reshapes(%a: tensor<2x4x6xf64>) -> (tensor<8x6xf64>, tensor<2x4x2x3xf64>, tensor<12x4xf64>, tensor<2x6x1x4xf64>, tensor<1x48xf64>) {
  %0 = oriel.reshape %a : (tensor<2x4x6xf64>) -> tensor<8x6xf64>
  %1 = oriel.reshape %a : (tensor<2x4x6xf64>) -> tensor<2x4x2x3xf64>
  %2 = oriel.reshape %a : (tensor<2x4x6xf64>) -> tensor<12x4xf64>
  %3 = oriel.reshape %a : (tensor<2x4x6xf64>) -> tensor<2x6x1x4xf64>
  %4 = oriel.reshape %a : (tensor<2x4x6xf64>) -> tensor<1x48xf64>
  return %0, %1, %2, %3, %4 : tensor<8x6xf64>, tensor<2x4x2x3xf64>, tensor<12x4xf64>, tensor<2x6x1x4xf64>, tensor<1x48xf64>
}

func.func @sunk_heads(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x3x2xf64>, %v: tensor<2x2x3x4xf64>, %sink: tensor<4xf64>) -> tensor<2x4x3x4xf64> {
  %0, %lse = oriel.attention %q, %k, %v sink %sink {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x4xf64>, tensor<4xf64>) -> (tensor<2x4x3x4xf64>, tensor<2x4x3xf64>)
  return %0 : tensor<2x4x3x4xf64>
}

// Key heads fewer than the pieces of the query heads.
func.func @grouped_heads(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x3x2xf64>, %v: tensor<2x2x3x4xf64>, %mask: tensor<2x1x3x3xi1> {check.low = 0.0, check.high = 2.0}) -> tensor<2x4x3x4xf64> {
  %0, %lse = oriel.attention %q, %k, %v, %mask {scale = 0.5} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x4xf64>, tensor<2x1x3x3xi1>) -> (tensor<2x4x3x4xf64>, tensor<2x4x3xf64>)
  return %0 : tensor<2x4x3x4xf64>
}

func.func @optimizers(%p: tensor<2x4xf64>, %g: tensor<2x4xf64>, %m: tensor<2x4xf64>, %v: tensor<2x4xf64> {check.low = 0.5}, %scale: tensor<f64>, %lr: tensor<f64>, %step: tensor<f64> {check.low = 2.0, check.high = 3.0}) -> (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>, tensor<f64>) attributes {check.forward_only} {
  %0 = oriel.sgd %p, %g, %scale, %lr {weight_decay = 0.1} : (tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>, tensor<f64>) -> tensor<2x4xf64>
  %1:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9, beta2 = 0.99, epsilon = 1.0e-8, weight_decay = 0.1} : (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>, tensor<f64>, tensor<f64>) -> (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>)
  %4:2 = oriel.sgd_momentum %p, %g, %m, %scale, %lr {momentum = 0.9, nesterov = true, weight_decay = 0.1} : (tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>, tensor<f64>) -> (tensor<2x4xf64>, tensor<2x4xf64>)
  %2 = oriel.sum_squares %g : (tensor<2x4xf64>) -> tensor<f64>
  %3 = oriel.sum_squares %g, %p : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<f64>
  return %0, %1#0, %4#0, %4#1, %2, %3 : tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<2x4xf64>, tensor<f64>, tensor<f64>
}

// What is left of a cross entropy over pieces of the classes, with more than one class per piece.
func.func @cross_entropy_steps(%x: tensor<2x3x6xf64>, %shift: tensor<2x3xf64>, %g: tensor<f64>) -> (tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3x6xf64>) attributes {check.forward_only} {
  %l = oriel.constant {value = dense<[[1, 0, 5], [-100, 2, 3]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.sum_exp %x, %shift : (tensor<2x3x6xf64>, tensor<2x3xf64>) -> tensor<2x3xf64>
  %1 = oriel.label_logits %x, %l : (tensor<2x3x6xf64>, tensor<2x3xi64>) -> tensor<2x3xf64>
  %2 = oriel.cross_entropy_grad %g, %x, %l, %shift : (tensor<f64>, tensor<2x3x6xf64>, tensor<2x3xi64>, tensor<2x3xf64>) -> tensor<2x3x6xf64>
  return %0, %1, %2 : tensor<2x3xf64>, tensor<2x3xf64>, tensor<2x3x6xf64>
}

// The same with a cotangent for each row.
func.func @cross_entropy_grad_of_rows(%x: tensor<2x3x6xf64>, %lse: tensor<2x3xf64>, %g: tensor<2x3xf64>) -> tensor<2x3x6xf64> attributes {check.forward_only} {
  %l = oriel.constant {value = dense<[[1, 0, 5], [-100, 2, 3]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.cross_entropy_grad %g, %x, %l, %lse : (tensor<2x3xf64>, tensor<2x3x6xf64>, tensor<2x3xi64>, tensor<2x3xf64>) -> tensor<2x3x6xf64>
  return %0 : tensor<2x3x6xf64>
}

// Blocks of more than one class, and a gradient of the input alone.
func.func @linear_cross_entropy_steps(%x: tensor<2x3x2xf64>, %w: tensor<2x12xf64>, %b: tensor<12xf64>, %v: tensor<12x2xf64>, %shift: tensor<2x3xf64>, %g: tensor<f64>) -> (tensor<2x3x6xf64>, tensor<2x3x4xf64>, tensor<2x3x2xf64>) attributes {check.forward_only} {
  %l = oriel.constant {value = dense<[[1, 0, 11], [-100, 2, 6]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0:2 = oriel.linear_logsumexp %x, %w, %l, %b {blocks = 6 : i64} : (tensor<2x3x2xf64>, tensor<2x12xf64>, tensor<2x3xi64>, tensor<12xf64>) -> (tensor<2x3x6xf64>, tensor<2x3xf64>)
  %1:2 = oriel.linear_logsumexp %x, %v, %l {blocks = 4 : i64, transpose_weight = true} : (tensor<2x3x2xf64>, tensor<12x2xf64>, tensor<2x3xi64>) -> (tensor<2x3x4xf64>, tensor<2x3xf64>)
  %2 = oriel.linear_cross_entropy_grad %g, %x, %w, %l, %shift, %b : (tensor<f64>, tensor<2x3x2xf64>, tensor<2x12xf64>, tensor<2x3xi64>, tensor<2x3xf64>, tensor<12xf64>) -> tensor<2x3x2xf64>
  return %0#0, %1#0, %2 : tensor<2x3x6xf64>, tensor<2x3x4xf64>, tensor<2x3x2xf64>
}

// One row of logits, in f32.
func.func @cross_entropy_of_a_row(%x: tensor<6xf32>) -> tensor<f32> attributes {check.forward_only} {
  %l = oriel.constant {value = dense<4> : tensor<i32>} : () -> tensor<i32>
  %0, %1, %2 = oriel.cross_entropy %x, %l {ignore_index = 0 : i64} : (tensor<6xf32>, tensor<i32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return %0 : tensor<f32>
}

// An embedding by pieces of several rows; -1 is the last row, of the last piece.
func.func @embedding(%t: tensor<6x2xf64>, %u: tensor<2x3x2xf64>) -> (tensor<2x3x2xf64>, tensor<6x2xf64>) {
  %i = oriel.constant {value = dense<[[1, 5, 3], [2, 1, -1]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.gather %t, %i {dim = 0 : i64} : (tensor<6x2xf64>, tensor<2x3xi64>) -> tensor<2x3x2xf64>
  %1 = oriel.scatter_add %i, %u {dim = 0 : i64} : (tensor<2x3xi64>, tensor<2x3x2xf64>) -> tensor<6x2xf64>
  return %0, %1 : tensor<2x3x2xf64>, tensor<6x2xf64>
}

// Rows in pieces, and indices of each.
func.func @gather_in_rows(%x: tensor<4x6x2xf64>, %u: tensor<4x2x2xf64>) -> (tensor<4x2x2xf64>, tensor<4x6x2xf64>) {
  %i = oriel.constant {value = dense<[[1, 5], [2, 1], [0, -1], [4, 4]]> : tensor<4x2xi64>} : () -> tensor<4x2xi64>
  %0 = oriel.gather %x, %i {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<4x6x2xf64>, tensor<4x2xi64>) -> tensor<4x2x2xf64>
  %1 = oriel.scatter_add %i, %u {batch_dims = 1 : i64, dim = 1 : i64} : (tensor<4x2xi64>, tensor<4x2x2xf64>) -> tensor<4x6x2xf64>
  return %0, %1 : tensor<4x2x2xf64>, tensor<4x6x2xf64>
}

// Matrices and right-hand sides in pieces, rows whole.
func.func @triangular_solve(%t: tensor<4x3x3xf64> {check.low = 1.0, check.high = 2.0}, %b: tensor<4x3x6xf64>) -> (tensor<4x3x6xf64>, tensor<4x3x6xf64>) {
  %0 = oriel.triangular_solve %t, %b {upper = true} : (tensor<4x3x3xf64>, tensor<4x3x6xf64>) -> tensor<4x3x6xf64>
  %1 = oriel.triangular_solve %t, %b {transpose = true, unit_diagonal = true} : (tensor<4x3x3xf64>, tensor<4x3x6xf64>) -> tensor<4x3x6xf64>
  return %0, %1 : tensor<4x3x6xf64>, tensor<4x3x6xf64>
}

// Scans and columns of states in pieces, chunks, positions and rows whole.
func.func @delta_scan(%u: tensor<4x3x2x4xf64>, %r: tensor<4x3x2x2xf64>, %w: tensor<4x3x2x2xf64>, %d: tensor<4x3x1x1xf64>, %s: tensor<4x2x4xf64>, %a: tensor<4x3x2x4xf64>) -> (tensor<4x3x2x4xf64>, tensor<4x3x2x4xf64>, tensor<4x2x4xf64>, tensor<4x3x2x4xf64>) {
  %0:3 = oriel.delta_scan %u, %r, %w, %d, %s : (tensor<4x3x2x4xf64>, tensor<4x3x2x2xf64>, tensor<4x3x2x2xf64>, tensor<4x3x1x1xf64>, tensor<4x2x4xf64>) -> (tensor<4x3x2x4xf64>, tensor<4x3x2x4xf64>, tensor<4x2x4xf64>)
  %1:3 = oriel.delta_scan %u, %r, %w, %d, %s, %a {reverse = true} : (tensor<4x3x2x4xf64>, tensor<4x3x2x2xf64>, tensor<4x3x2x2xf64>, tensor<4x3x1x1xf64>, tensor<4x2x4xf64>, tensor<4x3x2x4xf64>) -> (tensor<4x3x2x4xf64>, tensor<4x3x2x4xf64>, tensor<4x2x4xf64>)
  return %0#0, %0#1, %0#2, %1#0 : tensor<4x3x2x4xf64>, tensor<4x3x2x4xf64>, tensor<4x2x4xf64>, tensor<4x3x2x4xf64>
}

// Experts in pieces of one and of several; rows and choices in pieces.
func.func @experts(%x: tensor<4x6xf64>, %w: tensor<4x6x2xf64>) -> tensor<4x2x2xf64> {
  %i = oriel.constant {value = dense<[[0, 2], [3, 0], [2, -1], [1, 1]]> : tensor<4x2xi64>} : () -> tensor<4x2xi64>
  %0 = oriel.expert_linear %x, %w, %i : (tensor<4x6xf64>, tensor<4x6x2xf64>, tensor<4x2xi64>) -> tensor<4x2x2xf64>
  return %0 : tensor<4x2x2xf64>
}
func.func @experts_transposed(%x: tensor<2x2x2x4xf64>, %w: tensor<6x2x4xf64>) -> tensor<2x2x2x2xf64> {
  %i = oriel.constant {value = dense<[[[0, 1], [5, 1]], [[0, 4], [1, 3]]]> : tensor<2x2x2xi64>} : () -> tensor<2x2x2xi64>
  %0 = oriel.expert_linear %x, %w, %i {transpose_weight = true} : (tensor<2x2x2x4xf64>, tensor<6x2x4xf64>, tensor<2x2x2xi64>) -> tensor<2x2x2x2xf64>
  return %0 : tensor<2x2x2x2xf64>
}

// Operands of different ranks.
func.func @sum_squares(%a: tensor<2x4xf64>, %b: tensor<3xf64>, %c: tensor<f64>) -> tensor<f64> attributes {check.forward_only} {
  %0 = oriel.sum_squares %a, %b, %c : (tensor<2x4xf64>, tensor<3xf64>, tensor<f64>) -> tensor<f64>
  return %0 : tensor<f64>
}

// Dimensions that a slice or a pad leaves alone split.
func.func @slice_and_pad(%a: tensor<4x3xf64>) -> (tensor<4x5xf64>, tensor<4x4xf64>) {
  %0 = oriel.slice %a {starts = array<i64: 0, 1>, limits = array<i64: 4, 3>, strides = array<i64: 1, 1>} : (tensor<4x3xf64>) -> tensor<4x2xf64>
  %1 = oriel.pad %0 {low = array<i64: 0, 1>, high = array<i64: 0, 2>, interior = array<i64: 0, 0>} : (tensor<4x2xf64>) -> tensor<4x5xf64>
  %2 = oriel.pad %0 {low = array<i64: 0, 1>, high = array<i64: 0, 1>, interior = array<i64: 0, 0>, value = 3.0} : (tensor<4x2xf64>) -> tensor<4x4xf64>
  return %1, %2 : tensor<4x5xf64>, tensor<4x4xf64>
}

func.func @image_slots() -> tensor<2x4xi1> {
  %mask = oriel.constant {value = dense<[[true, true, false, false], [false, false, true, true]]> : tensor<2x4xi1>} : () -> tensor<2x4xi1>
  %images = oriel.constant {value = dense<1> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = oriel.check_image_slots %mask, %images {rows_per_image = 2 : i64} : (tensor<2x4xi1>, tensor<2xi64>) -> tensor<2x4xi1>
  return %0 : tensor<2x4xi1>
}
