// RUN: oriel-opt %s --oriel-overlap="bucket=256 prefetch=256 memory=100000" | FileCheck %s
// RUN: sed 's/oriel.mesh = {}/oriel.mesh = {}, oriel.overlap = "off"/' %s | oriel-opt - --oriel-overlap="bucket=256 prefetch=256 memory=100000" | FileCheck %s --check-prefix=NONE
// RUN: sed 's/oriel.mesh = {}/oriel.mesh = {}, oriel.overlap = "on"/' %s | not oriel-opt - --oriel-overlap="memory=100000" 2>&1 | FileCheck %s --check-prefix=LEVEL

// What remat has decided is done, and nothing else.
// LEVEL: error: has the overlap "on", which is no level of overlap

// Where a rank has the memory, the second parameter is gathered while the first is used.
// CHECK-LABEL: func.func @forward(
// CHECK: oriel.all_gather
// CHECK: oriel.all_gather
// CHECK: oriel.linear
// CHECK: oriel.linear

// Off: the program stays as it was.
// NONE-LABEL: func.func @forward(
// NONE-NEXT: oriel.all_gather
// NONE-NEXT: oriel.linear
// NONE-NEXT: oriel.all_gather
// NONE-NEXT: oriel.linear
// NONE-NEXT: return
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
                     %p0: tensor<2x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                     %p1: tensor<2x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<4x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %w0 = oriel.all_gather %p0 {axes = ["a0"], dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %0 = oriel.linear %x, %w0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %w1 = oriel.all_gather %p1 {axes = ["a0"], dim = 0 : i64} : (tensor<2x4xf32>) -> tensor<4x4xf32>
    %1 = oriel.linear %0, %w1 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}
