// Mistakes in derivatives and rules that no verifier can see.
// RUN: oriel-opt %s --load-plugin=%plugin_dir/wrong_ops_plugin.so --oriel-check-ops \
// RUN:   --mlir-print-op-on-diagnostic=false --split-input-file --verify-diagnostics

// expected-error-re@+2 {{the derivative by argument 0 is wrong in 8 of 8 elements: element 0 is {{.*}}, by finite differences}}
// expected-error@+1 {{the derivative by argument 1 is wrong}}
func.func @derivative(%x: tensor<2x4xf64>, %y: tensor<2x4xf64>) -> tensor<2x4xf64> {
  %0 = wrong.derivative %x, %y : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// -----

func.func @linear(%x: tensor<2x4xf64>, %y: tensor<2x4xf64>) -> tensor<2x4xf64> attributes {check.forward_only} {
  // expected-error@+1 {{as if linear in operands {0, 1}, of two summands: element 0 of result 0 is}}
  %0 = wrong.linear %x, %y : (tensor<2x4xf64>, tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// -----

func.func @kind(%x: tensor<2x4xf64>, %y: tensor<4x3xf64>) -> tensor<2x3xf64> attributes {check.forward_only} {
  // expected-error-re@+1 {{cut into 2 along factor 0 (parallel, of 2) and into 2 along factor 1 (a maximum, of 4): element 0 of result 0 is {{.*}}, of the whole op}}
  %0 = wrong.kind %x, %y : (tensor<2x4xf64>, tensor<4x3xf64>) -> tensor<2x3xf64>
  return %0 : tensor<2x3xf64>
}

// -----

func.func @split(%x: tensor<2x4xf64>) -> tensor<2x4xf64> attributes {check.forward_only} {
  // expected-error@+1 {{cut into 2 along factor 0 (parallel, of 2) and into 2 along factor 1 (parallel, of 4): element 0}}
  %0 = wrong.split %x {dim = 1 : i64} : (tensor<2x4xf64>) -> tensor<2x4xf64>
  return %0 : tensor<2x4xf64>
}

// -----

// A mistake that this size does not show.
// expected-remark@+1 {{pieces make the whole: wrong.split (cut in 1 way)}}
func.func @split(%x: tensor<2x1xf64>) -> tensor<2x1xf64> attributes {check.forward_only} {
  %0 = wrong.split %x {dim = 1 : i64} : (tensor<2x1xf64>) -> tensor<2x1xf64>
  return %0 : tensor<2x1xf64>
}

// -----

// expected-remark@+1 {{never cut, without a rule or of such sizes: wrong.ruleless}}
func.func @ruleless(%x: tensor<4xf32>) -> tensor<4xf32> attributes {check.forward_only} {
  %0 = wrong.ruleless %x : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error@+1 {{can't be differentiated}}
func.func @ruleless(%x: tensor<4xf64>) -> tensor<4xf64> {
  // expected-error@+1 {{derivative}}
  %0 = wrong.ruleless %x : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}

// -----

// expected-error@+1 {{wrong.kernelless: no kernel}}
func.func @kernelless(%x: tensor<4xf64>) -> tensor<4xf64> {
  %0 = wrong.kernelless %x : (tensor<4xf64>) -> tensor<4xf64>
  return %0 : tensor<4xf64>
}
