// RUN: oriel-opt %s --oriel-pad-blocks=strategy=%S/Inputs/tp4_padding.yaml --split-input-file --verify-diagnostics | FileCheck %s
// RUN: oriel-opt %s --oriel-pad-blocks=strategy=%S/Inputs/tp4.yaml --split-input-file | FileCheck %s --check-prefix=OFF --implicit-check-not=oriel.unpadded

// Without `padding` in the strategy nothing happens.
// OFF: func.func @main

// Six columns become eight. What gives zeros of zeros needs no more.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded = array<i64: 8, 6>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "up_bias", oriel.unpadded = array<i64: 6>, type = tensor<8xf32>}
// CHECK: oriel.parameter @p2 {onnx_name = "down", oriel.unpadded = array<i64: 6, 5>, type = tensor<8x5xf32>}
// CHECK: oriel.parameter @p3 {onnx_name = "down_bias", type = tensor<5xf32>}
// CHECK: %[[UP:.*]] = oriel.linear %{{.*}}, %{{.*}}, %{{.*}} : {{.*}} -> tensor<2x8xf32>
// CHECK-NEXT: %[[ACTIVE:.*]] = oriel.activation %[[UP]] {kind = "gelu"}
// CHECK-NEXT: %[[DOWN:.*]] = oriel.linear %[[ACTIVE]], %{{.*}}, %{{.*}} : (tensor<2x8xf32>, tensor<8x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: return %[[DOWN]]

// expected-warning@+1 {{for tensor parallelism, 6 columns, heads or groups of heads are padded to 8 in "up" and 2 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "up_bias", type = tensor<6xf32>}
oriel.parameter @p2 {onnx_name = "down", type = tensor<6x5xf32>}
oriel.parameter @p3 {onnx_name = "down_bias", type = tensor<5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %up_bias: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
    %down_bias: tensor<5xf32> {oriel.kind = "parameter", oriel.ref = "p3"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up, %up_bias : (tensor<2x8xf32>, tensor<8x6xf32>, tensor<6xf32>) -> tensor<2x6xf32>
  %1 = oriel.activation %0 {kind = "gelu"} : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = oriel.linear %1, %down, %down_bias : (tensor<2x6xf32>, tensor<6x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  return %2 : tensor<2x5xf32>
}

// -----

// A sigmoid makes halves of zeros: they are zeros again for the last layer, whose weights would get gradients else. What the
// function returns has its size.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded
// CHECK: %[[SIGMOID:.*]] = oriel.sigmoid %{{.*}} : (tensor<2x8xf32>)
// CHECK: %[[TRUE:.*]] = oriel.slice %[[SIGMOID]] {limits = array<i64: 2, 6>
// CHECK: %[[INDEX:.*]] = oriel.iota {dim = 0 : i64} : () -> tensor<8xi64>
// CHECK: %[[END:.*]] = oriel.constant {value = dense<6> : tensor<i64>}
// CHECK: %[[IS_TRUE:.*]] = oriel.less %[[INDEX]], %[[END]]
// CHECK: %[[ZERO:.*]] = oriel.constant {value = dense<0.000000e+00>
// CHECK: %[[KEPT:.*]] = oriel.select %[[IS_TRUE]], %[[SIGMOID]], %[[ZERO]]
// CHECK: %[[DOWN:.*]] = oriel.linear %[[KEPT]]
// CHECK: return %[[DOWN]], %[[TRUE]]

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<2x6xf32> {oriel.kind = "output", oriel.ref = "hidden"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.sigmoid %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = oriel.linear %1, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %2, %1 : tensor<2x5xf32>, tensor<2x6xf32>
}

// -----

// Three key heads become four, and the six of queries eight. Of a constant bias of each head there is another one.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "q", oriel.unpadded = array<i64: 8, 12>, type = tensor<8x16xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "k", oriel.unpadded = array<i64: 8, 6>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p3 {onnx_name = "o", oriel.unpadded = array<i64: 12, 8>, type = tensor<16x8xf32>}
// CHECK: %[[BIAS:.*]] = oriel.constant {{.*}} : tensor<1x8x1x1xf32>
// CHECK: oriel.attention {{.*}} %[[BIAS]] {{.*}} (tensor<2x4x8x2xf32>, tensor<2x4x4x2xf32>, tensor<2x4x4x2xf32>, tensor<1x8x1x1xf32>)
// CHECK: oriel.linear {{.*}} : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>

// expected-warning@+1 {{3 columns, heads or groups of heads are padded to 4 in "q" and 3 more}}
oriel.parameter @p0 {onnx_name = "q", type = tensor<8x12xf32>}
oriel.parameter @p1 {onnx_name = "k", type = tensor<8x6xf32>}
oriel.parameter @p2 {onnx_name = "v", type = tensor<8x6xf32>}
oriel.parameter @p3 {onnx_name = "o", type = tensor<12x8xf32>}
func.func @main(
    %x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %wq: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %wk: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %wv: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
    %wo: tensor<12x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"}
) -> (tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %bias = oriel.constant {value = dense<[[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]], [[6.0]]]]> : tensor<1x6x1x1xf32>} : () -> tensor<1x6x1x1xf32>
  %0 = oriel.linear %x, %wq : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
  %q = oriel.reshape %0 : (tensor<2x4x12xf32>) -> tensor<2x4x6x2xf32>
  %1 = oriel.linear %x, %wk : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %k = oriel.reshape %1 : (tensor<2x4x6xf32>) -> tensor<2x4x3x2xf32>
  %2 = oriel.linear %x, %wv : (tensor<2x4x8xf32>, tensor<8x6xf32>) -> tensor<2x4x6xf32>
  %v = oriel.reshape %2 : (tensor<2x4x6xf32>) -> tensor<2x4x3x2xf32>
  %3, %lse = oriel.attention %q, %k, %v, %bias {scale = 1.0, sequence_first = true} : (tensor<2x4x6x2xf32>, tensor<2x4x3x2xf32>, tensor<2x4x3x2xf32>, tensor<1x6x1x1xf32>) -> (tensor<2x4x6x2xf32>, tensor<2x6x4xf32>)
  %4 = oriel.reshape %3 : (tensor<2x4x6x2xf32>) -> tensor<2x4x12xf32>
  %5 = oriel.linear %4, %wo : (tensor<2x4x12xf32>, tensor<12x8xf32>) -> tensor<2x4x8xf32>
  return %5 : tensor<2x4x8xf32>
}

// -----

// An adapter of the last layer reads the same columns: both get zeros.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded
// CHECK: oriel.parameter @p1 {onnx_name = "down", oriel.unpadded = array<i64: 6, 5>
// CHECK: oriel.parameter @p2 {onnx_name = "low", oriel.unpadded = array<i64: 6, 1>
// CHECK: oriel.parameter @p3 {onnx_name = "high", type = tensor<1x5xf32>}

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 2 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
oriel.parameter @p2 {onnx_name = "low", type = tensor<6x1xf32>}
oriel.parameter @p3 {onnx_name = "high", type = tensor<1x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %low: tensor<6x1xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
    %high: tensor<1x5xf32> {oriel.kind = "parameter", oriel.ref = "p3"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.tanh %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = oriel.linear %1, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  %3 = oriel.linear %1, %low : (tensor<2x6xf32>, tensor<6x1xf32>) -> tensor<2x1xf32>
  %4 = oriel.linear %3, %high : (tensor<2x1xf32>, tensor<1x5xf32>) -> tensor<2x5xf32>
  %5 = oriel.add %2, %4 : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<2x5xf32>
  return %5 : tensor<2x5xf32>
}

// -----

// Of a norm over the columns, three quarters are true: so much of the epsilon, and the root of it of the weight.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded
// CHECK: oriel.parameter @p1 {onnx_name = "norm", type = tensor<6xf32>}
// CHECK: oriel.parameter @p2 {onnx_name = "down", oriel.unpadded
// CHECK: %[[UP:.*]] = oriel.linear %{{.*}} -> tensor<2x8xf32>
// CHECK: %[[SIGMOID:.*]] = oriel.sigmoid %[[UP]]
// CHECK: %[[WEIGHT:.*]] = oriel.pad %{{.*}} {high = array<i64: 2>, {{.*}}} : (tensor<6xf32>) -> tensor<8xf32>
// CHECK: %[[OFFSET:.*]] = oriel.constant {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: %[[SUM:.*]] = oriel.add %[[WEIGHT]], %[[OFFSET]]
// CHECK: %[[ROOT:.*]] = oriel.constant {value = dense<0.866025
// CHECK: %[[SCALED:.*]] = oriel.mul %[[SUM]], %[[ROOT]]
// CHECK: %[[NORM:.*]], %{{.*}} = oriel.rms_norm %{{.*}}, %[[SCALED]] {epsilon = 7.500000e-01 : f64}
// CHECK: oriel.linear %[[NORM]]

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 1 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "norm", type = tensor<6xf32>}
oriel.parameter @p2 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %norm: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p2"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.sigmoid %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2, %inv = oriel.rms_norm %1, %norm {epsilon = 1.0, weight_offset = 1.0} : (tensor<2x6xf32>, tensor<6xf32>) -> (tensor<2x6xf32>, tensor<2xf32>)
  %3 = oriel.linear %2, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %3 : tensor<2x5xf32>
}

// -----

// Columns of experts, and a square of them.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded = array<i64: 2, 8, 6>, type = tensor<2x8x8xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "down", oriel.unpadded = array<i64: 2, 6, 5>, type = tensor<2x8x5xf32>}
// CHECK: %[[SQUARE:.*]] = oriel.pow {{.*}} : (tensor<4x8xf32>, tensor<f32>)
// CHECK-NEXT: oriel.expert_linear %[[SQUARE]]

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 1 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<2x8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<2x6x5xf32>}
func.func @main(
    %x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %choice: tensor<4xi64> {oriel.kind = "input", oriel.ref = "choice"},
    %up: tensor<2x8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<2x6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<4x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.expert_linear %x, %up, %choice : (tensor<4x8xf32>, tensor<2x8x6xf32>, tensor<4xi64>) -> tensor<4x6xf32>
  %1 = oriel.relu %0 : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = oriel.pow %1, %two : (tensor<4x6xf32>, tensor<f32>) -> tensor<4x6xf32>
  %3 = oriel.expert_linear %2, %down, %choice : (tensor<4x6xf32>, tensor<2x6x5xf32>, tensor<4xi64>) -> tensor<4x5xf32>
  return %3 : tensor<4x5xf32>
}

// -----

// Four ranks share two heads of keys, each of three of queries: these become four, with zeros behind each three. Values are not
// zero for them, so what they make is made zero. What the function returns has its size.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "q", oriel.padded_groups = array<i64: 1, 2>, oriel.unpadded = array<i64: 8, 12>, type = tensor<8x16xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "k", type = tensor<8x4xf32>}
// CHECK: oriel.parameter @p3 {onnx_name = "o", oriel.padded_groups = array<i64: 2, 1>, oriel.unpadded = array<i64: 12, 8>, type = tensor<16x8xf32>}
// CHECK: oriel.constant {{.*}}dense<{{\[\[\[\[1.000000e\+00\]\], \[\[2.000000e\+00\]\], \[\[3.000000e\+00\]\], \[\[3.000000e\+00\]\], \[\[4.000000e\+00\]\], \[\[5.000000e\+00\]\], \[\[6.000000e\+00\]\], \[\[6.000000e\+00\]\]\]\]}}> : tensor<1x8x1x1xf32>
// CHECK: oriel.attention {{.*}} (tensor<2x4x8x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>, tensor<1x8x1x1xf32>)
// CHECK: %[[WIDE:.*]] = oriel.reshape {{.*}} -> tensor<2x4x16xf32>
// CHECK: %[[APART:.*]] = oriel.reshape %[[WIDE]] : (tensor<2x4x16xf32>) -> tensor<2x4x2x8xf32>
// CHECK: %[[TRUE:.*]] = oriel.slice %[[APART]] {limits = array<i64: 2, 4, 2, 6>
// CHECK: %[[HEADS:.*]] = oriel.reshape %[[TRUE]] : (tensor<2x4x2x6xf32>) -> tensor<2x4x12xf32>
// CHECK: %[[INDEX:.*]] = oriel.iota {dim = 1 : i64} : () -> tensor<2x8xi64>
// CHECK: %[[IS_TRUE:.*]] = oriel.less %[[INDEX]], %{{.*}}
// CHECK: %[[ROW:.*]] = oriel.reshape %[[IS_TRUE]] : (tensor<2x8xi1>) -> tensor<16xi1>
// CHECK: %[[KEPT:.*]] = oriel.select %[[ROW]], %[[WIDE]]
// CHECK: %[[OUT:.*]] = oriel.linear %[[KEPT]]
// CHECK: return %[[OUT]], %[[HEADS]]

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "q" and 1 more}}
oriel.parameter @p0 {onnx_name = "q", type = tensor<8x12xf32>}
oriel.parameter @p1 {onnx_name = "k", type = tensor<8x4xf32>}
oriel.parameter @p2 {onnx_name = "v", type = tensor<8x4xf32>}
oriel.parameter @p3 {onnx_name = "o", type = tensor<12x8xf32>}
func.func @main(
    %x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %wq: tensor<8x12xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %wk: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %wv: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
    %wo: tensor<12x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"}
) -> (tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<2x4x12xf32> {oriel.kind = "output", oriel.ref = "heads"}) {
  %bias = oriel.constant {value = dense<[[[[1.0]], [[2.0]], [[3.0]], [[4.0]], [[5.0]], [[6.0]]]]> : tensor<1x6x1x1xf32>} : () -> tensor<1x6x1x1xf32>
  %0 = oriel.linear %x, %wq : (tensor<2x4x8xf32>, tensor<8x12xf32>) -> tensor<2x4x12xf32>
  %q = oriel.reshape %0 : (tensor<2x4x12xf32>) -> tensor<2x4x6x2xf32>
  %1 = oriel.linear %x, %wk : (tensor<2x4x8xf32>, tensor<8x4xf32>) -> tensor<2x4x4xf32>
  %k = oriel.reshape %1 : (tensor<2x4x4xf32>) -> tensor<2x4x2x2xf32>
  %2 = oriel.linear %x, %wv : (tensor<2x4x8xf32>, tensor<8x4xf32>) -> tensor<2x4x4xf32>
  %v = oriel.reshape %2 : (tensor<2x4x4xf32>) -> tensor<2x4x2x2xf32>
  %3, %lse = oriel.attention %q, %k, %v, %bias {scale = 1.0, sequence_first = true} : (tensor<2x4x6x2xf32>, tensor<2x4x2x2xf32>, tensor<2x4x2x2xf32>, tensor<1x6x1x1xf32>) -> (tensor<2x4x6x2xf32>, tensor<2x6x4xf32>)
  %4 = oriel.reshape %3 : (tensor<2x4x6x2xf32>) -> tensor<2x4x12xf32>
  %5 = oriel.linear %4, %wo : (tensor<2x4x12xf32>, tensor<12x8xf32>) -> tensor<2x4x8xf32>
  return %5, %4 : tensor<2x4x8xf32>, tensor<2x4x12xf32>
}

// -----

// A leaky ReLU asks where it is above zero; a depthwise convolution has as many groups as channels.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded = array<i64: 6, 8>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "conv", oriel.unpadded = array<i64: 6, 1, 3>, type = tensor<8x1x3xf32>}
// CHECK: oriel.conv {{.*}}group = 8 : i64
// CHECK: oriel.greater {{.*}} : (tensor<2x8x4xf32>, tensor<f32>) -> tensor<2x8x4xi1>
// CHECK: oriel.linear {{.*}} : (tensor<2x4x8xf32>, tensor<8x5xf32>)

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 2 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<6x8xf32>}
oriel.parameter @p1 {onnx_name = "conv", type = tensor<6x1x3xf32>}
oriel.parameter @p2 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<6x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %conv: tensor<6x1x3xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p2"}
) -> (tensor<2x4x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %slope = oriel.constant {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.linear %x, %up {transpose_weight = true} : (tensor<2x4x8xf32>, tensor<6x8xf32>) -> tensor<2x4x6xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x4x6xf32>) -> tensor<2x6x4xf32>
  %2 = oriel.conv %1, %conv {strides = array<i64: 1>, dilations = array<i64: 1>, pads = array<i64: 2, 0>, group = 6 : i64} : (tensor<2x6x4xf32>, tensor<6x1x3xf32>) -> tensor<2x6x4xf32>
  %3 = oriel.greater %2, %zero : (tensor<2x6x4xf32>, tensor<f32>) -> tensor<2x6x4xi1>
  %4 = oriel.mul %2, %slope : (tensor<2x6x4xf32>, tensor<f32>) -> tensor<2x6x4xf32>
  %5 = oriel.select %3, %2, %4 : (tensor<2x6x4xi1>, tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  %6 = oriel.transpose %5 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x4xf32>) -> tensor<2x4x6xf32>
  %7 = oriel.linear %6, %down : (tensor<2x4x6xf32>, tensor<6x5xf32>) -> tensor<2x4x5xf32>
  return %7 : tensor<2x4x5xf32>
}

// -----

// What data alone makes has its last element again: hidden everywhere, a softmax would have nothing to choose from.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded
// CHECK: oriel.constant {value = dense<[false, true, true, false, true, true, true, true]> : tensor<8xi1>}
// CHECK: oriel.mod {{.*}} : (tensor<2x1xi64>, tensor<6xi64>) -> tensor<2x6xi64>
// CHECK: %[[DATA:.*]] = oriel.cast {{.*}} -> tensor<2x6xf32>
// CHECK: %[[LAST:.*]] = oriel.slice %[[DATA]] {limits = array<i64: 2, 6>, starts = array<i64: 0, 5>
// CHECK: %[[AGAIN:.*]] = oriel.broadcast %[[LAST]] : (tensor<2x1xf32>) -> tensor<2x2xf32>
// CHECK: %[[WIDE:.*]] = oriel.concat %[[DATA]], %[[AGAIN]]
// CHECK: oriel.mul %{{.*}}, %[[WIDE]]

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 1 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %ids: tensor<2x1xi64> {oriel.kind = "input", oriel.ref = "ids"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %seen = oriel.constant {value = dense<[false, true, true, false, true, true]> : tensor<6xi1>} : () -> tensor<6xi1>
  %sizes = oriel.constant {value = dense<[3, 5, 7, 9, 11, 13]> : tensor<6xi64>} : () -> tensor<6xi64>
  %zero = oriel.constant {value = dense<0.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.select %seen, %0, %zero : (tensor<6xi1>, tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %2 = oriel.mod %ids, %sizes : (tensor<2x1xi64>, tensor<6xi64>) -> tensor<2x6xi64>
  %3 = oriel.cast %2 : (tensor<2x6xi64>) -> tensor<2x6xf32>
  %4 = oriel.mul %1, %3 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %5 = oriel.linear %4, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %5 : tensor<2x5xf32>
}

// -----

// A softplus takes the logarithm of two behind the end, and a softsign divides by one.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded
// CHECK: oriel.log {{.*}} : (tensor<2x8xf32>)
// CHECK: %[[SOFTSIGN:.*]] = oriel.div {{.*}} : (tensor<2x8xf32>, tensor<2x8xf32>)
// CHECK: oriel.select {{.*}} : (tensor<8xi1>, tensor<2x8xf32>, tensor<f32>)
// CHECK-NEXT: oriel.linear

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 1 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<2x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.linear %x, %up : (tensor<2x8xf32>, tensor<8x6xf32>) -> tensor<2x6xf32>
  %1 = oriel.exp %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %2 = oriel.add %one, %1 : (tensor<f32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %3 = oriel.log %2 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %4 = oriel.abs %0 : (tensor<2x6xf32>) -> tensor<2x6xf32>
  %5 = oriel.add %4, %one : (tensor<2x6xf32>, tensor<f32>) -> tensor<2x6xf32>
  %6 = oriel.div %3, %5 : (tensor<2x6xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
  %7 = oriel.linear %6, %down : (tensor<2x6xf32>, tensor<6x5xf32>) -> tensor<2x5xf32>
  return %7 : tensor<2x5xf32>
}

// -----

// Data that the model joins: the last element is a part of it.

// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "up", oriel.unpadded
// CHECK: %[[JOINED:.*]] = oriel.concat %[[A:.*]], %[[B:.*]] {dim = 1 : i64}
// CHECK: %[[AGAIN:.*]] = oriel.broadcast %[[B]] : (tensor<1x1xf32>) -> tensor<1x2xf32>
// CHECK: %[[WIDE:.*]] = oriel.concat %[[JOINED]], %[[AGAIN]]
// CHECK: oriel.mul %{{.*}}, %[[WIDE]]

// expected-warning@+1 {{6 columns, heads or groups of heads are padded to 8 in "up" and 1 more}}
oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
oriel.parameter @p1 {onnx_name = "down", type = tensor<6x5xf32>}
func.func @main(
    %x: tensor<64x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %a: tensor<1x5xf32> {oriel.kind = "input", oriel.ref = "a"},
    %b: tensor<1x1xf32> {oriel.kind = "input", oriel.ref = "b"},
    %up: tensor<8x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %down: tensor<6x5xf32> {oriel.kind = "parameter", oriel.ref = "p1"}
) -> (tensor<64x5xf32> {oriel.kind = "output", oriel.ref = "y"}) {
  %0 = oriel.linear %x, %up : (tensor<64x8xf32>, tensor<8x6xf32>) -> tensor<64x6xf32>
  %c = oriel.concat %a, %b {dim = 1 : i64} : (tensor<1x5xf32>, tensor<1x1xf32>) -> tensor<1x6xf32>
  %1 = oriel.mul %0, %c : (tensor<64x6xf32>, tensor<1x6xf32>) -> tensor<64x6xf32>
  %2 = oriel.linear %1, %down : (tensor<64x6xf32>, tensor<6x5xf32>) -> tensor<64x5xf32>
  return %2 : tensor<64x5xf32>
}
