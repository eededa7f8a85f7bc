// RUN: oriel-opt %s --oriel-annotate="strategy=%S/Inputs/modules.yaml microbatches=2" | FileCheck %s

// Three modules on the same four ranks: only data-parallel, only tensor-parallel, and both.
// CHECK: oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0"], tp = ["a1"]}
// CHECK-SAME: oriel.module_meshes = {audio = {tp = ["a0", "a1"]}, vision = {dp = ["a0", "a1"]}}
// CHECK-SAME: oriel.schedule = {{\[\[}}"forward", 0], ["backward", 0], ["forward", 1], ["backward", 1], ["update", 0]]
// CHECK: oriel.parameter @p0 {module = "vision", onnx_name = "vision.up", type = tensor<8x16xf32>}
// CHECK: oriel.parameter @p1 {module = "vision", onnx_name = "vision.down", type = tensor<16x8xf32>}
// CHECK: @p2 {{.*}}module = "audio", onnx_name = "audio.up", {{.*}}use = #oriel.sharding<[{}, {a0, a1}]>
// CHECK: @p3 {{.*}}module = "audio", onnx_name = "audio.down", {{.*}}use = #oriel.sharding<[{a0, a1}, {}]>
// CHECK: @p4 {gradient = {{.*}}, onnx_name = "up", {{.*}}use = #oriel.sharding<[{}, {a1}]>
// CHECK: @p5 {gradient = {{.*}}, onnx_name = "down", {{.*}}use = #oriel.sharding<[{a1}, {}]>
module {
  oriel.parameter @p0 {onnx_name = "vision.up", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "vision.down", type = tensor<16x8xf32>}
  oriel.parameter @p2 {onnx_name = "audio.up", type = tensor<8x16xf32>}
  oriel.parameter @p3 {onnx_name = "audio.down", type = tensor<16x8xf32>}
  oriel.parameter @p4 {onnx_name = "up", type = tensor<8x16xf32>}
  oriel.parameter @p5 {onnx_name = "down", type = tensor<16x8xf32>}
  func.func @forward(%x: tensor<4x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %up0: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %down0: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %up1: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %down1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %up2: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p4"},
      %down2: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "p5"}) {
    %0 = oriel.linear %x, %up0 : (tensor<4x4x8xf32>, tensor<8x16xf32>) -> tensor<4x4x16xf32>
    %1 = oriel.linear %0, %down0 : (tensor<4x4x16xf32>, tensor<16x8xf32>) -> tensor<4x4x8xf32>
    %2 = oriel.linear %1, %up1 : (tensor<4x4x8xf32>, tensor<8x16xf32>) -> tensor<4x4x16xf32>
    %3 = oriel.linear %2, %down1 : (tensor<4x4x16xf32>, tensor<16x8xf32>) -> tensor<4x4x8xf32>
    %4 = oriel.linear %3, %up2 : (tensor<4x4x8xf32>, tensor<8x16xf32>) -> tensor<4x4x16xf32>
    %5 = oriel.linear %4, %down2 : (tensor<4x4x16xf32>, tensor<16x8xf32>) -> tensor<4x4x8xf32>
    return
  }
}
