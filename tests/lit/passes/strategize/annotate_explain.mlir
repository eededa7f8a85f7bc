// RUN: oriel-opt %s --oriel-annotate="strategy=%S/Inputs/tp2.yaml explain=true" --split-input-file -o /dev/null 2>&1 | FileCheck %s

// Query, key and value in one product: pieces of its columns are not pieces of heads.
// CHECK: strategize: oriel.linear of output is not split over 2 ranks: oriel.slice of query needs all of it
module {
  oriel.parameter @p0 {onnx_name = "qkv", type = tensor<8x24xf32>}
  oriel.parameter @p1 {onnx_name = "output", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<2x6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %qkv: tensor<8x24xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %output: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %qkv : (tensor<2x6x8xf32>, tensor<8x24xf32>) -> tensor<2x6x24xf32>
    %1 = oriel.reshape %0 : (tensor<2x6x24xf32>) -> tensor<2x6x6x4xf32>
    %q = oriel.slice %1 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 2, 6, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x6x6x4xf32>) -> tensor<2x6x2x4xf32> loc("query")
    %k = oriel.slice %1 {starts = array<i64: 0, 0, 2, 0>, limits = array<i64: 2, 6, 4, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x6x6x4xf32>) -> tensor<2x6x2x4xf32>
    %v = oriel.slice %1 {starts = array<i64: 0, 0, 4, 0>, limits = array<i64: 2, 6, 6, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x6x6x4xf32>) -> tensor<2x6x2x4xf32>
    %2, %lse = oriel.attention %q, %k, %v {scale = 0.5, sequence_first = true} : (tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>, tensor<2x6x2x4xf32>) -> (tensor<2x6x2x4xf32>, tensor<2x2x6xf32>)
    %3 = oriel.reshape %2 : (tensor<2x6x2x4xf32>) -> tensor<2x6x8xf32>
    %4 = oriel.linear %3, %output : (tensor<2x6x8xf32>, tensor<8x8xf32>) -> tensor<2x6x8xf32> loc("output")
    return
  }
}

// -----

// What lies in pieces is wanted by someone else, too, and more of it than the sum sends.
// CHECK: strategize: oriel.linear of down is not split over 2 ranks: what oriel.linear makes is also used by oriel.softmax of scores
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<8x32xf32>}
  oriel.parameter @p1 {onnx_name = "down", type = tensor<32x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<8x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down: tensor<32x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %up : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
    %1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<4x32xf32>) -> tensor<4x32xf32> loc("scores")
    %2 = oriel.linear %0, %down : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32> loc("down")
    return
  }
}

// -----

// The first two of three layers are split: the third one would cut the second along its columns.
// CHECK: strategize: oriel.linear of third is not split over 2 ranks: "second" is cut otherwise
module {
  oriel.parameter @p0 {onnx_name = "first", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "second", type = tensor<16x8xf32>}
  oriel.parameter @p2 {onnx_name = "third", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %first: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %second: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %third: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %first : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.linear %0, %second : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32> loc("second")
    %2 = oriel.linear %1, %third : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("third")
    return
  }
}

// -----

// Nothing to split: one layer, and what it reads is the input.
// CHECK: strategize: oriel.linear is not split over 2 ranks: it comes from an input
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

// No input reaches it: each rank would compute the same for all samples anyway.
// CHECK: strategize: oriel.linear is not split over 2 ranks: it does not depend on an input
module {
  oriel.parameter @p0 {onnx_name = "a", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "b", type = tensor<8x8xf32>}
  func.func @forward(%a: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return
  }
}

// -----

// Most of the work is one layer that does not split: a warning without being asked.
// Layers are one pattern; a digit that ends a word is no number of a layer.
// CHECK: warning: is not split over tp = 2, as 100 % of the work with parameters: each of the ranks does all of that, with "layers.*.fc1" (2), "w". `--explain-sharding`
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "layers.0.fc1", type = tensor<8x8xf32>}
  oriel.parameter @p2 {onnx_name = "layers.11.fc1", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %a: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %c: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p2"}) {
    %0 = oriel.linear %x, %a : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.cumsum %0 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.linear %1, %b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.cumsum %2 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %4 = oriel.linear %3, %c : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %5 = oriel.cumsum %4 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

// A weight that is moved before the product, as an einsum makes it.
// CHECK: warning: is not split over tp = 2, as 100 % of the work with parameters: each of the ranks does all of that, with "moved". `--explain-sharding`
module {
  oriel.parameter @p0 {onnx_name = "moved", type = tensor<2x8x4xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %a: tensor<2x8x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.transpose %a {permutation = array<i64: 1, 0, 2>} : (tensor<2x8x4xf32>) -> tensor<8x2x4xf32>
    %1 = oriel.reshape %0 : (tensor<8x2x4xf32>) -> tensor<8x8xf32>
    %2 = oriel.linear %x, %1 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.cumsum %2 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return
  }
}

// -----

// A share is that of one stage.
// CHECK: warning: is not split over tp = 2, as 100 % of the work with parameters in its stage: each of the ranks does all of that, with "w". `--explain-sharding`
module {
  module @stage0 {
    oriel.parameter @p0 {onnx_name = "w", type = tensor<8x8xf32>}
    func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
        %a: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
      %0 = oriel.linear %x, %a : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      %1 = oriel.cumsum %0 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
      return
    }
  }
}

// -----

// What a stage receives is whole: its other half is behind the border.
// CHECK: strategize: oriel.linear is not split over 2 ranks: it comes from another stage, whole
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<8x8xf32>}
  func.func @forward(%w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.receive {channel = "forward.0.x", peer = "p0"} : () -> tensor<4x8xf32>
    %1 = oriel.linear %0, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    return
  }
}
