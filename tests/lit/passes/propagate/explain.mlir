// RUN: oriel-opt %s --oriel-propagate=explain=true -o /dev/null 2>&1 | FileCheck %s

// How an op is split, by the shardings of its operands, and how else it could be; then what is moved,
// where, and what it is afterwards. The second user of a total finds it; pieces of it cost nothing,
// and are not told. It is a thousand times as dear to gather a parameter as it is in bytes.
// CHECK: forward: oriel.linear of project is split by [{}, {a0}] x [{a0}, {}] ({{[0-9]+}} bytes), not by [{}, {}] x [{}, {}] ({{[0-9]+}} bytes)
// CHECK-NEXT: forward: all_reduce {a0} of a tensor<32x32xf32> for oriel.exp of first; it is [{}, {}] then
// CHECK-NOT: forward:
// CHECK: eval: all_gather {a0} of dimension 0 of a tensor<32x32xi1> for func.return; it is [{}, {}] then
// CHECK-NOT: eval:
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<32x32xf32>, use = #oriel.sharding<[{a0}, {}]>, storage = #oriel.sharding<[{a0}, {}]>}
  func.func @forward(%x: tensor<32x32xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<32x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<32x32xf32> {oriel.kind = "output", oriel.ref = "y"},
          tensor<32x32xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.linear %x, %w : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xf32> loc("project")
    %1 = oriel.exp %0 : (tensor<32x32xf32>) -> tensor<32x32xf32> loc("first")
    %2 = oriel.tanh %0 : (tensor<32x32xf32>) -> tensor<32x32xf32>
    return %1, %2 : tensor<32x32xf32>, tensor<32x32xf32>
  }
  func.func @eval(%w: tensor<32x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<32x32xi1> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.greater %w, %w : (tensor<32x32xf32>, tensor<32x32xf32>) -> tensor<32x32xi1>
    return %0 : tensor<32x32xi1>
  }
}
