// RUN: oriel-opt %s --oriel-check-ops --mlir-print-op-on-diagnostic=false --split-input-file --verify-diagnostics

// expected-error@+1 {{finite differences need f64, and kernels that take it: write its floats in f64, or give it the attribute check.forward_only}}
func.func @single(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = oriel.tanh %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{argument 0: a value is not a static tensor}}
func.func @dynamic(%x: tensor<?xf64>) -> tensor<?xf64> {
  return %x : tensor<?xf64>
}

// -----

// expected-error@+1 {{argument 0 has 'check.lwo' = 1.000000e+00 : f64, but of an argument there are check.low and check.high, floats}}
func.func @typo(%x: tensor<4xf64> {check.lwo = 1.0}) -> tensor<4xf64> {
  return %x : tensor<4xf64>
}

// -----

// expected-error@+1 {{has no float argument to be differentiated by: give it check.forward_only}}
func.func @integers(%x: tensor<4xi64>) -> tensor<4xi64> {
  %0 = oriel.neg %x : (tensor<4xi64>) -> tensor<4xi64>
  return %0 : tensor<4xi64>
}

// -----

// expected-error@+1 {{has no functions to check}}
module {
  func.func private @declared(tensor<4xf64>) -> tensor<4xf64>
}
