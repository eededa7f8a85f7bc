// RUN: oriel-opt %s --oriel-check-ops --mlir-print-op-on-diagnostic=false --split-input-file --verify-diagnostics
// The module is as it was.
// RUN: oriel-opt %s --oriel-check-ops --split-input-file 2>/dev/null | FileCheck %s

// CHECK-LABEL: func.func @mlp
// CHECK-NEXT: oriel.linear %{{.*}}, %{{.*}} : (tensor
// CHECK-NOT: func.func @mlp_vjp
// expected-remark@+2 {{the derivative is as by finite differences, within}}
// expected-remark@+1 {{pieces make the whole: oriel.linear (cut in 12 ways), oriel.linear_weight_grad (cut in 6 ways), oriel.mul (cut in 6 ways), oriel.sub (cut in 3 ways), oriel.tanh (cut in 3 ways)}}
func.func @mlp(%x: tensor<4x6xf64>, %w: tensor<6x8xf64>) -> tensor<4x8xf64> {
  %0 = oriel.linear %x, %w : (tensor<4x6xf64>, tensor<6x8xf64>) -> tensor<4x8xf64>
  %1 = oriel.tanh %0 : (tensor<4x8xf64>) -> tensor<4x8xf64>
  return %1 : tensor<4x8xf64>
}

// -----

// Booleans are 0 or 1, floats where it is told: a log of positive numbers.
// expected-remark@+2 {{the derivative is as by finite differences}}
// expected-remark@+1 {{pieces make the whole}}
func.func @bounds(%c: tensor<4xi1>, %x: tensor<4xf64> {check.low = 0.5, check.high = 3.0}) -> tensor<4xf64> attributes {check.step = 1.0e-3} {
  %0 = oriel.log %x : (tensor<4xf64>) -> tensor<4xf64>
  %1 = oriel.select %c, %0, %x : (tensor<4xi1>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %1 : tensor<4xf64>
}

// -----

// Sums in another order differ by the precision of what is added.
// expected-remark@+1 {{pieces make the whole: oriel.linear (cut in 6 ways)}}
func.func @narrow(%x: tensor<4x6xbf16>, %w: tensor<6x8xbf16>) -> tensor<4x8xbf16> attributes {check.forward_only} {
  %0 = oriel.linear %x, %w : (tensor<4x6xbf16>, tensor<6x8xbf16>) -> tensor<4x8xbf16>
  return %0 : tensor<4x8xbf16>
}
