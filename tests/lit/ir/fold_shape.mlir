// Ops that move elements fold on constants; so does the shape arithmetic of exporters.
// RUN: oriel-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @iota
func.func @iota() -> (tensor<2x3xi64>, tensor<2x3xf32>) {
  // CHECK-DAG: dense<{{\[}}[0, 0, 0], [1, 1, 1]]>
  // CHECK-DAG: dense<{{\[}}[0.000000e+00, 1.000000e+00, 2.000000e+00], [0.000000e+00, 1.000000e+00, 2.000000e+00]]>
  %0 = oriel.iota {dim = 0 : i64} : () -> tensor<2x3xi64>
  %1 = oriel.iota {dim = 1 : i64} : () -> tensor<2x3xf32>
  return %0, %1 : tensor<2x3xi64>, tensor<2x3xf32>
}

// CHECK-LABEL: @large_iota_stays
func.func @large_iota_stays() -> tensor<65537xf32> {
  // CHECK: oriel.iota
  %0 = oriel.iota {dim = 0 : i64} : () -> tensor<65537xf32>
  return %0 : tensor<65537xf32>
}

// CHECK-LABEL: @moves
func.func @moves() -> (tensor<3x2xi64>, tensor<3x2xi64>, tensor<2x2x3xi64>, tensor<2x2xi64>) {
  // CHECK-DAG: %[[RESHAPED:.*]] = oriel.constant {value = dense<{{\[}}[1, 2], [3, 4], [5, 6]]> : tensor<3x2xi64>}
  // CHECK-DAG: %[[TRANSPOSED:.*]] = oriel.constant {value = dense<{{\[}}[1, 4], [2, 5], [3, 6]]> : tensor<3x2xi64>}
  // CHECK-DAG: %[[REPEATED:.*]] = oriel.constant {value = dense<{{\[\[}}[1, 2, 3], [4, 5, 6]], {{\[}}[1, 2, 3], [4, 5, 6]]]>
  // CHECK-DAG: %[[SLICED:.*]] = oriel.constant {value = dense<{{\[}}[1, 3], [4, 6]]>
  // CHECK: return %[[RESHAPED]], %[[TRANSPOSED]], %[[REPEATED]], %[[SLICED]]
  %x = oriel.constant {value = dense<[[1, 2, 3], [4, 5, 6]]> : tensor<2x3xi64>} : () -> tensor<2x3xi64>
  %0 = oriel.reshape %x : (tensor<2x3xi64>) -> tensor<3x2xi64>
  %1 = oriel.transpose %x {permutation = array<i64: 1, 0>} : (tensor<2x3xi64>) -> tensor<3x2xi64>
  %2 = oriel.broadcast %x : (tensor<2x3xi64>) -> tensor<2x2x3xi64>
  %3 = oriel.slice %x {starts = array<i64: 0, 0>, limits = array<i64: 2, 3>, strides = array<i64: 1, 2>} : (tensor<2x3xi64>) -> tensor<2x2xi64>
  return %0, %1, %2, %3 : tensor<3x2xi64>, tensor<3x2xi64>, tensor<2x2x3xi64>, tensor<2x2xi64>
}

// CHECK-LABEL: @pad_between_and_around
func.func @pad_between_and_around() -> (tensor<6xf32>, tensor<2x2xi1>) {
  // CHECK-DAG: dense<[-1.000000e+00, 1.000000e+00, -1.000000e+00, 2.000000e+00, -1.000000e+00, -1.000000e+00]>
  // CHECK-DAG: dense<{{\[}}[false, true], [false, false]]>
  %x = oriel.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %0 = oriel.pad %x {low = array<i64: 1>, high = array<i64: 2>, interior = array<i64: 1>, value = -1.0 : f64} : (tensor<2xf32>) -> tensor<6xf32>
  %b = oriel.constant {value = dense<true> : tensor<1x1xi1>} : () -> tensor<1x1xi1>
  %1 = oriel.pad %b {low = array<i64: 0, 1>, high = array<i64: 1, 0>, interior = array<i64: 0, 0>} : (tensor<1x1xi1>) -> tensor<2x2xi1>
  return %0, %1 : tensor<6xf32>, tensor<2x2xi1>
}

// CHECK-LABEL: @concat
func.func @concat() -> (tensor<2x3xi64>, tensor<3xi64>) {
  // CHECK-DAG: dense<{{\[}}[1, 2, 9], [3, 4, 9]]>
  // CHECK-DAG: dense<[7, 7, 8]>
  %a = oriel.constant {value = dense<[[1, 2], [3, 4]]> : tensor<2x2xi64>} : () -> tensor<2x2xi64>
  %b = oriel.constant {value = dense<9> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %0 = oriel.concat %a, %b {dim = 1 : i64} : (tensor<2x2xi64>, tensor<2x1xi64>) -> tensor<2x3xi64>
  %c = oriel.constant {value = dense<7> : tensor<2xi64>} : () -> tensor<2xi64>
  %d = oriel.constant {value = dense<> : tensor<0xi64>} : () -> tensor<0xi64>
  %e = oriel.constant {value = dense<8> : tensor<1xi64>} : () -> tensor<1xi64>
  %1 = oriel.concat %c, %d, %e {dim = 0 : i64} : (tensor<2xi64>, tensor<0xi64>, tensor<1xi64>) -> tensor<3xi64>
  return %0, %1 : tensor<2x3xi64>, tensor<3xi64>
}

// A negative index counts from the end.
// CHECK-LABEL: @gather
func.func @gather() -> (tensor<2x3xi64>, tensor<2xi64>) {
  // CHECK-DAG: dense<{{\[}}[2, 1, 2], [5, 4, 5]]>
  // CHECK-DAG: dense<[1, 4]>
  %x = oriel.constant {value = dense<[[1, 2], [4, 5]]> : tensor<2x2xi64>} : () -> tensor<2x2xi64>
  %i = oriel.constant {value = dense<[1, 0, -1]> : tensor<3xi64>} : () -> tensor<3xi64>
  %0 = oriel.gather %x, %i {dim = 1 : i64} : (tensor<2x2xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  %s = oriel.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %1 = oriel.gather %x, %s {dim = 1 : i64} : (tensor<2x2xi64>, tensor<i64>) -> tensor<2xi64>
  return %0, %1 : tensor<2x3xi64>, tensor<2xi64>
}

// CHECK-LABEL: @gather_out_of_range_stays
func.func @gather_out_of_range_stays() -> (tensor<1xi64>, tensor<1xi64>) {
  // CHECK-COUNT-2: oriel.gather
  %x = oriel.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %i = oriel.constant {value = dense<2> : tensor<1xi64>} : () -> tensor<1xi64>
  %j = oriel.constant {value = dense<-3> : tensor<1xi64>} : () -> tensor<1xi64>
  %0 = oriel.gather %x, %i {dim = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  %1 = oriel.gather %x, %j {dim = 0 : i64} : (tensor<2xi64>, tensor<1xi64>) -> tensor<1xi64>
  return %0, %1 : tensor<1xi64>, tensor<1xi64>
}

// Its indices are those of a larger table.
// CHECK-LABEL: @gather_of_a_piece_stays
func.func @gather_of_a_piece_stays() -> tensor<1xi64> {
  // CHECK: oriel.gather
  %x = oriel.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %i = oriel.constant {value = dense<1> : tensor<1xi64>} : () -> tensor<1xi64>
  %first = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %0 = oriel.gather %x, %i, %first {dim = 0 : i64, rows = 4 : i64} : (tensor<2xi64>, tensor<1xi64>, tensor<i64>) -> tensor<1xi64>
  return %0 : tensor<1xi64>
}

// Sizes that no loop would ever get through.
// CHECK-LABEL: @without_elements
func.func @without_elements() -> (tensor<0x8xf32>, tensor<1099511627776x0xf32>, tensor<1099511627776x1x0xf32>) {
  // CHECK-DAG: dense<> : tensor<0x8xf32>
  // CHECK-DAG: dense<> : tensor<1099511627776x0xf32>
  // CHECK-DAG: dense<> : tensor<1099511627776x1x0xf32>
  %x = oriel.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %0 = oriel.slice %x {starts = array<i64: 1, 0>, limits = array<i64: 1, 1>, strides = array<i64: 1, 1>} : (tensor<2x1xf32>) -> tensor<0x1xf32>
  %1 = oriel.broadcast %0 : (tensor<0x1xf32>) -> tensor<0x8xf32>
  %e = oriel.constant {value = dense<> : tensor<1099511627776x0xf32>} : () -> tensor<1099511627776x0xf32>
  %2 = oriel.cumsum %e {dim = 1 : i64} : (tensor<1099511627776x0xf32>) -> tensor<1099511627776x0xf32>
  %r = oriel.reshape %2 : (tensor<1099511627776x0xf32>) -> tensor<1099511627776x1x0xf32>
  %i = oriel.constant {value = dense<0> : tensor<1xi64>} : () -> tensor<1xi64>
  %3 = oriel.gather %r, %i {dim = 1 : i64} : (tensor<1099511627776x1x0xf32>, tensor<1xi64>) -> tensor<1099511627776x1x0xf32>
  return %1, %2, %3 : tensor<0x8xf32>, tensor<1099511627776x0xf32>, tensor<1099511627776x1x0xf32>
}

// The kernel of a causal mask: positions compared with positions.
// CHECK-LABEL: @causal_mask
func.func @causal_mask() -> tensor<3x3xi1> {
  // CHECK-NEXT: oriel.constant {value = dense<{{\[}}[true, false, false], [true, true, false], [true, true, true]]>
  %rows = oriel.iota {dim = 0 : i64} : () -> tensor<3xi64>
  %0 = oriel.reshape %rows : (tensor<3xi64>) -> tensor<3x1xi64>
  %1 = oriel.less_equal %rows, %0 : (tensor<3xi64>, tensor<3x1xi64>) -> tensor<3x3xi1>
  return %1 : tensor<3x3xi1>
}

// A target shape put together from a known one, as exporters write it: the rank, the batch
// taken by index, the number of elements divided by it.
// CHECK-LABEL: @shape_arithmetic
func.func @shape_arithmetic() -> tensor<2xi64> {
  // CHECK-NEXT: oriel.constant {value = dense<[2, 32]> : tensor<2xi64>}
  %shape = oriel.constant {value = dense<[2, 4, 8]> : tensor<3xi64>} : () -> tensor<3xi64>
  %zero = oriel.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %batch = oriel.gather %shape, %zero {dim = 0 : i64} : (tensor<3xi64>, tensor<i64>) -> tensor<i64>
  %count = oriel.reduce_prod %shape {dims = array<i64: 0>, keep_dims = true} : (tensor<3xi64>) -> tensor<1xi64>
  %0 = oriel.reshape %batch : (tensor<i64>) -> tensor<1xi64>
  %1 = oriel.div %count, %0 : (tensor<1xi64>, tensor<1xi64>) -> tensor<1xi64>
  %2 = oriel.concat %0, %1 {dim = 0 : i64} : (tensor<1xi64>, tensor<1xi64>) -> tensor<2xi64>
  return %2 : tensor<2xi64>
}
