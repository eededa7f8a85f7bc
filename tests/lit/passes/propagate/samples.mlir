// What is made of constants and parameters, for each sample: a rank makes that of its samples.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(oriel-propagate)" --split-input-file | FileCheck %s

// Embeddings of positions, that are the same for all images.
// CHECK-LABEL: module @repeated_embeddings
// CHECK: oriel.broadcast {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
// CHECK: oriel.reshape {{.*}}oriel.shardings = [#oriel.sharding<[{a0}]>]
// CHECK: oriel.gather %{{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
module @repeated_embeddings attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  oriel.parameter @p {onnx_name = "p", type = tensor<5x6xf32>}
  func.func @forward(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"}, %p: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p"}) -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.constant {value = dense<[[3, 4]]> : tensor<1x2xi64>} : () -> tensor<1x2xi64>
    %1 = oriel.broadcast %0 : (tensor<1x2xi64>) -> tensor<4x2xi64>
    %2 = oriel.reshape %1 : (tensor<4x2xi64>) -> tensor<8xi64>
    %3 = oriel.gather %p, %2 {dim = 0 : i64} : (tensor<5x6xf32>, tensor<8xi64>) -> tensor<8x6xf32>
    %4 = oriel.add %x, %3 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %4 : tensor<8x6xf32>
  }
}

// -----

// What all samples share stays whole: it has no dimension of samples.
// CHECK-LABEL: module @shared
// CHECK: oriel.gather {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
// CHECK: oriel.add {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}, {}]>]
module @shared attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  oriel.parameter @p {onnx_name = "p", type = tensor<5x6xf32>}
  func.func @forward(%x: tensor<4x2x6xf32> {oriel.kind = "input", oriel.ref = "x"}, %p: tensor<5x6xf32> {oriel.kind = "parameter", oriel.ref = "p"}) -> (tensor<4x2x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.constant {value = dense<[3, 4]> : tensor<2xi64>} : () -> tensor<2xi64>
    %1 = oriel.gather %p, %0 {dim = 0 : i64} : (tensor<5x6xf32>, tensor<2xi64>) -> tensor<2x6xf32>
    %2 = oriel.add %x, %1 : (tensor<4x2x6xf32>, tensor<2x6xf32>) -> tensor<4x2x6xf32>
    return %2 : tensor<4x2x6xf32>
  }
}

// -----

// A product of parameters has no samples, though its rows are as many.
// CHECK-LABEL: module @rows_of_a_parameter
// CHECK: oriel.mul {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
// CHECK: oriel.linear {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
module @rows_of_a_parameter attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  oriel.parameter @p {onnx_name = "p", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "x"}, %p: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p"}) -> (tensor<8x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.mul %p, %p : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = oriel.linear %x, %0 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %1 : tensor<8x8xf32>
  }
}

// -----

// A sum over all samples is whole on each rank, as what it is of is: nothing to exchange.
// CHECK-LABEL: module @summed_over_samples
// CHECK: oriel.broadcast {{.*}}oriel.shardings = [#oriel.sharding<[{}, {}]>]
// CHECK: oriel.mul {{.*}}oriel.shardings = [#oriel.sharding<[{a0}, {}]>]
// CHECK: oriel.reduce_sum {{.*}}oriel.shardings = [#oriel.sharding<[]>]
module @summed_over_samples attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @forward(%x: tensor<4x2xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<4x2xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %w = oriel.constant {value = dense<[[1.0, 2.0]]> : tensor<1x2xf32>} : () -> tensor<1x2xf32>
    %0 = oriel.broadcast %w : (tensor<1x2xf32>) -> tensor<4x2xf32>
    %1 = oriel.mul %x, %0 : (tensor<4x2xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
    %2 = oriel.reduce_sum %0 {dims = array<i64: 0, 1>} : (tensor<4x2xf32>) -> tensor<f32>
    %3 = oriel.div %1, %2 : (tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
    return %3 : tensor<4x2xf32>
  }
}
