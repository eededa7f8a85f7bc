// Elementwise ops on constants become constants, in the arithmetic of their element type.
// RUN: oriel-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @broadcast_of_integers
func.func @broadcast_of_integers() -> tensor<2x2xi64> {
  // CHECK-NEXT: oriel.constant {value = dense<{{\[}}[11, 12], [21, 22]]> : tensor<2x2xi64>}
  %0 = oriel.constant {value = dense<[[10], [20]]> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %1 = oriel.constant {value = dense<[1, 2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = oriel.add %0, %1 : (tensor<2x1xi64>, tensor<2xi64>) -> tensor<2x2xi64>
  return %2 : tensor<2x2xi64>
}

// A splat folds whatever its size.
// CHECK-LABEL: @large_splats
func.func @large_splats() -> tensor<1000x1000xf32> {
  // CHECK-NEXT: oriel.constant {value = dense<6.000000e+00> : tensor<1000x1000xf32>}
  %0 = oriel.constant {value = dense<2.0> : tensor<1000x1xf32>} : () -> tensor<1000x1xf32>
  %1 = oriel.constant {value = dense<3.0> : tensor<1000xf32>} : () -> tensor<1000xf32>
  %2 = oriel.mul %0, %1 : (tensor<1000x1xf32>, tensor<1000xf32>) -> tensor<1000x1000xf32>
  return %2 : tensor<1000x1000xf32>
}

// Other results only up to 2^16 elements, integers up to 2^21.
// CHECK-LABEL: @large_results_stay
func.func @large_results_stay() -> tensor<2x65536xf32> {
  // CHECK: oriel.add
  %0 = oriel.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : () -> tensor<2x1xf32>
  %1 = oriel.constant {value = dense<3.0> : tensor<65536xf32>} : () -> tensor<65536xf32>
  %2 = oriel.add %0, %1 : (tensor<2x1xf32>, tensor<65536xf32>) -> tensor<2x65536xf32>
  return %2 : tensor<2x65536xf32>
}

// CHECK-LABEL: @large_integers
func.func @large_integers() -> tensor<2x65536xi64> {
  // CHECK: oriel.constant {{.*}} -> tensor<2x65536xi64>
  // CHECK-NEXT: return
  %0 = oriel.constant {value = dense<[[1], [2]]> : tensor<2x1xi64>} : () -> tensor<2x1xi64>
  %1 = oriel.constant {value = dense<3> : tensor<65536xi64>} : () -> tensor<65536xi64>
  %2 = oriel.add %0, %1 : (tensor<2x1xi64>, tensor<65536xi64>) -> tensor<2x65536xi64>
  return %2 : tensor<2x65536xi64>
}

// 0.1 + 0.2 rounds to 0.3 in f32, not in f64; 2^24 + 1, 2049 and 257 are not representable.
// CHECK-LABEL: @float_arithmetic
func.func @float_arithmetic() -> (tensor<f32>, tensor<f32>, tensor<f64>, tensor<f16>, tensor<bf16>) {
  // CHECK-DAG: dense<3.000000e-01> : tensor<f32>
  // CHECK-DAG: dense<0x4B800000> : tensor<f32>
  // CHECK-DAG: dense<0.30000000000000004> : tensor<f64>
  // CHECK-DAG: dense<2.048000e+03> : tensor<f16>
  // CHECK-DAG: dense<2.560000e+02> : tensor<bf16>
  %a = oriel.constant {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %b = oriel.constant {value = dense<0.2> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.add %a, %b : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %c = oriel.constant {value = dense<16777216.0> : tensor<f32>} : () -> tensor<f32>
  %d = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %1 = oriel.add %c, %d : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %e = oriel.constant {value = dense<0.1> : tensor<f64>} : () -> tensor<f64>
  %f = oriel.constant {value = dense<0.2> : tensor<f64>} : () -> tensor<f64>
  %2 = oriel.add %e, %f : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %g = oriel.constant {value = dense<2048.0> : tensor<f16>} : () -> tensor<f16>
  %h = oriel.constant {value = dense<1.0> : tensor<f16>} : () -> tensor<f16>
  %3 = oriel.add %g, %h : (tensor<f16>, tensor<f16>) -> tensor<f16>
  %i = oriel.constant {value = dense<256.0> : tensor<bf16>} : () -> tensor<bf16>
  %j = oriel.constant {value = dense<1.0> : tensor<bf16>} : () -> tensor<bf16>
  %4 = oriel.add %i, %j : (tensor<bf16>, tensor<bf16>) -> tensor<bf16>
  return %0, %1, %2, %3, %4 : tensor<f32>, tensor<f32>, tensor<f64>, tensor<f16>, tensor<bf16>
}

// CHECK-LABEL: @integers_wrap
func.func @integers_wrap() -> (tensor<i32>, tensor<i8>, tensor<ui8>, tensor<i64>) {
  // CHECK-DAG: dense<-2147483648> : tensor<i32>
  // CHECK-DAG: dense<-106> : tensor<i8>
  // CHECK-DAG: dense<254> : tensor<ui8>
  // CHECK-DAG: dense<-9223372036854775808> : tensor<i64>
  %a = oriel.constant {value = dense<2147483647> : tensor<i32>} : () -> tensor<i32>
  %b = oriel.constant {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %0 = oriel.add %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i32>
  %c = oriel.constant {value = dense<50> : tensor<i8>} : () -> tensor<i8>
  %d = oriel.constant {value = dense<3> : tensor<i8>} : () -> tensor<i8>
  %1 = oriel.mul %c, %d : (tensor<i8>, tensor<i8>) -> tensor<i8>
  %e = oriel.constant {value = dense<1> : tensor<ui8>} : () -> tensor<ui8>
  %f = oriel.constant {value = dense<3> : tensor<ui8>} : () -> tensor<ui8>
  %2 = oriel.sub %e, %f : (tensor<ui8>, tensor<ui8>) -> tensor<ui8>
  %g = oriel.constant {value = dense<-9223372036854775808> : tensor<i64>} : () -> tensor<i64>
  %3 = oriel.neg %g : (tensor<i64>) -> tensor<i64>
  return %0, %1, %2, %3 : tensor<i32>, tensor<i8>, tensor<ui8>, tensor<i64>
}

// Quotients round towards zero, remainders have the divisor's sign.
// CHECK-LABEL: @signs_of_division
func.func @signs_of_division() -> (tensor<4xi64>, tensor<4xi64>, tensor<2xf32>) {
  // CHECK-DAG: dense<[2, -2, -2, 2]>
  // CHECK-DAG: dense<[1, 2, -2, -1]>
  // CHECK-DAG: dense<[1.500000e+00, -5.000000e-01]>
  %a = oriel.constant {value = dense<[7, -7, 7, -7]> : tensor<4xi64>} : () -> tensor<4xi64>
  %b = oriel.constant {value = dense<[3, 3, -3, -3]> : tensor<4xi64>} : () -> tensor<4xi64>
  %0 = oriel.div %a, %b : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %1 = oriel.mod %a, %b : (tensor<4xi64>, tensor<4xi64>) -> tensor<4xi64>
  %c = oriel.constant {value = dense<[-2.5, 3.5]> : tensor<2xf32>} : () -> tensor<2xf32>
  %d = oriel.constant {value = dense<[4.0, -4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %2 = oriel.mod %c, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2 : tensor<4xi64>, tensor<4xi64>, tensor<2xf32>
}

// What has no value is left to the run: division by zero, the quotient that overflows, a
// negative integer power.
// CHECK-LABEL: @undefined_integer_results_stay
func.func @undefined_integer_results_stay() -> (tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>) {
  // CHECK-DAG: oriel.div
  // CHECK-DAG: oriel.div
  // CHECK-DAG: oriel.mod
  // CHECK-DAG: oriel.pow
  %zero = oriel.constant {value = dense<0> : tensor<i64>} : () -> tensor<i64>
  %min = oriel.constant {value = dense<-9223372036854775808> : tensor<i64>} : () -> tensor<i64>
  %minus = oriel.constant {value = dense<-1> : tensor<i64>} : () -> tensor<i64>
  %0 = oriel.div %minus, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %1 = oriel.div %min, %minus : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %2 = oriel.mod %minus, %zero : (tensor<i64>, tensor<i64>) -> tensor<i64>
  %3 = oriel.pow %min, %minus : (tensor<i64>, tensor<i64>) -> tensor<i64>
  return %0, %1, %2, %3 : tensor<i64>, tensor<i64>, tensor<i64>, tensor<i64>
}

// CHECK-LABEL: @powers_and_extrema
func.func @powers_and_extrema() -> (tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xf32>) {
  // CHECK-DAG: dense<[9, -8]>
  // CHECK-DAG: dense<3> : tensor<2xi64>
  // CHECK-DAG: dense<[2, -2]>
  // CHECK-DAG: dense<[3.000000e+00, 0x7FC00000]>
  %a = oriel.constant {value = dense<[3, -2]> : tensor<2xi64>} : () -> tensor<2xi64>
  %b = oriel.constant {value = dense<[2, 3]> : tensor<2xi64>} : () -> tensor<2xi64>
  %0 = oriel.pow %a, %b : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %1 = oriel.max %a, %b : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %2 = oriel.min %a, %b : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
  %c = oriel.constant {value = dense<[3.0, 0x7FC00000]> : tensor<2xf32>} : () -> tensor<2xf32>
  %d = oriel.constant {value = dense<[2.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %3 = oriel.max %c, %d : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return %0, %1, %2, %3 : tensor<2xi64>, tensor<2xi64>, tensor<2xi64>, tensor<2xf32>
}

// CHECK-LABEL: @comparisons
func.func @comparisons() -> (tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>) {
  // CHECK-DAG: %[[EQ:.*]] = oriel.constant {value = dense<[false, true, false]>
  // CHECK-DAG: %[[LT:.*]] = oriel.constant {value = dense<[true, false, false]>
  // CHECK-DAG: %[[LE:.*]] = oriel.constant {value = dense<[true, true, false]>
  // CHECK-DAG: %[[GT:.*]] = oriel.constant {value = dense<[false, false, true]>
  // CHECK-DAG: %[[GE:.*]] = oriel.constant {value = dense<[false, true, true]>
  // CHECK: return %[[EQ]], %[[LT]], %[[LE]], %[[GT]], %[[GE]]
  %a = oriel.constant {value = dense<[1, 2, 3]> : tensor<3xi64>} : () -> tensor<3xi64>
  %b = oriel.constant {value = dense<2> : tensor<i64>} : () -> tensor<i64>
  %0 = oriel.equal %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %1 = oriel.less %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %2 = oriel.less_equal %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %3 = oriel.greater %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  %4 = oriel.greater_equal %a, %b : (tensor<3xi64>, tensor<i64>) -> tensor<3xi1>
  return %0, %1, %2, %3, %4 : tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>, tensor<3xi1>
}

// CHECK-LABEL: @logic
func.func @logic() -> (tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>) {
  // CHECK-DAG: %[[AND:.*]] = oriel.constant {value = dense<[false, false, false, true]>
  // CHECK-DAG: %[[OR:.*]] = oriel.constant {value = dense<[false, true, true, true]>
  // CHECK-DAG: %[[XOR:.*]] = oriel.constant {value = dense<[false, true, true, false]>
  // CHECK-DAG: %[[NOT:.*]] = oriel.constant {value = dense<[true, true, false, false]>
  // CHECK: return %[[AND]], %[[OR]], %[[XOR]], %[[NOT]]
  %a = oriel.constant {value = dense<[false, false, true, true]> : tensor<4xi1>} : () -> tensor<4xi1>
  %b = oriel.constant {value = dense<[false, true, false, true]> : tensor<4xi1>} : () -> tensor<4xi1>
  %0 = oriel.and %a, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %1 = oriel.or %a, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %2 = oriel.xor %a, %b : (tensor<4xi1>, tensor<4xi1>) -> tensor<4xi1>
  %3 = oriel.not %a : (tensor<4xi1>) -> tensor<4xi1>
  return %0, %1, %2, %3 : tensor<4xi1>, tensor<4xi1>, tensor<4xi1>, tensor<4xi1>
}

// Each unary op at a value that no other one maps alike.
// CHECK-LABEL: @unary
func.func @unary() -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  // CHECK-DAG: dense<1.64872122>
  // CHECK-DAG: dense<-0.693147182>
  // CHECK-DAG: dense<0.707106769>
  // CHECK-DAG: dense<1.41421354>
  // CHECK-DAG: dense<2.000000e+00>
  // CHECK-DAG: dense<0.47942555>
  // CHECK-DAG: dense<0.87758255>
  // CHECK-DAG: dense<0.462117165>
  // CHECK-DAG: dense<0.622459352>
  // CHECK-DAG: dense<0.520499885>
  // CHECK-DAG: dense<5.000000e-01>
  %x = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.exp %x : (tensor<f32>) -> tensor<f32>
  %1 = oriel.log %x : (tensor<f32>) -> tensor<f32>
  %2 = oriel.sqrt %x : (tensor<f32>) -> tensor<f32>
  %3 = oriel.rsqrt %x : (tensor<f32>) -> tensor<f32>
  %4 = oriel.reciprocal %x : (tensor<f32>) -> tensor<f32>
  %5 = oriel.sin %x : (tensor<f32>) -> tensor<f32>
  %6 = oriel.cos %x : (tensor<f32>) -> tensor<f32>
  %7 = oriel.tanh %x : (tensor<f32>) -> tensor<f32>
  %8 = oriel.sigmoid %x : (tensor<f32>) -> tensor<f32>
  %9 = oriel.erf %x : (tensor<f32>) -> tensor<f32>
  %10 = oriel.relu %x : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @angles
func.func @angles() -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) {
  // CHECK-DAG: dense<0.546302497>
  // CHECK-DAG: dense<0.52359879>
  // CHECK-DAG: dense<1.04719758>
  // CHECK-DAG: dense<0.463647604>
  // CHECK-DAG: dense<0.521095276>
  // CHECK-DAG: dense<1.12762594>
  // CHECK-DAG: dense<0.481211811>
  // CHECK-DAG: dense<1.31695795>
  // CHECK-DAG: dense<0.549306154>
  %x = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.tan %x : (tensor<f32>) -> tensor<f32>
  %1 = oriel.asin %x : (tensor<f32>) -> tensor<f32>
  %2 = oriel.acos %x : (tensor<f32>) -> tensor<f32>
  %3 = oriel.atan %x : (tensor<f32>) -> tensor<f32>
  %4 = oriel.sinh %x : (tensor<f32>) -> tensor<f32>
  %5 = oriel.cosh %x : (tensor<f32>) -> tensor<f32>
  %6 = oriel.asinh %x : (tensor<f32>) -> tensor<f32>
  %7 = oriel.acosh %two : (tensor<f32>) -> tensor<f32>
  %8 = oriel.atanh %x : (tensor<f32>) -> tensor<f32>
  return %0, %1, %2, %3, %4, %5, %6, %7, %8 : tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>
}

// CHECK-LABEL: @rounding_and_signs
func.func @rounding_and_signs() -> (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi64>) {
  // CHECK-DAG: dense<[-2.000000e+00, 0.000000e+00, 2.000000e+00]>
  // CHECK-DAG: dense<[-1.000000e+00, 0.000000e+00, 3.000000e+00]>
  // CHECK-DAG: dense<[-1.000000e+00, 0.000000e+00, 1.000000e+00]>
  // CHECK-DAG: dense<[1.500000e+00, 0.000000e+00, 2.500000e+00]>
  // CHECK-DAG: dense<[1.500000e+00, -0.000000e+00, -2.500000e+00]>
  // CHECK-DAG: dense<[5, 0, 7]>
  %x = oriel.constant {value = dense<[-1.5, 0.0, 2.5]> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = oriel.floor %x : (tensor<3xf32>) -> tensor<3xf32>
  %1 = oriel.ceil %x : (tensor<3xf32>) -> tensor<3xf32>
  %2 = oriel.sign %x : (tensor<3xf32>) -> tensor<3xf32>
  %3 = oriel.abs %x : (tensor<3xf32>) -> tensor<3xf32>
  %4 = oriel.neg %x : (tensor<3xf32>) -> tensor<3xf32>
  %i = oriel.constant {value = dense<[-5, 0, 7]> : tensor<3xi64>} : () -> tensor<3xi64>
  %5 = oriel.abs %i : (tensor<3xi64>) -> tensor<3xi64>
  return %0, %1, %2, %3, %4, %5 : tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xi64>
}

// CHECK-LABEL: @select_broadcasts
func.func @select_broadcasts() -> tensor<2x2xf32> {
  // CHECK-NEXT: oriel.constant {value = dense<{{\[}}[1.000000e+00, 2.000000e+00], [9.000000e+00, 9.000000e+00]]>
  %c = oriel.constant {value = dense<[[true], [false]]> : tensor<2x1xi1>} : () -> tensor<2x1xi1>
  %a = oriel.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %b = oriel.constant {value = dense<9.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.select %c, %a, %b : (tensor<2x1xi1>, tensor<2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %0 : tensor<2x2xf32>
}

// CHECK-LABEL: @casts
func.func @casts() -> (tensor<3xi64>, tensor<3xi1>, tensor<2xf32>, tensor<2xi8>, tensor<2xf32>) {
  // CHECK-DAG: dense<[-1, 0, 2]> : tensor<3xi64>
  // CHECK-DAG: dense<[true, false, true]> : tensor<3xi1>
  // CHECK-DAG: dense<[0x4B800000, 1.000000e+00]> : tensor<2xf32>
  // CHECK-DAG: dense<[1, -1]> : tensor<2xi8>
  // CHECK-DAG: dense<[1.000000e+00, 0.000000e+00]> : tensor<2xf32>
  %x = oriel.constant {value = dense<[-1.9, 0.0, 2.5]> : tensor<3xf32>} : () -> tensor<3xf32>
  %0 = oriel.cast %x : (tensor<3xf32>) -> tensor<3xi64>
  %1 = oriel.cast %x : (tensor<3xf32>) -> tensor<3xi1>
  %i = oriel.constant {value = dense<[16777217, 1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %2 = oriel.cast %i : (tensor<2xi64>) -> tensor<2xf32>
  %j = oriel.constant {value = dense<[257, -1]> : tensor<2xi64>} : () -> tensor<2xi64>
  %3 = oriel.cast %j : (tensor<2xi64>) -> tensor<2xi8>
  %b = oriel.constant {value = dense<[true, false]> : tensor<2xi1>} : () -> tensor<2xi1>
  %4 = oriel.cast %b : (tensor<2xi1>) -> tensor<2xf32>
  return %0, %1, %2, %3, %4 : tensor<3xi64>, tensor<3xi1>, tensor<2xf32>, tensor<2xi8>, tensor<2xf32>
}

// CHECK-LABEL: @floats_that_no_integer_holds_stay
func.func @floats_that_no_integer_holds_stay() -> (tensor<f32>, tensor<i64>, tensor<i8>, tensor<ui8>) {
  // CHECK-COUNT-3: oriel.cast
  %nan = oriel.constant {value = dense<0x7FC00000> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.cast %nan : (tensor<f32>) -> tensor<i64>
  %large = oriel.constant {value = dense<128.0> : tensor<f32>} : () -> tensor<f32>
  %1 = oriel.cast %large : (tensor<f32>) -> tensor<i8>
  %minus = oriel.constant {value = dense<-1.0> : tensor<f32>} : () -> tensor<f32>
  %2 = oriel.cast %minus : (tensor<f32>) -> tensor<ui8>
  return %nan, %0, %1, %2 : tensor<f32>, tensor<i64>, tensor<i8>, tensor<ui8>
}
