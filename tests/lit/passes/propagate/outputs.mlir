// RUN: oriel-opt %s --split-input-file --oriel-propagate | FileCheck %s

// Logits that are cut by classes: the predictions are found in two steps, of which each gives a
// number for each row; the logits stay as they are.
// CHECK-LABEL: func.func @forward
// CHECK-LABEL: func.func @eval
// CHECK-SAME: -> (tensor<2x4xi64> {oriel.kind = "output", oriel.ref = "predictions", oriel.sharding = #oriel.sharding<[{}, {}]>},
// CHECK-SAME: tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "logits", oriel.sharding = #oriel.sharding<[{}, {}, {a0}]>})
// CHECK: %[[LOGITS:.*]] = oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}, {a0}]>]
// CHECK: %[[MAX:.*]] = oriel.reduce_max %[[LOGITS]] {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] max {a0}>]
// CHECK: %[[FROM:.*]] = oriel.remaining_from %[[LOGITS]], %[[MAX]] {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] max {a0}>]
// CHECK: %[[SIZE:.*]] = oriel.constant {{.*}}value = dense<8> : tensor<i64>
// CHECK: oriel.sub %[[SIZE]], %[[FROM]]
// CHECK-NOT: oriel.argmax
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<4x8xf32>, use = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<2x4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %head: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "0"}) {
    %0 = oriel.linear %x, %head {origin = 0 : i64} : (tensor<2x4x4xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @eval(%x: tensor<2x4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %head: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x4xi64> {oriel.kind = "output", oriel.ref = "predictions"},
          tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %head {origin = 0 : i64} : (tensor<2x4x4xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
    %1 = oriel.argmax %0 {dim = 2 : i64, origin = 1 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4xi64>
    return %1, %0 : tensor<2x4xi64>, tensor<2x4x8xf32>
  }
}

// -----

// Classes that are cut off: positions are cut instead, so that no rank has all logits.
// CHECK-LABEL: func.func @eval
// CHECK-SAME: -> (tensor<2x4x7xf32> {{{.*}}oriel.sharding = #oriel.sharding<[{}, {a0}, {}]>})
// CHECK: oriel.slice {{.*}}oriel.shardings = [#oriel.sharding<[{}, {a0}, {}]>], oriel.split = {{\[}}[], ["a0"]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "head", type = tensor<4x8xf32>, use = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<2x4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %head: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x4x8xf32> {oriel.kind = "stash", oriel.ref = "0"}) {
    %0 = oriel.linear %x, %head {origin = 0 : i64} : (tensor<2x4x4xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
    return %0 : tensor<2x4x8xf32>
  }
  func.func @eval(%x: tensor<2x4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
      %head: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<2x4x7xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %head {origin = 0 : i64} : (tensor<2x4x4xf32>, tensor<4x8xf32>) -> tensor<2x4x8xf32>
    %1 = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 4, 7>, strides = array<i64: 1, 1, 1>, origin = 1 : i64} : (tensor<2x4x8xf32>) -> tensor<2x4x7xf32>
    return %1 : tensor<2x4x7xf32>
  }
}
