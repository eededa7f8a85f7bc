// RUN: oriel-opt %s --oriel-differentiate --split-input-file --verify-diagnostics

func.func @f(%x: tensor<4xf64>) -> tensor<4xf64> {
  // expected-error @below {{'oriel.activation_grad' op has no derivative}}
  %0 = oriel.activation_grad %x, %x {kind = "gelu"} : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

func.func @f(%x: tensor<1x1x2x4xf64>, %c: tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64> {
  // expected-error @below {{'oriel.rope' op has no cotangents for its operands 'cos' and 'sin'}}
  %0 = oriel.rope %x, %c, %c : (tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>, tensor<1x1x2x4xf64>) -> tensor<1x1x2x4xf64>
  return %0 : tensor<1x1x2x4xf64>
}

// -----

func.func @f(%q: tensor<1x1x2x2xf64>) -> tensor<1x1x2xf64> {
  // expected-error @below {{can't be differentiated through its result 'logsumexp'}}
  %0, %1 = oriel.attention %q, %q, %q {scale = 1.0} : (tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>, tensor<1x1x2x2xf64>) -> (tensor<1x1x2x2xf64>, tensor<1x1x2xf64>)
  return %1 : tensor<1x1x2xf64>
}

// -----

func.func @f(%x: tensor<3x4xf64>, %w: tensor<4xf64>) -> tensor<3xf64> {
  // expected-error @below {{'oriel.rms_norm' op can't be differentiated through its result 1}}
  %0, %1 = oriel.rms_norm %x, %w {epsilon = 1.0e-6} : (tensor<3x4xf64>, tensor<4xf64>) -> (tensor<3x4xf64>, tensor<3xf64>)
  return %1 : tensor<3xf64>
}

// -----

func.func @f(%x: tensor<3x4xf64>) -> tensor<3xf64> {
  %l = oriel.constant {value = dense<1> : tensor<3xi64>} : () -> tensor<3xi64>
  // expected-error @below {{'oriel.cross_entropy' op can't be differentiated through its result 'logsumexp'}}
  %0, %1, %2 = oriel.cross_entropy %x, %l : (tensor<3x4xf64>, tensor<3xi64>) -> (tensor<f64>, tensor<f64>, tensor<3xf64>)
  return %2 : tensor<3xf64>
}

// -----

func.func @f(%t: tensor<3x4xf64>) -> tensor<2x4xf64> {
  %i = oriel.constant {value = dense<[1, 5]> : tensor<2xi64>} : () -> tensor<2xi64>
  %first = oriel.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  // expected-error @below {{'oriel.gather' op of a piece of the rows has no derivative: differentiate the whole}}
  %0 = oriel.gather %t, %i, %first {dim = 0 : i64, rows = 6 : i64} : (tensor<3x4xf64>, tensor<2xi64>, tensor<i64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// -----

func.func @f(%u: tensor<2x4xf64>) -> tensor<3x4xf64> {
  %i = oriel.constant {value = dense<[1, 5]> : tensor<2xi64>} : () -> tensor<2xi64>
  %first = oriel.constant {value = dense<3> : tensor<i64>} : () -> tensor<i64>
  // expected-error @below {{'oriel.scatter_add' op of a piece of the rows has no derivative: differentiate the whole}}
  %0 = oriel.scatter_add %i, %u, %first {dim = 0 : i64, rows = 6 : i64} : (tensor<2xi64>, tensor<2x4xf64>, tensor<i64>) -> tensor<3x4xf64>
  return %0 : tensor<3x4xf64>
}

// -----

// expected-error @below {{has no function @f of one block}}
module {
}
