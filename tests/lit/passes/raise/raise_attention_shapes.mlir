// Scores that are capped, grouped or merged over batch and heads.
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention,canonicalize))" --split-input-file | FileCheck %s

// Scores capped to 8 * tanh(. / 8) before the mask, as 0.25 q k.
// CHECK-LABEL: func.func @capped
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale = 2.500000e-01 : f64, softcap = 8.000000e+00 : f64}
func.func @capped(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>, %m: tensor<1x1x6x6xf32>) -> tensor<1x2x6x4xf32> {
  %quarter = oriel.constant {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %cap = oriel.constant {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = oriel.mul %0, %quarter : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %2 = oriel.div %1, %cap : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.tanh %2 : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = oriel.mul %3, %cap : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %5 = oriel.add %4, %m : (tensor<1x2x6x6xf32>, tensor<1x1x6x6xf32>) -> tensor<1x2x6x6xf32>
  %6 = oriel.softmax %5 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %7 = oriel.matmul %6, %v : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %7 : tensor<1x2x6x4xf32>
}

// -----

// The cap would bring hidden scores back: nothing that attention does.
// CHECK-LABEL: func.func @capped_after_the_mask
// CHECK-NOT: oriel.attention
// CHECK: return
func.func @capped_after_the_mask(%q: tensor<1x2x6x4xf32>, %k: tensor<1x2x6x4xf32>, %v: tensor<1x2x6x4xf32>, %m: tensor<1x1x6x6xf32>) -> tensor<1x2x6x4xf32> {
  %cap = oriel.constant {value = dense<8.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %1 = oriel.add %0, %m : (tensor<1x2x6x6xf32>, tensor<1x1x6x6xf32>) -> tensor<1x2x6x6xf32>
  %2 = oriel.div %1, %cap : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.tanh %2 : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = oriel.mul %3, %cap : (tensor<1x2x6x6xf32>, tensor<f32>) -> tensor<1x2x6x6xf32>
  %5 = oriel.softmax %4 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %6 = oriel.matmul %5, %v : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %6 : tensor<1x2x6x4xf32>
}

// -----

// Queries [b, g, h / g, s, d]: each group has one key head.
// CHECK-LABEL: func.func @groups_of_rank_5
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x3x6x4xf32>, %[[K:.*]]: tensor<1x2x1x6x4xf32>, %[[V:.*]]: tensor<1x2x1x6x4xf32>)
// CHECK-DAG: %[[Q4:.*]] = oriel.reshape %[[Q]] : {{.*}} -> tensor<1x6x6x4xf32>
// CHECK-DAG: %[[K4:.*]] = oriel.reshape %[[K]] : {{.*}} -> tensor<1x2x6x4xf32>
// CHECK: oriel.attention %[[Q4]], %[[K4]]
func.func @groups_of_rank_5(%q: tensor<1x2x3x6x4xf32>, %k: tensor<1x2x1x6x4xf32>, %v: tensor<1x2x1x6x4xf32>) -> tensor<1x2x3x6x4xf32> {
  %0 = oriel.broadcast %k : (tensor<1x2x1x6x4xf32>) -> tensor<1x2x3x6x4xf32>
  %1 = oriel.broadcast %v : (tensor<1x2x1x6x4xf32>) -> tensor<1x2x3x6x4xf32>
  %2 = oriel.matmul %q, %0 {transpose_rhs = true} : (tensor<1x2x3x6x4xf32>, tensor<1x2x3x6x4xf32>) -> tensor<1x2x3x6x6xf32>
  %3 = oriel.softmax %2 {dim = 4 : i64} : (tensor<1x2x3x6x6xf32>) -> tensor<1x2x3x6x6xf32>
  %4 = oriel.matmul %3, %1 : (tensor<1x2x3x6x6xf32>, tensor<1x2x3x6x4xf32>) -> tensor<1x2x3x6x4xf32>
  return %4 : tensor<1x2x3x6x4xf32>
}

// -----

// Keys repeat over the groups, not within them: query head i sees key head i % 3, so all six stay.
// CHECK-LABEL: func.func @groups_the_other_way
// CHECK: %[[K:.*]] = oriel.broadcast
// CHECK: %[[K4:.*]] = oriel.reshape %[[K]] : {{.*}} -> tensor<1x6x6x4xf32>
// CHECK: oriel.attention %{{.*}}, %[[K4]]
func.func @groups_the_other_way(%q: tensor<1x2x3x6x4xf32>, %k: tensor<1x1x3x6x4xf32>, %v: tensor<1x1x3x6x4xf32>) -> tensor<1x2x3x6x4xf32> {
  %0 = oriel.broadcast %k : (tensor<1x1x3x6x4xf32>) -> tensor<1x2x3x6x4xf32>
  %1 = oriel.broadcast %v : (tensor<1x1x3x6x4xf32>) -> tensor<1x2x3x6x4xf32>
  %2 = oriel.matmul %q, %0 {transpose_rhs = true} : (tensor<1x2x3x6x4xf32>, tensor<1x2x3x6x4xf32>) -> tensor<1x2x3x6x6xf32>
  %3 = oriel.softmax %2 {dim = 4 : i64} : (tensor<1x2x3x6x6xf32>) -> tensor<1x2x3x6x6xf32>
  %4 = oriel.matmul %3, %1 : (tensor<1x2x3x6x6xf32>, tensor<1x2x3x6x4xf32>) -> tensor<1x2x3x6x4xf32>
  return %4 : tensor<1x2x3x6x4xf32>
}

// -----

// A single key head, repeated by a broadcast alone.
// CHECK-LABEL: func.func @one_head_for_all
// CHECK-SAME: (%[[Q:.*]]: tensor<1x2x6x4xf32>, %[[K:.*]]: tensor<1x1x6x4xf32>, %[[V:.*]]: tensor<1x1x6x4xf32>)
// CHECK-NEXT: %{{.*}} = oriel.attention %[[Q]], %[[K]], %[[V]]
func.func @one_head_for_all(%q: tensor<1x2x6x4xf32>, %k: tensor<1x1x6x4xf32>, %v: tensor<1x1x6x4xf32>) -> tensor<1x2x6x4xf32> {
  %0 = oriel.broadcast %k : (tensor<1x1x6x4xf32>) -> tensor<1x2x6x4xf32>
  %1 = oriel.broadcast %v : (tensor<1x1x6x4xf32>) -> tensor<1x2x6x4xf32>
  %2 = oriel.matmul %q, %0 {transpose_rhs = true} : (tensor<1x2x6x4xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x6xf32>
  %3 = oriel.softmax %2 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = oriel.matmul %3, %1 : (tensor<1x2x6x6xf32>, tensor<1x2x6x4xf32>) -> tensor<1x2x6x4xf32>
  return %4 : tensor<1x2x6x4xf32>
}

// -----

// Batch and heads are one for the products and apart for masks, one of which is added to each.
// CHECK-LABEL: func.func @merged_for_products
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: tensor<2x2x6x4xf32>, %[[K:[a-z0-9]*]]: tensor<2x2x6x4xf32>, %[[V:[a-z0-9]*]]: tensor<2x2x6x4xf32>, %[[BIAS:[a-z0-9]*]]: tensor<4x1x6xf32>, %[[M:[a-z0-9]*]]: tensor<2x1x6x6xf32>
// CHECK: %[[BIAS4:.*]] = oriel.reshape %[[BIAS]] : {{.*}} -> tensor<2x2x1x6xf32>
// CHECK: %[[SUM:.*]] = oriel.add %[[M]], %[[BIAS4]]
// CHECK: oriel.attention %[[Q]], %[[K]], %[[V]], %[[SUM]] {scale
func.func @merged_for_products(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>, %bias: tensor<4x1x6xf32>, %m: tensor<2x1x6x6xf32>) -> tensor<2x2x6x4xf32> {
  %0 = oriel.reshape %q : (tensor<2x2x6x4xf32>) -> tensor<4x6x4xf32>
  %1 = oriel.reshape %k : (tensor<2x2x6x4xf32>) -> tensor<4x6x4xf32>
  %2 = oriel.reshape %v : (tensor<2x2x6x4xf32>) -> tensor<4x6x4xf32>
  %3 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<4x6x4xf32>) -> tensor<4x4x6xf32>
  %4 = oriel.matmul %0, %3 : (tensor<4x6x4xf32>, tensor<4x4x6xf32>) -> tensor<4x6x6xf32>
  %5 = oriel.add %4, %bias : (tensor<4x6x6xf32>, tensor<4x1x6xf32>) -> tensor<4x6x6xf32>
  %6 = oriel.reshape %5 : (tensor<4x6x6xf32>) -> tensor<2x2x6x6xf32>
  %7 = oriel.add %6, %m : (tensor<2x2x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x2x6x6xf32>
  %8 = oriel.softmax %7 {dim = 3 : i64} : (tensor<2x2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %9 = oriel.reshape %8 : (tensor<2x2x6x6xf32>) -> tensor<4x6x6xf32>
  %10 = oriel.matmul %9, %2 : (tensor<4x6x6xf32>, tensor<4x6x4xf32>) -> tensor<4x6x4xf32>
  %11 = oriel.reshape %10 : (tensor<4x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %11 : tensor<2x2x6x4xf32>
}

// -----

// Batch and heads are known from before they were merged.
// CHECK-LABEL: func.func @merged_throughout
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: tensor<2x2x6x4xf32>, %[[K:[a-z0-9]*]]: tensor<2x2x6x4xf32>, %[[V:[a-z0-9]*]]: tensor<2x2x6x4xf32>)
// CHECK-NEXT: %[[Y:[^,]*]], %{{.*}} = oriel.attention %[[Q]], %[[K]], %[[V]] {scale
// CHECK-NEXT: return %[[Y]]
func.func @merged_throughout(%q: tensor<2x2x6x4xf32>, %k: tensor<2x2x6x4xf32>, %v: tensor<2x2x6x4xf32>) -> tensor<2x2x6x4xf32> {
  %0 = oriel.reshape %q : (tensor<2x2x6x4xf32>) -> tensor<4x6x4xf32>
  %1 = oriel.reshape %k : (tensor<2x2x6x4xf32>) -> tensor<4x6x4xf32>
  %2 = oriel.reshape %v : (tensor<2x2x6x4xf32>) -> tensor<4x6x4xf32>
  %3 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<4x6x4xf32>) -> tensor<4x4x6xf32>
  %4 = oriel.matmul %0, %3 : (tensor<4x6x4xf32>, tensor<4x4x6xf32>) -> tensor<4x6x6xf32>
  %5 = oriel.softmax %4 {dim = 2 : i64} : (tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %6 = oriel.matmul %5, %2 : (tensor<4x6x6xf32>, tensor<4x6x4xf32>) -> tensor<4x6x4xf32>
  %7 = oriel.reshape %6 : (tensor<4x6x4xf32>) -> tensor<2x2x6x4xf32>
  return %7 : tensor<2x2x6x4xf32>
}

// -----

// Masks for other splits of batch and heads have no common shape.
// CHECK-LABEL: func.func @merged_in_two_ways
// CHECK-NOT: oriel.attention
// CHECK: return
func.func @merged_in_two_ways(%q: tensor<8x6x4xf32>, %k: tensor<8x6x4xf32>, %v: tensor<8x6x4xf32>, %m: tensor<2x1x6x6xf32>, %n: tensor<4x1x6x6xf32>) -> tensor<8x6x4xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<8x6x4xf32>, tensor<8x6x4xf32>) -> tensor<8x6x6xf32>
  %1 = oriel.reshape %0 : (tensor<8x6x6xf32>) -> tensor<2x4x6x6xf32>
  %2 = oriel.add %1, %m : (tensor<2x4x6x6xf32>, tensor<2x1x6x6xf32>) -> tensor<2x4x6x6xf32>
  %3 = oriel.reshape %2 : (tensor<2x4x6x6xf32>) -> tensor<4x2x6x6xf32>
  %4 = oriel.add %3, %n : (tensor<4x2x6x6xf32>, tensor<4x1x6x6xf32>) -> tensor<4x2x6x6xf32>
  %5 = oriel.softmax %4 {dim = 3 : i64} : (tensor<4x2x6x6xf32>) -> tensor<4x2x6x6xf32>
  %6 = oriel.reshape %5 : (tensor<4x2x6x6xf32>) -> tensor<8x6x6xf32>
  %7 = oriel.matmul %6, %v : (tensor<8x6x6xf32>, tensor<8x6x4xf32>) -> tensor<8x6x4xf32>
  return %7 : tensor<8x6x4xf32>
}

// -----

// A mask that had a batch of 1 and lost it with the merge.
// CHECK-LABEL: func.func @mask_of_one_sample
// CHECK-SAME: %[[M:[a-z0-9]*]]: tensor<1x2x1x6xf32>
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale
func.func @mask_of_one_sample(%q: tensor<2x6x4xf32>, %k: tensor<2x6x4xf32>, %v: tensor<2x6x4xf32>, %m: tensor<1x2x1x6xf32>) -> tensor<2x6x4xf32> {
  %0 = oriel.reshape %m : (tensor<1x2x1x6xf32>) -> tensor<2x1x6xf32>
  %1 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x6xf32>
  %2 = oriel.add %1, %0 : (tensor<2x6x6xf32>, tensor<2x1x6xf32>) -> tensor<2x6x6xf32>
  %3 = oriel.softmax %2 {dim = 2 : i64} : (tensor<2x6x6xf32>) -> tensor<2x6x6xf32>
  %4 = oriel.matmul %3, %v : (tensor<2x6x6xf32>, tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
  return %4 : tensor<2x6x4xf32>
}

// -----

// Positions were outermost when batch and heads were merged, as torch.nn.MultiheadAttention does:
// the dimension that merges them is in the middle of a reshape, and behind a transpose.
// CHECK-LABEL: func.func @merged_behind_positions
// CHECK: oriel.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.000000e+00 : f64} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x1x6xi1>)
func.func @merged_behind_positions(%q: tensor<6x2x32xf32>, %k: tensor<6x2x32xf32>, %v: tensor<6x2x32xf32>, %seen: tensor<8x1x6xi1>) -> tensor<8x6x8xf32> {
  %low = oriel.constant {value = dense<0xFF800000> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.reshape %q : (tensor<6x2x32xf32>) -> tensor<6x8x8xf32>
  %1 = oriel.reshape %k : (tensor<6x2x32xf32>) -> tensor<6x8x8xf32>
  %2 = oriel.reshape %v : (tensor<6x2x32xf32>) -> tensor<6x8x8xf32>
  %3 = oriel.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<6x8x8xf32>) -> tensor<8x6x8xf32>
  %4 = oriel.transpose %1 {permutation = array<i64: 1, 2, 0>} : (tensor<6x8x8xf32>) -> tensor<8x8x6xf32>
  %5 = oriel.transpose %2 {permutation = array<i64: 1, 0, 2>} : (tensor<6x8x8xf32>) -> tensor<8x6x8xf32>
  %6 = oriel.matmul %3, %4 : (tensor<8x6x8xf32>, tensor<8x8x6xf32>) -> tensor<8x6x6xf32>
  %7 = oriel.select %seen, %6, %low : (tensor<8x1x6xi1>, tensor<8x6x6xf32>, tensor<f32>) -> tensor<8x6x6xf32>
  %8 = oriel.softmax %7 {dim = 2 : i64} : (tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %9 = oriel.matmul %8, %5 : (tensor<8x6x6xf32>, tensor<8x6x8xf32>) -> tensor<8x6x8xf32>
  return %9 : tensor<8x6x8xf32>
}

// -----

// Windows are merged with both: heads are what is innermost.
// CHECK-LABEL: func.func @merged_with_windows
// CHECK: oriel.attention {{.*}} : (tensor<6x2x4x8xf32>, tensor<6x2x4x8xf32>, tensor<6x2x4x8xf32>)
func.func @merged_with_windows(%q: tensor<2x3x2x4x8xf32>, %k: tensor<2x3x2x4x8xf32>, %v: tensor<2x3x2x4x8xf32>) -> tensor<12x4x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x3x2x4x8xf32>) -> tensor<12x4x8xf32>
  %1 = oriel.reshape %k : (tensor<2x3x2x4x8xf32>) -> tensor<12x4x8xf32>
  %2 = oriel.reshape %v : (tensor<2x3x2x4x8xf32>) -> tensor<12x4x8xf32>
  %3 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<12x4x8xf32>, tensor<12x4x8xf32>) -> tensor<12x4x4xf32>
  %4 = oriel.softmax %3 {dim = 2 : i64} : (tensor<12x4x4xf32>) -> tensor<12x4x4xf32>
  %5 = oriel.matmul %4, %2 : (tensor<12x4x4xf32>, tensor<12x4x8xf32>) -> tensor<12x4x8xf32>
  return %5 : tensor<12x4x8xf32>
}

// -----

// Values merge other sizes than queries and keys: no heads for all of them.
// CHECK-LABEL: func.func @merged_in_unlike_ways
// CHECK: oriel.attention {{.*}} : (tensor<6x1x4x8xf32>, tensor<6x1x4x8xf32>, tensor<6x1x4x8xf32>)
func.func @merged_in_unlike_ways(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<3x2x4x8xf32>) -> tensor<6x4x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x3x4x8xf32>) -> tensor<6x4x8xf32>
  %1 = oriel.reshape %k : (tensor<2x3x4x8xf32>) -> tensor<6x4x8xf32>
  %2 = oriel.reshape %v : (tensor<3x2x4x8xf32>) -> tensor<6x4x8xf32>
  %3 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<6x4x8xf32>, tensor<6x4x8xf32>) -> tensor<6x4x4xf32>
  %4 = oriel.softmax %3 {dim = 2 : i64} : (tensor<6x4x4xf32>) -> tensor<6x4x4xf32>
  %5 = oriel.matmul %4, %2 : (tensor<6x4x4xf32>, tensor<6x4x8xf32>) -> tensor<6x4x8xf32>
  return %5 : tensor<6x4x8xf32>
}

// -----

// Heads are repeated while they are behind the positions; the key is transposed twice in one.
// CHECK-LABEL: func.func @groups_behind_positions
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: tensor<2x4x6x8xf32>, %[[K:[a-z0-9]*]]: tensor<2x6x2x8xf32>, %[[V:[a-z0-9]*]]: tensor<2x6x2x8xf32>)
// CHECK-DAG: %[[K1:.*]] = oriel.transpose %[[K]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK-DAG: %[[V1:.*]] = oriel.transpose %[[V]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: oriel.attention %[[Q]], %[[K1]], %[[V1]] {scale
func.func @groups_behind_positions(%q: tensor<2x4x6x8xf32>, %k: tensor<2x6x2x8xf32>, %v: tensor<2x6x2x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = oriel.reshape %k : (tensor<2x6x2x8xf32>) -> tensor<2x6x2x1x8xf32>
  %1 = oriel.broadcast %0 : (tensor<2x6x2x1x8xf32>) -> tensor<2x6x2x2x8xf32>
  %2 = oriel.reshape %1 : (tensor<2x6x2x2x8xf32>) -> tensor<2x6x4x8xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x8x6xf32>
  %4 = oriel.reshape %v : (tensor<2x6x2x8xf32>) -> tensor<2x6x2x1x8xf32>
  %5 = oriel.broadcast %4 : (tensor<2x6x2x1x8xf32>) -> tensor<2x6x2x2x8xf32>
  %6 = oriel.reshape %5 : (tensor<2x6x2x2x8xf32>) -> tensor<2x6x4x8xf32>
  %7 = oriel.transpose %6 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x6x4x8xf32>) -> tensor<2x4x6x8xf32>
  %8 = oriel.matmul %q, %3 : (tensor<2x4x6x8xf32>, tensor<2x4x8x6xf32>) -> tensor<2x4x6x6xf32>
  %9 = oriel.softmax %8 {dim = 3 : i64} : (tensor<2x4x6x6xf32>) -> tensor<2x4x6x6xf32>
  %10 = oriel.matmul %9, %7 : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %10 : tensor<2x4x6x8xf32>
}

// -----

// One sample: the dimension that is merged with the heads has size 1.
// CHECK-LABEL: func.func @merged_with_one_sample
// CHECK: oriel.attention {{.*}} : (tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>, tensor<1x4x6x8xf32>)
func.func @merged_with_one_sample(%q: tensor<6x1x32xf32>, %k: tensor<1x4x6x8xf32>, %v: tensor<1x4x6x8xf32>) -> tensor<4x6x8xf32> {
  %0 = oriel.reshape %q : (tensor<6x1x32xf32>) -> tensor<6x4x8xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<6x4x8xf32>) -> tensor<4x6x8xf32>
  %2 = oriel.reshape %k : (tensor<1x4x6x8xf32>) -> tensor<4x6x8xf32>
  %3 = oriel.reshape %v : (tensor<1x4x6x8xf32>) -> tensor<4x6x8xf32>
  %4 = oriel.matmul %1, %2 {transpose_rhs = true} : (tensor<4x6x8xf32>, tensor<4x6x8xf32>) -> tensor<4x6x6xf32>
  %5 = oriel.softmax %4 {dim = 2 : i64} : (tensor<4x6x6xf32>) -> tensor<4x6x6xf32>
  %6 = oriel.matmul %5, %3 : (tensor<4x6x6xf32>, tensor<4x6x8xf32>) -> tensor<4x6x8xf32>
  return %6 : tensor<4x6x8xf32>
}

// -----

// Scores are merged, what they are multiplied with is not.
// CHECK-LABEL: func.func @merged_scores
// CHECK: oriel.attention {{.*}} : (tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>, tensor<2x4x6x8xf32>)
func.func @merged_scores(%q: tensor<2x4x6x8xf32>, %k: tensor<2x4x6x8xf32>, %v: tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32> {
  %0 = oriel.reshape %q : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %1 = oriel.reshape %k : (tensor<2x4x6x8xf32>) -> tensor<8x6x8xf32>
  %2 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<8x6x8xf32>, tensor<8x6x8xf32>) -> tensor<8x6x6xf32>
  %3 = oriel.softmax %2 {dim = 2 : i64} : (tensor<8x6x6xf32>) -> tensor<8x6x6xf32>
  %4 = oriel.reshape %3 : (tensor<8x6x6xf32>) -> tensor<2x4x6x6xf32>
  %5 = oriel.matmul %4, %v : (tensor<2x4x6x6xf32>, tensor<2x4x6x8xf32>) -> tensor<2x4x6x8xf32>
  return %5 : tensor<2x4x6x8xf32>
}

// -----

// A key whose samples and positions were regrouped before the transpose: no head is repeated.
// CHECK-LABEL: func.func @regrouped_before_the_transpose
// CHECK-SAME: %[[K:[a-z0-9]*]]: tensor<2x6x1x8xf32>
// CHECK: oriel.broadcast %[[K]]
// CHECK: %[[T:.*]] = oriel.transpose %{{.*}} -> tensor<4x1x6x8xf32>
// CHECK: %[[KEY:.*]] = oriel.reshape %[[T]] : (tensor<4x1x6x8xf32>) -> tensor<2x2x6x8xf32>
// CHECK: oriel.attention %{{.*}}, %[[KEY]],
func.func @regrouped_before_the_transpose(%q: tensor<2x2x6x8xf32>, %k: tensor<2x6x1x8xf32>, %v: tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32> {
  %0 = oriel.broadcast %k : (tensor<2x6x1x8xf32>) -> tensor<2x6x2x8xf32>
  %1 = oriel.reshape %0 : (tensor<2x6x2x8xf32>) -> tensor<4x6x1x8xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1, 3>} : (tensor<4x6x1x8xf32>) -> tensor<4x1x6x8xf32>
  %3 = oriel.reshape %2 : (tensor<4x1x6x8xf32>) -> tensor<2x2x6x8xf32>
  %4 = oriel.matmul %q, %3 {transpose_rhs = true} : (tensor<2x2x6x8xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x6xf32>
  %5 = oriel.softmax %4 {dim = 3 : i64} : (tensor<2x2x6x6xf32>) -> tensor<2x2x6x6xf32>
  %6 = oriel.matmul %5, %v : (tensor<2x2x6x6xf32>, tensor<2x2x6x8xf32>) -> tensor<2x2x6x8xf32>
  return %6 : tensor<2x2x6x8xf32>
}

// -----

// Keys and values of one head for all, without a dimension of it (multi-query attention).
// CHECK-LABEL: func.func @one_head_of_keys
// CHECK-SAME: (%[[Q:.*]]: tensor<2x4x8x16xf32>, %[[K:.*]]: tensor<2x6x16xf32>, %[[V:.*]]: tensor<2x6x5xf32>)
// CHECK-DAG: %[[KEYS:.*]] = oriel.reshape %[[K]] : (tensor<2x6x16xf32>) -> tensor<2x1x6x16xf32>
// CHECK-DAG: %[[VALUES:.*]] = oriel.reshape %[[V]] : (tensor<2x6x5xf32>) -> tensor<2x1x6x5xf32>
// CHECK: oriel.attention %[[Q]], %[[KEYS]], %[[VALUES]] {scale = 2.500000e-01 : f64}
func.func @one_head_of_keys(%q: tensor<2x4x8x16xf32>, %k: tensor<2x6x16xf32>, %v: tensor<2x6x5xf32>) -> tensor<2x4x8x5xf32> {
  %scale = oriel.constant {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %q, %scale : (tensor<2x4x8x16xf32>, tensor<f32>) -> tensor<2x4x8x16xf32>
  %1 = oriel.matmul %0, %k {row_dims = 2 : i64, transpose_rhs = true} : (tensor<2x4x8x16xf32>, tensor<2x6x16xf32>) -> tensor<2x4x8x6xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<2x4x8x6xf32>) -> tensor<2x4x8x6xf32>
  %3 = oriel.matmul %2, %v {row_dims = 2 : i64} : (tensor<2x4x8x6xf32>, tensor<2x6x5xf32>) -> tensor<2x4x8x5xf32>
  return %3 : tensor<2x4x8x5xf32>
}

// -----

// The same with the rows of all heads as one dimension around each product, as einsum has it.
// CHECK-LABEL: func.func @one_head_of_keys_times_merged_rows
// CHECK: oriel.attention
// CHECK-NOT: oriel.matmul
func.func @one_head_of_keys_times_merged_rows(%q: tensor<2x4x8x16xf32>, %k: tensor<2x6x16xf32>, %v: tensor<2x6x5xf32>) -> tensor<2x4x8x5xf32> {
  %0 = oriel.transpose %k {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x16xf32>) -> tensor<2x16x6xf32>
  %1 = oriel.reshape %q : (tensor<2x4x8x16xf32>) -> tensor<2x32x16xf32>
  %2 = oriel.matmul %1, %0 : (tensor<2x32x16xf32>, tensor<2x16x6xf32>) -> tensor<2x32x6xf32>
  %3 = oriel.reshape %2 : (tensor<2x32x6xf32>) -> tensor<2x4x8x6xf32>
  %4 = oriel.softmax %3 {dim = 3 : i64} : (tensor<2x4x8x6xf32>) -> tensor<2x4x8x6xf32>
  %5 = oriel.reshape %4 : (tensor<2x4x8x6xf32>) -> tensor<2x32x6xf32>
  %6 = oriel.matmul %5, %v : (tensor<2x32x6xf32>, tensor<2x6x5xf32>) -> tensor<2x32x5xf32>
  %7 = oriel.reshape %6 : (tensor<2x32x5xf32>) -> tensor<2x4x8x5xf32>
  return %7 : tensor<2x4x8x5xf32>
}

// -----

// Keras: values with positions last, and keys with heads behind positions.
// CHECK-LABEL: func.func @values_with_positions_last
// CHECK-SAME: (%[[Q:[a-z0-9]*]]: tensor<1x6x2x4xf32>, %[[K:[a-z0-9]*]]: tensor<1x6x2x4xf32>, %[[V:[a-z0-9]*]]: tensor<1x6x2x4xf32>)
// CHECK: oriel.attention
// CHECK-NOT: oriel.matmul
func.func @values_with_positions_last(%q: tensor<1x6x2x4xf32>, %k: tensor<1x6x2x4xf32>, %v: tensor<1x6x2x4xf32>) -> tensor<1x2x6x4xf32> {
  %0 = oriel.transpose %q {permutation = array<i64: 0, 2, 1, 3>} : (tensor<1x6x2x4xf32>) -> tensor<1x2x6x4xf32>
  %1 = oriel.transpose %k {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x6x2x4xf32>) -> tensor<1x2x4x6xf32>
  %2 = oriel.transpose %v {permutation = array<i64: 0, 2, 3, 1>} : (tensor<1x6x2x4xf32>) -> tensor<1x2x4x6xf32>
  %3 = oriel.matmul %0, %1 : (tensor<1x2x6x4xf32>, tensor<1x2x4x6xf32>) -> tensor<1x2x6x6xf32>
  %4 = oriel.softmax %3 {dim = 3 : i64} : (tensor<1x2x6x6xf32>) -> tensor<1x2x6x6xf32>
  %5 = oriel.matmul %4, %2 {transpose_rhs = true} : (tensor<1x2x6x6xf32>, tensor<1x2x4x6xf32>) -> tensor<1x2x6x4xf32>
  return %5 : tensor<1x2x6x4xf32>
}
