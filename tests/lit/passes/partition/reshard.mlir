// RUN: oriel-opt %s --oriel-partition | FileCheck %s --implicit-check-not=oriel.all_ --implicit-check-not=oriel.reduce_ --implicit-check-not=oriel.slice_local

// From one sharding to another, by the fewest bytes.

module attributes {oriel.grid = {a0 = 2 : i64, a1 = 2 : i64}, oriel.mesh = {dp = ["a0", "a1"]}} {

// CHECK-LABEL: func.func @gather
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x16xf32>
// CHECK-SAME: -> (tensor<16x16xf32>
// CHECK: %[[Y:.*]] = oriel.all_gather %[[X]] {axes = ["a0", "a1"], dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{}, {}]>]}
// CHECK: return %[[Y]]
func.func @gather(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0, a1}, {}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// The pieces are not in the order of the ranks: one axis after the other, the inner one first.
// CHECK-LABEL: func.func @gather_swapped_axes
// CHECK: oriel.all_gather %{{.*}} {axes = ["a0"], dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{a1}, {}]>]}
// CHECK: oriel.all_gather %{{.*}} {axes = ["a1"], dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{}, {}]>]}
func.func @gather_swapped_axes(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a1, a0}, {}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @slice
// CHECK: oriel.slice_local %{{.*}} {axes = ["a0", "a1"], dim = 1 : i64, {{.*}} : (tensor<16x16xf32>) -> tensor<16x4xf32>
func.func @slice(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {a0, a1}]>}) {
  return %x : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @swap_dimensions
// CHECK: oriel.all_to_all %{{.*}} {axes = ["a0"], concat_dim = 0 : i64, {{.*}}split_dim = 1 : i64} : (tensor<8x16xf32>) -> tensor<16x8xf32>
func.func @swap_dimensions(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {a0}]>}) {
  return %x : tensor<16x16xf32>
}

// The inner axis alone changes place.
// CHECK-LABEL: func.func @swap_inner_axis
// CHECK: oriel.all_to_all %{{.*}} {axes = ["a1"], concat_dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{a0}, {a1}]>], split_dim = 1 : i64}
func.func @swap_inner_axis(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0, a1}, {}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a0}, {a1}]>}) {
  return %x : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @reduce
// CHECK: oriel.all_reduce %{{.*}} {axes = ["a0", "a1"], {{.*}}reduction = "sum"}
func.func @reduce(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0, a1}>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// CHECK-LABEL: func.func @reduce_maximum
// CHECK: oriel.all_reduce %{{.*}} {axes = ["a1"], {{.*}}reduction = "max"}
func.func @reduce_maximum(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}] max {a1}>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a0}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// What stays pending is left alone.
// CHECK-LABEL: func.func @reduce_one_of_two
// CHECK: oriel.all_reduce %{{.*}} {axes = ["a1"], oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>], reduction = "sum"}
func.func @reduce_one_of_two(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0, a1}>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0}>}) {
  return %x : tensor<16x16xf32>
}

// Where the total is needed in pieces over the same ranks, half the bytes of an all-reduce.
// CHECK-LABEL: func.func @reduce_to_pieces
// CHECK: oriel.reduce_scatter %{{.*}} {axes = ["a0", "a1"], dim = 0 : i64, {{.*}}reduction = "sum"} : (tensor<16x16xf32>) -> tensor<4x16xf32>
func.func @reduce_to_pieces(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0, a1}>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a0, a1}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// First to pieces over one axis, then what is left over the other.
// CHECK-LABEL: func.func @reduce_to_pieces_of_one_axis
// CHECK: oriel.reduce_scatter %{{.*}} {axes = ["a0"], dim = 1 : i64, {{.*}} : (tensor<16x16xf32>) -> tensor<16x8xf32>
// CHECK: oriel.all_reduce %{{.*}} {axes = ["a1"], {{.*}} : (tensor<16x8xf32>) -> tensor<16x8xf32>
func.func @reduce_to_pieces_of_one_axis(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0, a1}>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}, {a0}]>}) {
  return %x : tensor<16x16xf32>
}

// Pieces over other ranks: cut before the sum, so that half as much is summed.
// CHECK-LABEL: func.func @slice_before_reduce
// CHECK: oriel.slice_local %{{.*}} {axes = ["a1"], dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{a1}, {}] sum {a0}>]}
// CHECK: oriel.all_reduce %{{.*}} {axes = ["a0"], {{.*}} : (tensor<8x16xf32>) -> tensor<8x16xf32>
func.func @slice_before_reduce(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}, {}] sum {a0}>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a1}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// Pieces over one axis become pieces over another: nothing cheaper than the whole in between.
// CHECK-LABEL: func.func @other_axis
// CHECK: oriel.all_gather %{{.*}} {axes = ["a0"], dim = 0 : i64,
// CHECK: oriel.slice_local %{{.*}} {axes = ["a1"], dim = 0 : i64,
func.func @other_axis(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a1}, {}]>}) {
  return %x : tensor<16x16xf32>
}

// Two axes change places: gather one, swap the other, cut again.
// CHECK-LABEL: func.func @axes_change_places
// CHECK: oriel.all_gather %{{.*}} {axes = ["a1"], dim = 1 : i64, oriel.shardings = [#oriel.sharding<[{a0}, {}]>]}
// CHECK: oriel.all_to_all %{{.*}} {axes = ["a0"], concat_dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{}, {a0}]>], split_dim = 1 : i64}
// CHECK: oriel.slice_local %{{.*}} {axes = ["a1"], dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{a1}, {a0}]>]}
func.func @axes_change_places(%x: tensor<16x16xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{a0}, {a1}]>})
    -> (tensor<16x16xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{a1}, {a0}]>}) {
  return %x : tensor<16x16xf32>
}

}
