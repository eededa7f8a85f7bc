// RUN: oriel-opt %s --oriel-lower-generated=target=host | FileCheck %s --check-prefix=HOST
// RUN: oriel-opt %s --oriel-lower-generated=target=cuda | FileCheck %s --check-prefix=CUDA
// RUN: not oriel-opt %s --oriel-lower-generated=target=tpu 2>&1 | FileCheck %s --check-prefix=OTHER

// The linalg form of one kernel, for two targets. A loop over a range of the outermost dimension, all
// of the inner one; or threads that load 16 bytes of each operand, also of one that repeats, by their
// column, and store as much.
// HOST-LABEL: llvm.func @k(
// HOST-SAME: %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %{{.*}}: !llvm.ptr, %[[BEGIN:.*]]: i64, %[[END:.*]]: i64)
// HOST: llvm.sub %[[END]], %[[BEGIN]]
// HOST-COUNT-2: llvm.cond_br
// HOST: llvm.fadd
// HOST: llvm.store
// HOST: llvm.return

// CUDA: gpu.module @generated
// CUDA: llvm.func @k(
// CUDA-SAME: nvvm.kernel
// CUDA-DAG: nvvm.read.ptx.sreg.ctaid.x
// CUDA-DAG: nvvm.read.ptx.sreg.tid.x
// CUDA: llvm.icmp "ult"
// CUDA: llvm.cond_br
// CUDA-DAG: llvm.udiv
// CUDA-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr -> vector<4xf32>
// CUDA-NOT: llvm.load
// CUDA-COUNT-4: llvm.fadd
// CUDA-NOT: llvm.fadd
// CUDA: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>
// CUDA-NOT: llvm.store
// CUDA-NOT: func.func

// OTHER: error: no code is generated for the target tpu; give host or cuda
func.func @k(%a: memref<4x8xf32>, %b: memref<8xf32>, %c: memref<4x8xf32>) attributes {oriel.thread_elements = 4 : i64} {
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (j)>, affine_map<(i, j) -> (i, j)>],
                  iterator_types = ["parallel", "parallel"]}
      ins(%a, %b : memref<4x8xf32>, memref<8xf32>) outs(%c : memref<4x8xf32>) {
  ^bb0(%x: f32, %y: f32, %z: f32):
    %0 = arith.addf %x, %y : f32
    linalg.yield %0 : f32
  }
  return
}
