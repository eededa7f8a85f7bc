// RUN: oriel-opt %s --split-input-file --oriel-propagate | FileCheck %s

// A lookup is cut where its result has positions. A merge of images needs all of them: columns are
// exchanged for positions, and come back. So are heads in attention. Its statistics, which have
// no positions here, stay cut by heads, and so do the stashed keys, which nothing else uses.
// CHECK-LABEL: func.func @forward
// CHECK-SAME: (tensor<1x512x2x16xf32> {oriel.kind = "stash", oriel.ref = "k", oriel.sharding = #oriel.sharding<[{}, {}, {a0}, {}]>},
// CHECK-SAME: tensor<1x512x64xf32> {oriel.kind = "stash", oriel.ref = "out", oriel.sharding = #oriel.sharding<[{}, {a0}, {}]>}
// CHECK: oriel.gather {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>], oriel.split = {{.*}}[], ["a0"], []]
// CHECK: oriel.merge_features {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>], oriel.split = {{\[}}[], ["a0"]]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>]
// CHECK: oriel.attention {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}, {}]>, #oriel.sharding<[{}, {a0}, {}]>], oriel.split = {{\[}}[], ["a0"], [], []]
// The backward's attention finds keys as it wants them; gradients of parameters are pending.
// CHECK-LABEL: func.func @backward
// CHECK-SAME: -> (tensor<32x32xf32> {{{.*}}oriel.sharding = #oriel.sharding<[{}, {}] sum {a0}>
// CHECK: oriel.attention_grad {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}, {}]>, #oriel.sharding<[{}, {a0}, {}, {}]>, #oriel.sharding<[{}, {a0}, {}, {}]>]
// CHECK: oriel.linear_weight_grad {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {cp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "table", type = tensor<128x32xf32>}
  oriel.parameter @p1 {onnx_name = "query", type = tensor<32x64xf32>}
  oriel.parameter @p2 {onnx_name = "key", type = tensor<32x32xf32>}
  func.func @forward(%ids: tensor<1x512xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %slots: tensor<1x512xi1> {oriel.kind = "input", oriel.ref = "slots"},
      %images: tensor<1x49x32xf32> {oriel.kind = "input", oriel.ref = "images"},
      %table: tensor<128x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %query: tensor<32x64xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %key: tensor<32x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<1x512x2x16xf32> {oriel.kind = "stash", oriel.ref = "k"},
          tensor<1x512x64xf32> {oriel.kind = "stash", oriel.ref = "out"},
          tensor<1x512x4x16xf32> {oriel.kind = "stash", oriel.ref = "q"},
          tensor<1x4x512xf32> {oriel.kind = "stash", oriel.ref = "lse"},
          tensor<1x512x32xf32> {oriel.kind = "stash", oriel.ref = "x"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64, oriel.positions = array<i64: 1>, origin = 0 : i64} : (tensor<128x32xf32>, tensor<1x512xi64>) -> tensor<1x512x32xf32>
    %features = oriel.tanh %images : (tensor<1x49x32xf32>) -> tensor<1x49x32xf32>
    %1 = oriel.merge_features %0, %slots, %features {oriel.positions = array<i64: 1>, origin = 1 : i64} : (tensor<1x512x32xf32>, tensor<1x512xi1>, tensor<1x49x32xf32>) -> tensor<1x512x32xf32>
    %2 = oriel.linear %1, %query {oriel.positions = array<i64: 1>, origin = 2 : i64} : (tensor<1x512x32xf32>, tensor<32x64xf32>) -> tensor<1x512x64xf32>
    %q = oriel.reshape %2 {origin = 3 : i64} : (tensor<1x512x64xf32>) -> tensor<1x512x4x16xf32>
    %3 = oriel.linear %1, %key {origin = 4 : i64} : (tensor<1x512x32xf32>, tensor<32x32xf32>) -> tensor<1x512x32xf32>
    %k = oriel.reshape %3 {origin = 5 : i64} : (tensor<1x512x32xf32>) -> tensor<1x512x2x16xf32>
    %v = oriel.tanh %k {origin = 6 : i64} : (tensor<1x512x2x16xf32>) -> tensor<1x512x2x16xf32>
    %4, %lse = oriel.attention %q, %v, %v {scale = 0.5, causal = true, sequence_first = true, origin = 7 : i64} : (tensor<1x512x4x16xf32>, tensor<1x512x2x16xf32>, tensor<1x512x2x16xf32>) -> (tensor<1x512x4x16xf32>, tensor<1x4x512xf32>)
    %5 = oriel.reshape %4 {origin = 8 : i64} : (tensor<1x512x4x16xf32>) -> tensor<1x512x64xf32>
    return %v, %5, %q, %lse, %1 : tensor<1x512x2x16xf32>, tensor<1x512x64xf32>, tensor<1x512x4x16xf32>, tensor<1x4x512xf32>, tensor<1x512x32xf32>
  }
  func.func @backward(%v: tensor<1x512x2x16xf32> {oriel.kind = "stash", oriel.ref = "k"},
      %out: tensor<1x512x64xf32> {oriel.kind = "stash", oriel.ref = "out"},
      %q: tensor<1x512x4x16xf32> {oriel.kind = "stash", oriel.ref = "q"},
      %lse: tensor<1x4x512xf32> {oriel.kind = "stash", oriel.ref = "lse"},
      %x: tensor<1x512x32xf32> {oriel.kind = "stash", oriel.ref = "x"},
      %sum: tensor<32x32xf32> {oriel.kind = "gradient", oriel.ref = "p2"})
      -> (tensor<32x32xf32> {oriel.kind = "gradient", oriel.ref = "p2"}) {
    %0 = oriel.reshape %out {origin = 8 : i64} : (tensor<1x512x64xf32>) -> tensor<1x512x4x16xf32>
    %dq, %dk, %dv = oriel.attention_grad %0, %q, %v, %v, %0, %lse {scale = 0.5, causal = true, sequence_first = true, origin = 7 : i64} : (tensor<1x512x4x16xf32>, tensor<1x512x4x16xf32>, tensor<1x512x2x16xf32>, tensor<1x512x2x16xf32>, tensor<1x512x4x16xf32>, tensor<1x4x512xf32>) -> (tensor<1x512x4x16xf32>, tensor<1x512x2x16xf32>, tensor<1x512x2x16xf32>)
    %1 = oriel.reshape %dk {origin = 5 : i64} : (tensor<1x512x2x16xf32>) -> tensor<1x512x32xf32>
    %2 = oriel.linear_weight_grad %x, %1 {origin = 4 : i64} : (tensor<1x512x32xf32>, tensor<1x512x32xf32>) -> tensor<32x32xf32>
    %3 = oriel.add %sum, %2 {origin = 4 : i64} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    return %3 : tensor<32x32xf32>
  }
}

// -----

// Four ranks and two heads of keys: two ranks have the same keys, and half of their queries each.
// CHECK-LABEL: func.func @forward
// CHECK: oriel.attention {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0, a1}, {}, {}]>, #oriel.sharding<[{}, {a0, a1}, {}]>], oriel.split = {{\[}}[], ["a0"], ["a1"], []]
module attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {cp = ["a0", "a1"]}} {
  oriel.parameter @p0 {onnx_name = "table", type = tensor<128x64xf32>}
  func.func @forward(%ids: tensor<1x8192xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<128x64xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<1x8192x4x16xf32> {oriel.kind = "stash", oriel.ref = "out"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64, oriel.positions = array<i64: 1>, origin = 0 : i64} : (tensor<128x64xf32>, tensor<1x8192xi64>) -> tensor<1x8192x64xf32>
    %q = oriel.reshape %0 {origin = 1 : i64} : (tensor<1x8192x64xf32>) -> tensor<1x8192x4x16xf32>
    %1 = oriel.slice %0 {limits = array<i64: 1, 8192, 32>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>, origin = 2 : i64} : (tensor<1x8192x64xf32>) -> tensor<1x8192x32xf32>
    %k = oriel.reshape %1 {origin = 3 : i64} : (tensor<1x8192x32xf32>) -> tensor<1x8192x2x16xf32>
    %2, %lse = oriel.attention %q, %k, %k {scale = 0.5, causal = true, sequence_first = true, oriel.positions = array<i64: 1, -1>, origin = 4 : i64} : (tensor<1x8192x4x16xf32>, tensor<1x8192x2x16xf32>, tensor<1x8192x2x16xf32>) -> (tensor<1x8192x4x16xf32>, tensor<1x4x8192xf32>)
    return %2 : tensor<1x8192x4x16xf32>
  }
}

// -----

// Between programs on other grids, values and cotangents are cut by their positions where they arrive.
// CHECK-LABEL: module @grid0
// CHECK: oriel.send {{.*}}oriel.sharding = #oriel.sharding<[{}, {a0}, {}]>
// CHECK: oriel.receive {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>]
// CHECK: oriel.exp {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>]
// CHECK-LABEL: module @grid1
// CHECK: oriel.receive {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {a1}]>]{{.*}}oriel.view = #oriel.sharding<[{}, {a0}, {}]>
module {
  module @grid0 attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {cp = ["a0"]}} {
    oriel.parameter @p0 {onnx_name = "table", type = tensor<128x32xf32>}
    func.func @forward.0(%ids: tensor<1x512xi64> {oriel.kind = "input", oriel.ref = "ids"},
        %table: tensor<128x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
      %0 = oriel.gather %table, %ids {dim = 0 : i64, oriel.positions = array<i64: 1>, origin = 0 : i64} : (tensor<128x32xf32>, tensor<1x512xi64>) -> tensor<1x512x32xf32>
      oriel.send %0 {channel = "forward.0", peer = "grid1", origin = 0 : i64} : (tensor<1x512x32xf32>) -> ()
      return
    }
    func.func @backward.0() -> (tensor<1x512x32xf32> {oriel.kind = "stash", oriel.ref = "kept"}) {
      %0 = oriel.receive {channel = "backward.0", peer = "grid1", origin = 0 : i64} : () -> tensor<1x512x32xf32>
      %1 = oriel.exp %0 {origin = 0 : i64} : (tensor<1x512x32xf32>) -> tensor<1x512x32xf32>
      return %1 : tensor<1x512x32xf32>
    }
  }
  module @grid1 attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {cp = ["a0"], tp = ["a1"]}} {
    oriel.parameter @p1 {onnx_name = "weight", type = tensor<32x32xf32>}
    func.func @forward.1(%w: tensor<32x32xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
        -> (tensor<1x512x32xf32> {oriel.kind = "stash", oriel.ref = "x"}) {
      %0 = oriel.receive {channel = "forward.0", oriel.positions = array<i64: 1>, peer = "grid0", origin = 0 : i64} : () -> tensor<1x512x32xf32>
      %1 = oriel.linear %0, %w {oriel.positions = array<i64: 1>, origin = 1 : i64} : (tensor<1x512x32xf32>, tensor<32x32xf32>) -> tensor<1x512x32xf32>
      return %1 : tensor<1x512x32xf32>
    }
    func.func @backward.1(%x: tensor<1x512x32xf32> {oriel.kind = "stash", oriel.ref = "x"},
        %w: tensor<32x32xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
      %0 = oriel.linear %x, %w {origin = 1 : i64} : (tensor<1x512x32xf32>, tensor<32x32xf32>) -> tensor<1x512x32xf32>
      oriel.send %0 {channel = "backward.0", peer = "grid0", origin = 0 : i64} : (tensor<1x512x32xf32>) -> ()
      return
    }
  }
}

// -----

// A convolution along the positions, with a bias: positions can't be exchanged for input channels,
// which are cut in steps. Each rank does all of it, and keeps its positions.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.conv {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}, {a0}]>], oriel.split = {{\[}}[], [], []]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {cp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "table", type = tensor<128x32xf32>}
  oriel.parameter @p1 {onnx_name = "weight", type = tensor<32x32x3xf32>}
  oriel.parameter @p2 {onnx_name = "bias", type = tensor<32xf32>}
  func.func @forward(%ids: tensor<1x512xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %table: tensor<128x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<32x32x3xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %b: tensor<32xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<1x32x512xf32> {oriel.kind = "stash", oriel.ref = "out"}) {
    %0 = oriel.gather %table, %ids {dim = 0 : i64, oriel.positions = array<i64: 1>, origin = 0 : i64} : (tensor<128x32xf32>, tensor<1x512xi64>) -> tensor<1x512x32xf32>
    %1 = oriel.transpose %0 {permutation = array<i64: 0, 2, 1>, oriel.positions = array<i64: 2>, origin = 1 : i64} : (tensor<1x512x32xf32>) -> tensor<1x32x512xf32>
    %2 = oriel.conv %1, %w, %b {dilations = array<i64: 1>, pads = array<i64: 1, 1>, strides = array<i64: 1>, oriel.positions = array<i64: 2>, origin = 2 : i64} : (tensor<1x32x512xf32>, tensor<32x32x3xf32>, tensor<32xf32>) -> tensor<1x32x512xf32>
    return %2 : tensor<1x32x512xf32>
  }
}
