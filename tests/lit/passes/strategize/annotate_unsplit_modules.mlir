// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/modules.yaml -o /dev/null 2>&1 | FileCheck %s

// A share is that of the modules whose meshes have tp: vision has none.
// CHECK: warning: is not split over tp = 4, as 100 % of the work with parameters on meshes with tp: each of the ranks does all of that, with "audio.w". `--explain-sharding`
module {
  oriel.parameter @p0 {onnx_name = "vision.w", type = tensor<8x8xf32>}
  oriel.parameter @p1 {onnx_name = "audio.w", type = tensor<8x8xf32>}
  func.func @forward(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %a: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %0 = oriel.linear %x, %a : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.linear %1, %b : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.softmax %2 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return
  }
}
