// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s

// Two linear layers: the columns of the first are the rows of the second.
// CHECK: oriel.mesh = {tp = ["a0"]}
// CHECK: @p0 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p1 {{.*}}use = #oriel.sharding<[{a0}, {}]>}
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %1 = oriel.relu %0 : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %2 = oriel.linear %1, %down : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

// A weight that is stored transposed is split along its other dimension; the bias of the first
// layer with its columns, that of the second stays whole.
// CHECK: @p0 {{.*}}use = #oriel.sharding<[{a0}, {}]>}
// CHECK: @p1 {{.*}}use = #oriel.sharding<[{a0}]>}
// CHECK: @p2 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p3 {onnx_name = "down.bias", type = tensor<8xf32>}
module {
  oriel.parameter @p0 {onnx_name = "up.weight", type = tensor<16x8xf32>}
  oriel.parameter @p1 {onnx_name = "up.bias", type = tensor<16xf32>}
  oriel.parameter @p2 {onnx_name = "down.weight", type = tensor<8x16xf32>}
  oriel.parameter @p3 {onnx_name = "down.bias", type = tensor<8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %upBias: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %downBias: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %x, %up, %upBias {transpose_weight = true} : (tensor<2x4x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<2x4x16xf32>
    %1 = oriel.activation %0 {kind = "gelu_tanh"} : (tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %2 = oriel.linear %1, %down, %downBias {transpose_weight = true} : (tensor<2x4x16xf32>, tensor<8x16xf32>, tensor<8xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

// A gated MLP: gate and up are split alike.
// CHECK: @p0 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p1 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p2 {{.*}}use = #oriel.sharding<[{a0}, {}]>}
module {
  oriel.parameter @p0 {onnx_name = "gate", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %gate: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %gate : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %1 = oriel.linear %x, %up : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %2 = oriel.gated_activation %0, %1 {kind = "silu"} : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %3 = oriel.linear %2, %down : (tensor<2x4x16xf32>, tensor<16x8xf32>) -> tensor<2x4x8xf32>
    return
  }
}

// -----

// Attention by heads: queries, keys and values by column, the output projection by row. Four query
// heads share two key heads.
// CHECK: @p0 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p1 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p2 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p3 {{.*}}use = #oriel.sharding<[{a0}, {}]>}
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "key", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "value", type = tensor<8x8xf32>}
  oriel.parameter @p3 {onnx_name = "output", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %key: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %value: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %output: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %x, %query : (tensor<2x6x8xf32>, tensor<8x16xf32>) -> tensor<2x6x16xf32>
    %q = oriel.reshape %0 : (tensor<2x6x16xf32>) -> tensor<2x6x4x4xf32>
    %1 = oriel.linear %x, %key : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %k = oriel.reshape %1 : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
    %2 = oriel.linear %x, %value : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %v = oriel.reshape %2 : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
    %3, %lse = oriel.attention %q, %k, %v {scale = 0.5, causal = true, sequence_first = true} : (tensor<2x6x4x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x4x4xf32>, tensor<2x4x6xf32>)
    %4 = oriel.reshape %3 : (tensor<2x6x4x4xf32>) -> tensor<2x6x16xf32>
    %5 = oriel.linear %4, %output : (tensor<2x6x16xf32>, tensor<16x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}

// -----

// As many heads as ranks, with heads before positions: transposes are seen through.
// CHECK: @p0 {{.*}}use = #oriel.sharding<[{}, {a0}]>}
// CHECK: @p1 {{.*}}use = #oriel.sharding<[{a0}, {}]>}
module {
  oriel.parameter @p0 {onnx_name = "query", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "output", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %query: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %output: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %query : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    %1 = oriel.reshape %0 : (tensor<2x6x8xf32>) -> tensor<2x6x2x4xf32>
    %q = oriel.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x2x4xf32>) -> tensor<2x2x6x4xf32>
    %2, %lse = oriel.attention %q, %q, %q {scale = 0.5} : (tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>, tensor<2x2x6x4xf32>) -> (tensor<2x2x6x4xf32>, tensor<2x2x6xf32>)
    %3 = oriel.transpose %2 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x2x6x4xf32>) -> tensor<2x6x2x4xf32>
    %4 = oriel.reshape %3 : (tensor<2x6x2x4xf32>) -> tensor<2x6x8xf32>
    %5 = oriel.linear %4, %output : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32>
    return
  }
}

// -----

// Embedding and output layer are tied: one parameter, split by vocabulary in both uses.
// CHECK: @p0 {{.*}}use = #oriel.sharding<[{a0}, {}]>}
// CHECK: @p1 {onnx_name = "norm", type = tensor<8xf32>}
module {
  oriel.parameter @p0 {onnx_name = "embedding", type = tensor<32x8xf32>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<8xf32>}
  func.func @forward(%ids: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %labels: tensor<2x4xi64> {oriel.kind = "input", oriel.ref = "labels"},
      %table: tensor<32x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<32x8xf32>, tensor<2x4xi64>) -> tensor<2x4x8xf32>
    %1, %rms = oriel.rms_norm %0, %norm {epsilon = 1.0e-6} : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %2 = oriel.linear %1, %table {transpose_weight = true} : (tensor<2x4x8xf32>, tensor<32x8xf32>) -> tensor<2x4x32xf32>
    %3, %4, %5 = oriel.cross_entropy %2, %labels : (tensor<2x4x32xf32>, tensor<2x4xi64>) -> (tensor<f32>, tensor<f32>, tensor<2x4xf32>)
    return
  }
}

// -----

// What one block makes in pieces another one reads in these pieces: a table of biases by heads,
// which two layers add, and columns of the first that both a small product and the second layer
// reduce.
// CHECK: "table", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "up0", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down0", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "up1", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "gate1", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "down1", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "table", type = tensor<4x16xf32>}
  oriel.parameter @p1 {onnx_name = "up0", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "down0", type = tensor<16x8xf32>}
  oriel.parameter @p3 {onnx_name = "up1", type = tensor<8x16xf32>}
  oriel.parameter @p4 {onnx_name = "gate1", type = tensor<16x6xf32>}
  oriel.parameter @p5 {onnx_name = "down1", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %table: tensor<4x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up0: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down0: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %up1: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %gate1: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %down1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %bias = oriel.neg %table : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %0 = oriel.linear %x, %up0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.add %0, %bias : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.linear %1, %down0 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %residual = oriel.add %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.linear %residual, %up1 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %4 = oriel.add %3, %bias : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %5 = oriel.linear %4, %gate1 : (tensor<4x16xf32>, tensor<16x6xf32>) -> tensor<4x6xf32>
    %6 = oriel.linear %4, %down1 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

// A norm over what is cut, where only this block reads it: of all heads, say. In the residual between
// layers it stays whole, with the products that read it split by columns.
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: {onnx_name = "inner", type = tensor<16xf32>}
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: {onnx_name = "outer", type = tensor<8xf32>}
// CHECK: "up1", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down1", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "inner", type = tensor<16xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<16x8xf32>}
  oriel.parameter @p3 {onnx_name = "outer", type = tensor<8xf32>}
  oriel.parameter @p4 {onnx_name = "up1", type = tensor<8x16xf32>}
  oriel.parameter @p5 {onnx_name = "down1", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %inner: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %outer: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %up1: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %down1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %0 = oriel.linear %x, %up : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1:2 = oriel.rms_norm %0, %inner {epsilon = 1.0e-6 : f64} : (tensor<4x16xf32>, tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4xf32>)
    %2 = oriel.linear %1#0, %down : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.add %x, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %4:2 = oriel.rms_norm %3, %outer {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    %5 = oriel.linear %4#0, %up1 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %6 = oriel.linear %5, %down1 : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %7 = oriel.add %3, %6 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

// A mixture of four experts whose columns don't split: each rank has two of them, and of the
// gates, which are all there on each rank, since a softmax in pieces takes further reductions, it
// takes those.
// CHECK: "router", type = tensor<32x4xf32>}
// CHECK: "up", {{.*}}use = #oriel.sharding<[{a0}, {}, {}]>
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "router", type = tensor<32x4xf32>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<4x32x8xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<4x8x32xf32>}
  func.func @forward(%x: tensor<6x32xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<32x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<4x32x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<4x8x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %w : (tensor<6x32xf32>, tensor<32x4xf32>) -> tensor<6x4xf32>
    %1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<6x4xf32>) -> tensor<6x4xf32>
    %2 = oriel.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<6x4xf32>) -> tensor<4x6xf32>
    %3 = oriel.reshape %2 : (tensor<4x6xf32>) -> tensor<4x6x1xf32>
    %4 = oriel.reshape %x : (tensor<6x32xf32>) -> tensor<1x6x32xf32>
    %5 = oriel.broadcast %4 : (tensor<1x6x32xf32>) -> tensor<4x6x32xf32>
    %6 = oriel.matmul %5, %up : (tensor<4x6x32xf32>, tensor<4x32x8xf32>) -> tensor<4x6x8xf32>
    %7 = oriel.cumsum %6 {dim = 2 : i64} : (tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
    %8 = oriel.matmul %7, %down : (tensor<4x6x8xf32>, tensor<4x8x32xf32>) -> tensor<4x6x32xf32>
    %9 = oriel.mul %8, %3 : (tensor<4x6x32xf32>, tensor<4x6x1xf32>) -> tensor<4x6x32xf32>
    %10 = oriel.reduce_sum %9 {dims = array<i64: 0>, keep_dims = false} : (tensor<4x6x32xf32>) -> tensor<6x32xf32>
    return
  }
}

// -----

// Three experts don't divide by two: they stay whole, without an error.
// CHECK: "up", type = tensor<3x32x8xf32>}
// CHECK: "down", type = tensor<3x8x32xf32>}
module {
  oriel.parameter @p0 {onnx_name = "router", type = tensor<32x3xf32>}
  oriel.parameter @p1 {onnx_name = "up", type = tensor<3x32x8xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<3x8x32xf32>}
  func.func @forward(%x: tensor<6x32xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<32x3xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %up: tensor<3x32x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<3x8x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %w : (tensor<6x32xf32>, tensor<32x3xf32>) -> tensor<6x3xf32>
    %1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<6x3xf32>) -> tensor<6x3xf32>
    %2 = oriel.transpose %1 {permutation = array<i64: 1, 0>} : (tensor<6x3xf32>) -> tensor<3x6xf32>
    %3 = oriel.reshape %2 : (tensor<3x6xf32>) -> tensor<3x6x1xf32>
    %4 = oriel.reshape %x : (tensor<6x32xf32>) -> tensor<1x6x32xf32>
    %5 = oriel.broadcast %4 : (tensor<1x6x32xf32>) -> tensor<3x6x32xf32>
    %6 = oriel.matmul %5, %up : (tensor<3x6x32xf32>, tensor<3x32x8xf32>) -> tensor<3x6x8xf32>
    %7 = oriel.cumsum %6 {dim = 2 : i64} : (tensor<3x6x8xf32>) -> tensor<3x6x8xf32>
    %8 = oriel.matmul %7, %down : (tensor<3x6x8xf32>, tensor<3x8x32xf32>) -> tensor<3x6x32xf32>
    %9 = oriel.mul %8, %3 : (tensor<3x6x32xf32>, tensor<3x6x1xf32>) -> tensor<3x6x32xf32>
    %10 = oriel.reduce_sum %9 {dims = array<i64: 0>, keep_dims = false} : (tensor<3x6x32xf32>) -> tensor<6x32xf32>
    return
  }
}

// -----

// Gates for each element are no small ones: taking pieces of them would make all of them first.
// CHECK: "up", type = tensor<4x32x8xf32>}
// CHECK: "down", type = tensor<4x8x32xf32>}
module {
  oriel.parameter @p1 {onnx_name = "up", type = tensor<4x32x8xf32>}
  oriel.parameter @p2 {onnx_name = "down", type = tensor<4x8x32xf32>}
  func.func @forward(%x: tensor<4x6x32xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<4x32x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %down: tensor<4x8x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %1 = oriel.softmax %x {dim = 0 : i64} : (tensor<4x6x32xf32>) -> tensor<4x6x32xf32>
    %6 = oriel.matmul %1, %up : (tensor<4x6x32xf32>, tensor<4x32x8xf32>) -> tensor<4x6x8xf32>
    %7 = oriel.cumsum %6 {dim = 2 : i64} : (tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
    %8 = oriel.matmul %7, %down : (tensor<4x6x8xf32>, tensor<4x8x32xf32>) -> tensor<4x6x32xf32>
    %9 = oriel.mul %8, %1 : (tensor<4x6x32xf32>, tensor<4x6x32xf32>) -> tensor<4x6x32xf32>
    %10 = oriel.reduce_sum %9 {dims = array<i64: 0>, keep_dims = false} : (tensor<4x6x32xf32>) -> tensor<6x32xf32>
    return
  }
}

// -----

// Few tokens before a large vocabulary are no small activation beside a weight: the weight's columns
// are cut, not its rows, whose products would be summed over the ranks.
// CHECK: "head", {{.*}}use = #oriel.sharding<[{}, {a0}]>
module {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<8x256xf32>}
  func.func @forward(%x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x256xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %labels: tensor<2xi64> {oriel.kind = "input", oriel.ref = "labels"}) {
    %0 = oriel.tanh %x : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %1 = oriel.linear %0, %w : (tensor<2x8xf32>, tensor<8x256xf32>) -> tensor<2x256xf32>
    %2, %3, %4 = oriel.cross_entropy %1, %labels : (tensor<2x256xf32>, tensor<2xi64>) -> (tensor<f32>, tensor<f32>, tensor<2xf32>)
    return
  }
}

// -----

// A distillation: a student's log-softmax, a teacher's softmax, which takes steps, and what a
// maximum is taken of. Behind the last layers others may read what the blocks cut.
// CHECK: "student", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "teacher", {{.*}}use = #oriel.sharding<[{}, {a0}]>
module {
  oriel.parameter @p0 {onnx_name = "student", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "teacher", type = tensor<8x16xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %t: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.linear %x, %t : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.softmax %1 {dim = 1 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = oriel.reduce_max %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<4x16xf32>) -> tensor<4x1xf32>
    %4 = oriel.sub %0, %3 : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
    %5 = oriel.exp %4 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %6 = oriel.reduce_sum %5 {dims = array<i64: 1>, keep_dims = true} : (tensor<4x16xf32>) -> tensor<4x1xf32>
    %7 = oriel.log %6 : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %8 = oriel.sub %4, %7 : (tensor<4x16xf32>, tensor<4x1xf32>) -> tensor<4x16xf32>
    %9 = oriel.mul %2, %8 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %10 = oriel.reduce_sum %9 {dims = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4xf32>
    return
  }
}

// -----

// Probabilities that a teacher gave, as data: each rank has all of them, and takes its classes.
// CHECK: "student", {{.*}}use = #oriel.sharding<[{}, {a0}]>
module {
  oriel.parameter @p0 {onnx_name = "student", type = tensor<8x16xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %given: tensor<4x16xf32> {oriel.kind = "input", oriel.ref = "given"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.sub %given, %0 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.mul %1, %1 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %3 = oriel.reduce_sum %2 {dims = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4xf32>
    return
  }
}
