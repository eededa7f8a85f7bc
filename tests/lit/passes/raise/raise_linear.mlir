// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-linear))" --split-input-file | FileCheck %s

// A transposed weight is taken as it is stored, and the bias joins.
// CHECK-LABEL: func.func @transposed_weight_and_bias
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4xf32>, %[[W:.*]]: tensor<8x4xf32>, %[[B:.*]]: tensor<8xf32>)
// CHECK: %[[Y:.*]] = oriel.linear %[[X]], %[[W]], %[[B]] {transpose_weight = true}
// CHECK-NEXT: return %[[Y]]
func.func @transposed_weight_and_bias(%x: tensor<2x3x4xf32>, %w: tensor<8x4xf32>, %b: tensor<8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.transpose %w {permutation = array<i64: 1, 0>} : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = oriel.linear %x, %0 : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  %2 = oriel.add %b, %1 : (tensor<8xf32>, tensor<2x3x8xf32>) -> tensor<2x3x8xf32>
  return %2 : tensor<2x3x8xf32>
}

// -----

// A residual is no bias.
// CHECK-LABEL: func.func @residual
// CHECK: oriel.linear %{{.*}}, %{{.*}} : (tensor<3x4xf32>, tensor<4x4xf32>)
// CHECK: oriel.add
func.func @residual(%x: tensor<3x4xf32>, %w: tensor<4x4xf32>) -> tensor<3x4xf32> {
  %0 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x4xf32>) -> tensor<3x4xf32>
  %1 = oriel.add %0, %x : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// The product without bias is used twice: it stays.
// CHECK-LABEL: func.func @shared_product
// CHECK: %[[Y:.*]] = oriel.linear
// CHECK: %[[Z:.*]] = oriel.add %[[Y]]
// CHECK: return %[[Y]], %[[Z]]
func.func @shared_product(%x: tensor<3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<8xf32>) -> (tensor<3x8xf32>, tensor<3x8xf32>) {
  %0 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.add %0, %b : (tensor<3x8xf32>, tensor<8xf32>) -> tensor<3x8xf32>
  return %0, %1 : tensor<3x8xf32>, tensor<3x8xf32>
}

// -----

// The experts' weights of an einsum "td,efd->tef".
// CHECK-LABEL: func.func @merged_weight
// CHECK-SAME: (%[[X:.*]]: tensor<6x8xf32>, %[[W:.*]]: tensor<3x4x8xf32>)
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[W]] : (tensor<3x4x8xf32>) -> tensor<12x8xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.linear %[[X]], %[[R]] {transpose_weight = true}
// CHECK-NEXT: return %[[Y]]
func.func @merged_weight(%x: tensor<6x8xf32>, %w: tensor<3x4x8xf32>) -> tensor<6x12xf32> {
  %0 = oriel.transpose %w {permutation = array<i64: 2, 0, 1>} : (tensor<3x4x8xf32>) -> tensor<8x3x4xf32>
  %1 = oriel.reshape %0 : (tensor<8x3x4xf32>) -> tensor<8x12xf32>
  %2 = oriel.linear %x, %1 : (tensor<6x8xf32>, tensor<8x12xf32>) -> tensor<6x12xf32>
  return %2 : tensor<6x12xf32>
}

// -----

// Columns that change places among themselves are not as stored; nor are rows merged with columns.
// CHECK-LABEL: func.func @other_transposes
// CHECK: oriel.transpose
// CHECK: oriel.transpose
func.func @other_transposes(%x: tensor<6x8xf32>, %z: tensor<6x24xf32>, %w: tensor<3x4x8xf32>) -> (tensor<6x12xf32>, tensor<6x4xf32>) {
  %0 = oriel.transpose %w {permutation = array<i64: 2, 1, 0>} : (tensor<3x4x8xf32>) -> tensor<8x4x3xf32>
  %1 = oriel.reshape %0 : (tensor<8x4x3xf32>) -> tensor<8x12xf32>
  %2 = oriel.linear %x, %1 : (tensor<6x8xf32>, tensor<8x12xf32>) -> tensor<6x12xf32>
  %3 = oriel.transpose %w {permutation = array<i64: 0, 2, 1>} : (tensor<3x4x8xf32>) -> tensor<3x8x4xf32>
  %4 = oriel.reshape %3 : (tensor<3x8x4xf32>) -> tensor<24x4xf32>
  %5 = oriel.linear %z, %4 : (tensor<6x24xf32>, tensor<24x4xf32>) -> tensor<6x4xf32>
  return %2, %5 : tensor<6x12xf32>, tensor<6x4xf32>
}

// -----

// Patches side by side: one product, whose channels are last as what follows wants them.
// CHECK-LABEL: func.func @patches
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x8x12xf32>, %[[W:.*]]: tensor<5x3x4x4xf32>, %[[B:.*]]: tensor<5xf32>)
// CHECK: %[[S:.*]] = oriel.reshape %[[X]] : (tensor<2x3x8x12xf32>) -> tensor<2x3x2x4x3x4xf32>
// CHECK: %[[T:.*]] = oriel.transpose %[[S]] {permutation = array<i64: 0, 2, 4, 1, 3, 5>}
// CHECK-DAG: %[[P:.*]] = oriel.reshape %[[T]]
// CHECK-DAG: %[[F:.*]] = oriel.reshape %[[W]] : (tensor<5x3x4x4xf32>) -> tensor<5x48xf32>
// CHECK: %[[Y:.*]] = oriel.linear %[[P]], %[[F]], %[[B]] {transpose_weight = true}
// CHECK-NOT: oriel.transpose
// CHECK: return
func.func @patches(%x: tensor<2x3x8x12xf32>, %w: tensor<5x3x4x4xf32>, %b: tensor<5xf32>) -> tensor<2x6x5xf32> {
  %0 = oriel.conv %x, %w, %b {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x8x12xf32>, tensor<5x3x4x4xf32>, tensor<5xf32>) -> tensor<2x5x2x3xf32>
  %1 = oriel.reshape %0 : (tensor<2x5x2x3xf32>) -> tensor<2x5x6xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<2x5x6xf32>) -> tensor<2x6x5xf32>
  return %2 : tensor<2x6x5xf32>
}

// -----

// Frames and rows of patches of a video, of which the latter alone are merged.
// CHECK-LABEL: func.func @some_positions_merged
// CHECK: %[[Y:.*]] = oriel.linear {{.*}} -> tensor<2x2x2x2x5xf32>
// CHECK-NEXT: %[[R:.*]] = oriel.reshape %[[Y]] : (tensor<2x2x2x2x5xf32>) -> tensor<2x2x4x5xf32>
// CHECK-NEXT: return %[[R]]
func.func @some_positions_merged(%x: tensor<2x3x4x4x4xf32>, %w: tensor<5x3x2x2x2xf32>) -> tensor<2x2x4x5xf32> {
  %0 = oriel.conv %x, %w {strides = array<i64: 2, 2, 2>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<2x3x4x4x4xf32>, tensor<5x3x2x2x2xf32>) -> tensor<2x5x2x2x2xf32>
  %1 = oriel.reshape %0 : (tensor<2x5x2x2x2xf32>) -> tensor<2x5x2x4xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x5x2x4xf32>) -> tensor<2x2x4x5xf32>
  return %2 : tensor<2x2x4x5xf32>
}

// -----

// Without merging positions; pixels that no patch reaches are left out.
// CHECK-LABEL: func.func @rest_of_pixels
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x9x14xf32>
// CHECK: oriel.slice %[[X]] {{.*}} -> tensor<2x3x8x12xf32>
// CHECK: %[[Y:.*]] = oriel.linear {{.*}} -> tensor<2x2x3x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @rest_of_pixels(%x: tensor<2x3x9x14xf32>, %w: tensor<5x3x4x4xf32>) -> tensor<2x2x3x5xf32> {
  %0 = oriel.conv %x, %w {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x9x14xf32>, tensor<5x3x4x4xf32>) -> tensor<2x5x2x3xf32>
  %1 = oriel.transpose %0 {permutation = array<i64: 0, 2, 3, 1>} : (tensor<2x5x2x3xf32>) -> tensor<2x2x3x5xf32>
  return %1 : tensor<2x2x3x5xf32>
}

// -----

// One patch for each sample, as where an image comes in patches: nothing moves, whatever the strides are.
// CHECK-LABEL: func.func @one_patch
// CHECK-SAME: (%[[X:.*]]: tensor<6x24xf32>, %[[W:.*]]: tensor<5x3x2x2x2xf32>, %[[B:.*]]: tensor<5xf32>)
// CHECK-NOT: oriel.transpose
// CHECK: %[[F:.*]] = oriel.reshape %[[W]] : (tensor<5x3x2x2x2xf32>) -> tensor<5x24xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.linear %[[X]], %[[F]], %[[B]] {transpose_weight = true}
// CHECK-NEXT: return %[[Y]]
func.func @one_patch(%x: tensor<6x24xf32>, %w: tensor<5x3x2x2x2xf32>, %b: tensor<5xf32>) -> tensor<6x5xf32> {
  %0 = oriel.reshape %x : (tensor<6x24xf32>) -> tensor<6x3x2x2x2xf32>
  %1 = oriel.conv %0, %w, %b {strides = array<i64: 1, 2, 3>, pads = array<i64: 0, 0, 0, 0, 0, 0>, dilations = array<i64: 1, 1, 1>} : (tensor<6x3x2x2x2xf32>, tensor<5x3x2x2x2xf32>, tensor<5xf32>) -> tensor<6x5x1x1x1xf32>
  %2 = oriel.reshape %1 : (tensor<6x5x1x1x1xf32>) -> tensor<6x5xf32>
  return %2 : tensor<6x5xf32>
}

// -----

// Channels that stay before positions would have to be moved there.
// CHECK-LABEL: func.func @channels_first
// CHECK: oriel.conv
// CHECK-NOT: oriel.linear
func.func @channels_first(%x: tensor<2x3x8x8xf32>, %w: tensor<5x3x4x4xf32>) -> (tensor<2x5x2x2xf32>, tensor<2x4x5xf32>) {
  %0 = oriel.conv %x, %w {strides = array<i64: 4, 4>, pads = array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x8x8xf32>, tensor<5x3x4x4xf32>) -> tensor<2x5x2x2xf32>
  %1 = oriel.reshape %0 : (tensor<2x5x2x2xf32>) -> tensor<2x5x4xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<2x5x4xf32>) -> tensor<2x4x5xf32>
  return %0, %2 : tensor<2x5x2x2xf32>, tensor<2x4x5xf32>
}

// -----

// Padded, dilated, grouped, overlapping, with gaps.
// CHECK-LABEL: func.func @other_convolutions
// CHECK-COUNT-5: oriel.conv
// CHECK-NOT: oriel.linear
func.func @other_convolutions(%x: tensor<2x4x8xf32>, %w: tensor<6x4x2xf32>, %g: tensor<6x2x2xf32>) -> (tensor<2x5x6xf32>, tensor<2x3x6xf32>, tensor<2x4x6xf32>, tensor<2x7x6xf32>, tensor<2x3x6xf32>) {
  %0 = oriel.conv %x, %w {strides = array<i64: 2>, pads = array<i64: 1, 1>, dilations = array<i64: 1>} : (tensor<2x4x8xf32>, tensor<6x4x2xf32>) -> tensor<2x6x5xf32>
  %1 = oriel.conv %x, %w {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 2>} : (tensor<2x4x8xf32>, tensor<6x4x2xf32>) -> tensor<2x6x3xf32>
  %2 = oriel.conv %x, %g {strides = array<i64: 2>, pads = array<i64: 0, 0>, dilations = array<i64: 1>, group = 2 : i64} : (tensor<2x4x8xf32>, tensor<6x2x2xf32>) -> tensor<2x6x4xf32>
  %3 = oriel.conv %x, %w {strides = array<i64: 1>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<2x4x8xf32>, tensor<6x4x2xf32>) -> tensor<2x6x7xf32>
  %4 = oriel.conv %x, %w {strides = array<i64: 3>, pads = array<i64: 0, 0>, dilations = array<i64: 1>} : (tensor<2x4x8xf32>, tensor<6x4x2xf32>) -> tensor<2x6x3xf32>
  %5 = oriel.transpose %0 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x5xf32>) -> tensor<2x5x6xf32>
  %6 = oriel.transpose %1 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x3xf32>) -> tensor<2x3x6xf32>
  %7 = oriel.transpose %2 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x4xf32>) -> tensor<2x4x6xf32>
  %8 = oriel.transpose %3 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x7xf32>) -> tensor<2x7x6xf32>
  %9 = oriel.transpose %4 {permutation = array<i64: 0, 2, 1>} : (tensor<2x6x3xf32>) -> tensor<2x3x6xf32>
  return %5, %6, %7, %8, %9 : tensor<2x5x6xf32>, tensor<2x3x6xf32>, tensor<2x4x6xf32>, tensor<2x7x6xf32>, tensor<2x3x6xf32>
}

// -----

// A bias for each head and each of its columns.
// CHECK-LABEL: func.func @split_bias
// CHECK-SAME: (%[[X:.*]]: tensor<3x4xf32>, %[[W:.*]]: tensor<4x8xf32>, %[[B:.*]]: tensor<2x4xf32>)
// CHECK: %[[FLAT:.*]] = oriel.reshape %[[B]] : (tensor<2x4xf32>) -> tensor<8xf32>
// CHECK: %[[Y:.*]] = oriel.linear %[[X]], %[[W]], %[[FLAT]]
// CHECK: oriel.reshape %[[Y]] : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32>
func.func @split_bias(%x: tensor<3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<2x4xf32>) -> tensor<1x3x2x4xf32> {
  %0 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.reshape %0 : (tensor<3x8xf32>) -> tensor<1x3x2x4xf32>
  %2 = oriel.add %1, %b : (tensor<1x3x2x4xf32>, tensor<2x4xf32>) -> tensor<1x3x2x4xf32>
  return %2 : tensor<1x3x2x4xf32>
}

// -----

// One for each head, or for each position, is another thing.
// CHECK-LABEL: func.func @no_split_bias
// CHECK-COUNT-2: oriel.add
func.func @no_split_bias(%x: tensor<3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<2x1xf32>, %c: tensor<3x2x4xf32>) -> (tensor<3x2x4xf32>, tensor<3x2x4xf32>) {
  %0 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %1 = oriel.reshape %0 : (tensor<3x8xf32>) -> tensor<3x2x4xf32>
  %2 = oriel.add %1, %b : (tensor<3x2x4xf32>, tensor<2x1xf32>) -> tensor<3x2x4xf32>
  %3 = oriel.linear %x, %w : (tensor<3x4xf32>, tensor<4x8xf32>) -> tensor<3x8xf32>
  %4 = oriel.reshape %3 : (tensor<3x8xf32>) -> tensor<3x2x4xf32>
  %5 = oriel.add %4, %c : (tensor<3x2x4xf32>, tensor<3x2x4xf32>) -> tensor<3x2x4xf32>
  return %2, %5 : tensor<3x2x4xf32>, tensor<3x2x4xf32>
}

// -----

// A bias with dimensions of size 1 in front.
// CHECK-LABEL: func.func @broadcast_bias
// CHECK: %[[B:.*]] = oriel.reshape %{{.*}} : (tensor<1x1x8xf32>) -> tensor<8xf32>
// CHECK: oriel.linear %{{.*}}, %{{.*}}, %[[B]]
func.func @broadcast_bias(%x: tensor<2x3x4xf32>, %w: tensor<4x8xf32>, %b: tensor<1x1x8xf32>) -> tensor<2x3x8xf32> {
  %0 = oriel.linear %x, %w : (tensor<2x3x4xf32>, tensor<4x8xf32>) -> tensor<2x3x8xf32>
  %1 = oriel.add %0, %b : (tensor<2x3x8xf32>, tensor<1x1x8xf32>) -> tensor<2x3x8xf32>
  return %1 : tensor<2x3x8xf32>
}
