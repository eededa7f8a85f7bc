// RUN: oriel-opt %s --oriel-lower-generated=target=host | FileCheck %s --check-prefix=HOST
// RUN: oriel-opt %s --oriel-lower-generated=target=cuda | FileCheck %s --check-prefix=CUDA

// The linalg form of a kernel that reduces rows, for two targets: accumulators of 8 lanes on the stack of
// the host, or in the registers of 8 threads and then in shared memory. Then a step for each half: 4, 2, 1.
// HOST-LABEL: llvm.func @k(
// HOST-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// HOST: llvm.alloca
// HOST: llvm.icmp "slt"
// HOST-COUNT-2: llvm.fadd %{{.*}} : f64
// HOST: llvm.fmul %{{.*}} : f32
// HOST-NOT: llvm.alloca
// HOST: llvm.return

// CUDA: llvm.mlir.global internal @{{.*}}() {addr_space = 3 : i32{{.*}} : !llvm.array<256 x f64>
// CUDA: llvm.func @k(
// CUDA-SAME: nvvm.kernel
// CUDA: llvm.fadd %{{.*}} : f64
// CUDA-COUNT-5: nvvm.barrier
// CUDA: llvm.fmul %{{.*}} : f32
// CUDA: llvm.store %{{.*}} : f32, !llvm.ptr
// CUDA-NOT: linalg
func.func @k(%a: memref<4x8xf32>, %b: memref<4x8xf32>) {
  %zero = arith.constant 0.0 : f64
  %sum = memref.alloca() : memref<4xf64>
  linalg.fill ins(%zero : f64) outs(%sum : memref<4xf64>)
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x8xf32>) outs(%sum : memref<4xf64>) {
  ^bb0(%x: f32, %before: f64):
    %0 = arith.extf %x : f32 to f64
    %1 = arith.addf %before, %0 : f64
    linalg.yield %1 : f64
  }
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%a, %sum : memref<4x8xf32>, memref<4xf64>) outs(%b : memref<4x8xf32>) {
  ^bb0(%x: f32, %total: f64, %y: f32):
    %0 = arith.truncf %total : f64 to f32
    %1 = arith.mulf %x, %0 : f32
    linalg.yield %1 : f32
  }
  return
}
