// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s

// Two large layers, each with a product of two small ones beside it: what the second ones read is
// in pieces, and the two columns between small layers, which would make blocks too, are whole.
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "up.a", type = tensor<16x2xf32>}
// CHECK: "up.b", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "down.a", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "down.b", type = tensor<2x16xf32>}
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<16x32xf32>}
  oriel.parameter @p1 {onnx_name = "up.a", type = tensor<16x2xf32>}
  oriel.parameter @p2 {onnx_name = "up.b", type = tensor<2x32xf32>}
  oriel.parameter @p3 {onnx_name = "down", type = tensor<32x16xf32>}
  oriel.parameter @p4 {onnx_name = "down.a", type = tensor<32x2xf32>}
  oriel.parameter @p5 {onnx_name = "down.b", type = tensor<2x16xf32>}
  func.func @forward(%x: tensor<2x4x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<16x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %upA: tensor<16x2xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %upB: tensor<2x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down: tensor<32x16xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %downA: tensor<32x2xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %downB: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %0 = oriel.linear %x, %up : (tensor<2x4x16xf32>, tensor<16x32xf32>) -> tensor<2x4x32xf32>
    %1 = oriel.linear %x, %upA : (tensor<2x4x16xf32>, tensor<16x2xf32>) -> tensor<2x4x2xf32>
    %2 = oriel.linear %1, %upB : (tensor<2x4x2xf32>, tensor<2x32xf32>) -> tensor<2x4x32xf32>
    %3 = oriel.add %0, %2 : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %4 = oriel.relu %3 : (tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %5 = oriel.linear %4, %down : (tensor<2x4x32xf32>, tensor<32x16xf32>) -> tensor<2x4x16xf32>
    %6 = oriel.linear %4, %downA : (tensor<2x4x32xf32>, tensor<32x2xf32>) -> tensor<2x4x2xf32>
    %7 = oriel.linear %6, %downB : (tensor<2x4x2xf32>, tensor<2x16xf32>) -> tensor<2x4x16xf32>
    %8 = oriel.add %5, %7 : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    return
  }
}

// -----

// Beside the first layer alone, whose block nothing else reads. Three columns are no error.
// CHECK: "up", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "up.a", type = tensor<16x3xf32>}
// CHECK: "up.b", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "down", {{.*}}use = #oriel.sharding<[{a0}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "up", type = tensor<16x32xf32>}
  oriel.parameter @p1 {onnx_name = "up.a", type = tensor<16x3xf32>}
  oriel.parameter @p2 {onnx_name = "up.b", type = tensor<3x32xf32>}
  oriel.parameter @p3 {onnx_name = "down", type = tensor<32x16xf32>}
  func.func @forward(%x: tensor<2x4x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up: tensor<16x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %upA: tensor<16x3xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %upB: tensor<3x32xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down: tensor<32x16xf32> {oriel.kind = "parameter", oriel.ref = "p3"}) {
    %0 = oriel.linear %x, %up : (tensor<2x4x16xf32>, tensor<16x32xf32>) -> tensor<2x4x32xf32>
    %1 = oriel.linear %x, %upA : (tensor<2x4x16xf32>, tensor<16x3xf32>) -> tensor<2x4x3xf32>
    %2 = oriel.linear %1, %upB : (tensor<2x4x3xf32>, tensor<3x32xf32>) -> tensor<2x4x32xf32>
    %3 = oriel.add %0, %2 : (tensor<2x4x32xf32>, tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %4 = oriel.relu %3 : (tensor<2x4x32xf32>) -> tensor<2x4x32xf32>
    %5 = oriel.linear %4, %down : (tensor<2x4x32xf32>, tensor<32x16xf32>) -> tensor<2x4x16xf32>
    return
  }
}

// -----

// Behind a norm over what is cut, which both the layer and its adapter read.
// CHECK: "value", {{.*}}use = #oriel.sharding<[{}, {a0}]>
// CHECK: "norm", type = tensor<32xf32>}
// CHECK: "out", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "out.a", {{.*}}use = #oriel.sharding<[{a0}, {}]>
// CHECK: "out.b", type = tensor<2x16xf32>}
module {
  oriel.parameter @p0 {onnx_name = "value", type = tensor<16x32xf32>}
  oriel.parameter @p1 {onnx_name = "norm", type = tensor<32xf32>}
  oriel.parameter @p2 {onnx_name = "out", type = tensor<32x16xf32>}
  oriel.parameter @p3 {onnx_name = "out.a", type = tensor<32x2xf32>}
  oriel.parameter @p4 {onnx_name = "out.b", type = tensor<2x16xf32>}
  func.func @forward(%x: tensor<2x4x16xf32> {oriel.kind = "input", oriel.ref = "x"},
      %value: tensor<16x32xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %norm: tensor<32xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %out: tensor<32x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %outA: tensor<32x2xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %outB: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"}) {
    %0 = oriel.linear %x, %value : (tensor<2x4x16xf32>, tensor<16x32xf32>) -> tensor<2x4x32xf32>
    %1:2 = oriel.rms_norm %0, %norm {epsilon = 1.0e-6 : f64} : (tensor<2x4x32xf32>, tensor<32xf32>) -> (tensor<2x4x32xf32>, tensor<2x4xf32>)
    %2 = oriel.linear %1#0, %out : (tensor<2x4x32xf32>, tensor<32x16xf32>) -> tensor<2x4x16xf32>
    %3 = oriel.linear %1#0, %outA : (tensor<2x4x32xf32>, tensor<32x2xf32>) -> tensor<2x4x2xf32>
    %4 = oriel.linear %3, %outB : (tensor<2x4x2xf32>, tensor<2x16xf32>) -> tensor<2x4x16xf32>
    %5 = oriel.add %2, %4 : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    return
  }
}
