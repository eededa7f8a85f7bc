// RUN: oriel-opt %s --oriel-propagate | FileCheck %s

// Where the elements of a batch are as many as those of a weight, they are not taken for what the
// weight's gradient is made of: they stay cut by samples.
// CHECK-LABEL: func.func @backward
// CHECK: oriel.exp {{.*}}oriel.split = {{\[}}["a0"], []]
// CHECK: oriel.linear_weight_grad {{.*}}oriel.shardings = [#oriel.sharding<[{a1}, {}] sum {a0}>]
module attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0"], tp = ["a1"]}} {
  oriel.parameter @p0 {onnx_name = "weight", type = tensor<32x32xf32>, use = #oriel.sharding<[{a1}, {}]>}
  func.func @forward(%x: tensor<32x32xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<32x32xf32> {oriel.kind = "stash", oriel.ref = "v"}) {
    %0 = oriel.tanh %x {origin = 0 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %0 : tensor<32x32xf32>
  }
  func.func @backward(%v: tensor<32x32xf32> {oriel.kind = "stash", oriel.ref = "v"},
      %sum: tensor<32x32xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) -> (tensor<32x32xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.exp %v {origin = 0 : i64} : (tensor<32x32xf32>) -> tensor<32x32xf32>
    %1 = oriel.linear_weight_grad %0, %v {origin = 0 : i64} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    %2 = oriel.add %sum, %1 {origin = 0 : i64} : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32>
    return %2 : tensor<32x32xf32>
  }
}
