// RUN: oriel-opt %s --split-input-file --verify-diagnostics --oriel-lower-generated

func.func @not_linalg(%a: memref<8xf32>) { // expected-error {{is no linalg.generic on whole tensors in memory}}
  return
}

// -----

// What is reduced is in memory that nothing has filled.
func.func @no_start(%a: memref<4x8xf32>) { // expected-error {{is no linalg.generic on whole tensors in memory, and no reductions of rows}}
  %sum = memref.alloca() : memref<4xf32>
  linalg.generic {indexing_maps = [affine_map<(i, j) -> (i, j)>, affine_map<(i, j) -> (i)>],
                  iterator_types = ["parallel", "reduction"]}
      ins(%a : memref<4x8xf32>) outs(%sum : memref<4xf32>) {
  ^bb0(%x: f32, %before: f32):
    %0 = arith.addf %before, %x : f32
    linalg.yield %0 : f32
  }
  return
}

// -----

func.func @uneven(%a: memref<6xf32>, %b: memref<6xf32>) attributes {oriel.thread_elements = 4 : i64} { // expected-error {{has threads of 4 elements, which do not divide the innermost loop of 6}}
  linalg.generic {indexing_maps = [affine_map<(i) -> (i)>, affine_map<(i) -> (i)>], iterator_types = ["parallel"]}
      ins(%a : memref<6xf32>) outs(%b : memref<6xf32>) {
  ^bb0(%x: f32, %y: f32):
    linalg.yield %x : f32
  }
  return
}
