// RUN: oriel-opt %s --oriel-lower-to-exec=alignment=256 | FileCheck %s
// RUN: not oriel-opt %s --oriel-lower-to-exec=alignment=96 2>&1 | FileCheck %s --check-prefix=ODD
// ODD: error: values can't lie at multiples of 96 bytes; give a power of two from 64 on

// Each value begins at a multiple, however few bytes the one before takes.
// CHECK: exec.program {{.*}}arena_bytes = 512
// CHECK: exec.buffer {{.*}}offset = 0 {{.*}}ref = "x"
// CHECK: exec.buffer {{.*}}offset = 256 {{.*}}ref = "y"
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) ->
      (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
