// RUN: oriel-opt %s --split-input-file --verify-diagnostics | FileCheck %s

// CHECK: oriel.parameter @p0 {
// CHECK-SAME: storage = #oriel.sharding<[{a0, a1}, {}]>
// CHECK-SAME: use = #oriel.sharding<[{a0}, {}] sum {a1} max {a2}>
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x4xf32>,
                     use = #oriel.sharding<[{a0}, {}] sum {a1} max {a2}>,
                     storage = #oriel.sharding<[{a0, a1}, {}]>}

// -----

// A scalar has no dimensions.
// CHECK: test.scalar = #oriel.sharding<[] sum {a0}>
module attributes {test.scalar = #oriel.sharding<[] sum {a0}>} {}

// -----

// expected-error@+1 {{uses the axis a0 twice}}
module attributes {test.twice = #oriel.sharding<[{a0}, {a0}]>} {}

// -----

// expected-error@+1 {{uses the axis a1 twice}}
module attributes {test.twice = #oriel.sharding<[{a1}] sum {a1}>} {}

// -----

// expected-error@+1 {{expected '{'}}
module attributes {test.list = #oriel.sharding<[a0]>} {}
