// RUN: oriel-opt %s --oriel-propagate --split-input-file | FileCheck %s

// A layer that is cut by rows and a low-rank adapter beside it: the few columns between the adapter's
// two products would be less to send than what comes behind them, but that meets the layer's sum,
// which is to be sent anyway.
// CHECK-LABEL: @adapter_by_rows
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>], oriel.split = {{\[\[}}], [], [], ["a0", 0]]
// CHECK: oriel.mul {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.exp {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
module @adapter_by_rows attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "base", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "a", type = tensor<16x2xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p2 {onnx_name = "b", type = tensor<2x6xf32>}
  func.func @forward(%x: tensor<8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %base: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %a: tensor<16x2xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %b: tensor<2x6xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %scale = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.linear %x, %base : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.linear %x, %a : (tensor<8x16xf32>, tensor<16x2xf32>) -> tensor<8x2xf32>
    %2 = oriel.linear %1, %b : (tensor<8x2xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
    %3 = oriel.mul %2, %scale : (tensor<8x6xf32>, tensor<f32>) -> tensor<8x6xf32>
    %4 = oriel.add %0, %3 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %5 = oriel.exp %4 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %5 : tensor<8x6xf32>
  }
}

// -----

// The same where the layer's product comes last, as in the backward of a layer cut by columns, and something is done with
// it before.
// CHECK-LABEL: @adapter_first
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>], oriel.split = {{\[\[}}], [], [], ["a0", 0]]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
module @adapter_first attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "base", type = tensor<16x6xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "a", type = tensor<16x2xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p2 {onnx_name = "b", type = tensor<2x6xf32>}
  func.func @forward(%x: tensor<8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %base: tensor<16x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %a: tensor<16x2xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %b: tensor<2x6xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.linear %x, %a : (tensor<8x16xf32>, tensor<16x2xf32>) -> tensor<8x2xf32>
    %1 = oriel.linear %0, %b : (tensor<8x2xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
    %2 = oriel.linear %x, %base : (tensor<8x16xf32>, tensor<16x6xf32>) -> tensor<8x6xf32>
    %3 = oriel.neg %2 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %4 = oriel.add %1, %3 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    %5 = oriel.exp %4 : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %5 : tensor<8x6xf32>
  }
}

// -----

// Added to a total, and where something else wants a total of it, the few columns are sent.
// CHECK-LABEL: @added_to_a_total
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>], oriel.split = {{\[\[}}], [], []]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>], oriel.split = {{\[\[}}], [], []]
module @added_to_a_total attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "a", type = tensor<16x2xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  oriel.parameter @p1 {onnx_name = "b", type = tensor<2x16xf32>}
  oriel.parameter @p2 {onnx_name = "base", type = tensor<16x16xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<8x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %a: tensor<16x2xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %base: tensor<16x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<8x16xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8x16xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.linear %x, %a : (tensor<8x16xf32>, tensor<16x2xf32>) -> tensor<8x2xf32>
    %1 = oriel.linear %0, %b : (tensor<8x2xf32>, tensor<2x16xf32>) -> tensor<8x16xf32>
    %2 = oriel.add %x, %1 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %3 = oriel.linear %0, %b : (tensor<8x2xf32>, tensor<2x16xf32>) -> tensor<8x16xf32>
    %4 = oriel.linear %x, %base : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %5 = oriel.exp %3 : (tensor<8x16xf32>) -> tensor<8x16xf32>
    %6 = oriel.add %3, %4 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    %7 = oriel.mul %5, %6 : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
    return %2, %7 : tensor<8x16xf32>, tensor<8x16xf32>
  }
}

// -----

// A gradient of a parameter that every rank has whole stays pending until the update, which
// completes it once for all microbatches, though one microbatch would have less to send before.
// CHECK-LABEL: @gradient_of_a_step
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
// CHECK: oriel.linear_weight_grad {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]
module @gradient_of_a_step attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "a", type = tensor<6x2xf32>, trainable = true}
  oriel.parameter @p1 {onnx_name = "b", type = tensor<2x16xf32>, use = #oriel.sharding<[{}, {a0}]>, storage = #oriel.sharding<[{}, {a0}]>}
  func.func @forward(%x: tensor<4x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %y: tensor<4x16xf32> {oriel.kind = "input", oriel.ref = "y"})
      -> (tensor<4x6xf32> {oriel.kind = "stash", oriel.ref = "v1"}, tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
    return %x, %y : tensor<4x6xf32>, tensor<4x16xf32>
  }
  func.func @backward(%x: tensor<4x6xf32> {oriel.kind = "stash", oriel.ref = "v1"},
      %dy: tensor<4x16xf32> {oriel.kind = "stash", oriel.ref = "v0"},
      %b: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %sum: tensor<6x2xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<6x2xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.linear %dy, %b {transpose_weight = true} : (tensor<4x16xf32>, tensor<2x16xf32>) -> tensor<4x2xf32>
    %1 = oriel.linear_weight_grad %x, %0 : (tensor<4x6xf32>, tensor<4x2xf32>) -> tensor<6x2xf32>
    %2 = oriel.add %sum, %1 : (tensor<6x2xf32>, tensor<6x2xf32>) -> tensor<6x2xf32>
    return %2 : tensor<6x2xf32>
  }
}
