// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-packed),canonicalize,cse)" --split-input-file | FileCheck %s

// A projector on each of two images: rows of one.
// CHECK-LABEL: func.func @images
// CHECK-SAME: (%[[X:.*]]: tensor<8x6xf32>, %[[W:.*]]: tensor<12x5xf32>, %[[B:.*]]: tensor<5xf32>)
// CHECK: %[[S:.*]] = oriel.reshape %[[X]] : (tensor<8x6xf32>) -> tensor<2x2x2x6xf32>
// CHECK: %[[T:.*]] = oriel.transpose %[[S]] {permutation = array<i64: 0, 2, 1, 3>}
// CHECK: %[[R:.*]] = oriel.reshape %[[T]] : (tensor<2x2x2x6xf32>) -> tensor<4x12xf32>
// CHECK: %[[L:.*]] = oriel.linear %[[R]], %[[W]], %[[B]]
// CHECK: %[[Y:.*]] = oriel.relu %[[L]] : (tensor<4x5xf32>) -> tensor<4x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @images(%x: tensor<8x6xf32>, %w: tensor<12x5xf32>, %b: tensor<5xf32>) -> tensor<4x5xf32> {
  %0 = oriel.slice %x {limits = array<i64: 4, 6>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = oriel.reshape %0 : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 1, 0, 2>} : (tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  %3 = oriel.reshape %2 : (tensor<2x2x6xf32>) -> tensor<2x12xf32>
  %4 = oriel.linear %3, %w, %b : (tensor<2x12xf32>, tensor<12x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  %5 = oriel.relu %4 : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %6 = oriel.slice %x {limits = array<i64: 8, 6>, starts = array<i64: 4, 0>, strides = array<i64: 1, 1>} : (tensor<8x6xf32>) -> tensor<4x6xf32>
  %7 = oriel.reshape %6 : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
  %8 = oriel.transpose %7 {permutation = array<i64: 1, 0, 2>} : (tensor<2x2x6xf32>) -> tensor<2x2x6xf32>
  %9 = oriel.reshape %8 : (tensor<2x2x6xf32>) -> tensor<2x12xf32>
  %10 = oriel.linear %9, %w, %b : (tensor<2x12xf32>, tensor<12x5xf32>, tensor<5xf32>) -> tensor<2x5xf32>
  %11 = oriel.relu %10 : (tensor<2x5xf32>) -> tensor<2x5xf32>
  %12 = oriel.concat %5, %11 {dim = 0 : i64} : (tensor<2x5xf32>, tensor<2x5xf32>) -> tensor<4x5xf32>
  return %12 : tensor<4x5xf32>
}

// -----

// Heads one by one, of two samples: heads are inside of samples, which ranks share.
// CHECK-LABEL: func.func @heads
// CHECK-COUNT-2: oriel.transpose %{{.*}} {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x4x3x2xf32>) -> tensor<2x3x4x2xf32>
// CHECK: oriel.matmul %{{.*}} {transpose_rhs = true} : (tensor<6x4x2xf32>, tensor<6x4x2xf32>) -> tensor<6x4x4xf32>
// CHECK: oriel.softmax %{{.*}} : (tensor<6x4x4xf32>)
// CHECK: oriel.matmul %{{.*}} : (tensor<6x4x4xf32>, tensor<6x4x2xf32>) -> tensor<6x4x2xf32>
// CHECK: oriel.transpose %{{.*}} {permutation = array<i64: 0, 2, 1, 3>} : (tensor<2x3x4x2xf32>) -> tensor<2x4x3x2xf32>
// CHECK-NOT: oriel.concat
// CHECK: return
func.func @heads(%q: tensor<2x4x6xf32>, %k: tensor<2x4x6xf32>, %v: tensor<2x4x6xf32>) -> tensor<2x4x6xf32> {
  %0 = oriel.slice %q {limits = array<i64: 2, 4, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %1 = oriel.slice %k {limits = array<i64: 2, 4, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %2 = oriel.slice %v {limits = array<i64: 2, 4, 2>, starts = array<i64: 0, 0, 0>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %3 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x4xf32>
  %4 = oriel.softmax %3 {dim = 2 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %5 = oriel.matmul %4, %2 : (tensor<2x4x4xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  %6 = oriel.slice %q {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %7 = oriel.slice %k {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %8 = oriel.slice %v {limits = array<i64: 2, 4, 4>, starts = array<i64: 0, 0, 2>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %9 = oriel.matmul %6, %7 {transpose_rhs = true} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x4xf32>
  %10 = oriel.softmax %9 {dim = 2 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %11 = oriel.matmul %10, %8 : (tensor<2x4x4xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  %12 = oriel.slice %q {limits = array<i64: 2, 4, 6>, starts = array<i64: 0, 0, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %13 = oriel.slice %k {limits = array<i64: 2, 4, 6>, starts = array<i64: 0, 0, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %14 = oriel.slice %v {limits = array<i64: 2, 4, 6>, starts = array<i64: 0, 0, 4>, strides = array<i64: 1, 1, 1>} : (tensor<2x4x6xf32>) -> tensor<2x4x2xf32>
  %15 = oriel.matmul %12, %13 {transpose_rhs = true} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x4xf32>
  %16 = oriel.softmax %15 {dim = 2 : i64} : (tensor<2x4x4xf32>) -> tensor<2x4x4xf32>
  %17 = oriel.matmul %16, %14 : (tensor<2x4x4xf32>, tensor<2x4x2xf32>) -> tensor<2x4x2xf32>
  %18 = oriel.concat %5, %11, %17 {dim = 2 : i64} : (tensor<2x4x2xf32>, tensor<2x4x2xf32>, tensor<2x4x2xf32>) -> tensor<2x4x6xf32>
  return %18 : tensor<2x4x6xf32>
}

// -----

// Convolutions have a dimension for it: of size 1 before, and once more behind the transpose.
// CHECK-LABEL: func.func @samples
// CHECK-SAME: (%[[X:.*]]: tensor<2x3x4x4xf32>, %[[W:.*]]: tensor<5x3x2x2xf32>)
// CHECK: %[[C:.*]] = oriel.conv %[[X]], %[[W]]
// CHECK: %[[R:.*]] = oriel.reshape %[[C]] : (tensor<2x5x3x3xf32>) -> tensor<2x5x9xf32>
// CHECK: %[[T:.*]] = oriel.transpose %[[R]] {permutation = array<i64: 0, 2, 1>}
// CHECK: %[[Y:.*]] = oriel.reshape %[[T]] : (tensor<2x9x5xf32>) -> tensor<18x5xf32>
// CHECK-NEXT: return %[[Y]]
func.func @samples(%x: tensor<2x3x4x4xf32>, %w: tensor<5x3x2x2xf32>) -> tensor<18x5xf32> {
  %0 = oriel.slice %x {limits = array<i64: 1, 3, 4, 4>, starts = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %1 = oriel.conv %0, %w {dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<5x3x2x2xf32>) -> tensor<1x5x3x3xf32>
  %2 = oriel.reshape %1 : (tensor<1x5x3x3xf32>) -> tensor<5x9xf32>
  %3 = oriel.transpose %2 {permutation = array<i64: 1, 0>} : (tensor<5x9xf32>) -> tensor<9x5xf32>
  %4 = oriel.slice %x {limits = array<i64: 2, 3, 4, 4>, starts = array<i64: 1, 0, 0, 0>, strides = array<i64: 1, 1, 1, 1>} : (tensor<2x3x4x4xf32>) -> tensor<1x3x4x4xf32>
  %5 = oriel.conv %4, %w {dilations = array<i64: 1, 1>, pads = array<i64: 0, 0, 0, 0>, strides = array<i64: 1, 1>} : (tensor<1x3x4x4xf32>, tensor<5x3x2x2xf32>) -> tensor<1x5x3x3xf32>
  %6 = oriel.reshape %5 : (tensor<1x5x3x3xf32>) -> tensor<5x9xf32>
  %7 = oriel.transpose %6 {permutation = array<i64: 1, 0>} : (tensor<5x9xf32>) -> tensor<9x5xf32>
  %8 = oriel.concat %3, %7 {dim = 0 : i64} : (tensor<9x5xf32>, tensor<9x5xf32>) -> tensor<18x5xf32>
  return %8 : tensor<18x5xf32>
}

// -----

// What both add is there twice; what broadcasts is not; constants of their own are one.
// CHECK-LABEL: func.func @shared
// CHECK-SAME: (%[[X:.*]]: tensor<6x4xf32>, %[[P:.*]]: tensor<3x4xf32>, %[[S:.*]]: tensor<4xf32>)
// CHECK-DAG: %[[C:.*]] = oriel.constant {{.*}} -> tensor<6x4xf32>
// CHECK-DAG: %[[B:.*]] = oriel.broadcast %{{.*}} : (tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32>
// CHECK-DAG: %[[P2:.*]] = oriel.reshape %[[B]] : (tensor<1x2x3x4xf32>) -> tensor<6x4xf32>
// CHECK: %[[A:.*]] = oriel.add %[[X]], %[[P2]]
// CHECK: %[[M:.*]] = oriel.mul %[[A]], %[[S]] : (tensor<6x4xf32>, tensor<4xf32>)
// CHECK: %[[Y:.*]] = oriel.mul %[[M]], %[[C]]
// CHECK-NEXT: return %[[Y]]
func.func @shared(%x: tensor<6x4xf32>, %p: tensor<3x4xf32>, %s: tensor<4xf32>) -> tensor<6x4xf32> {
  %c0 = oriel.constant {value = dense<2.0> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
  %c1 = oriel.constant {value = dense<3.0> : tensor<3x4xf32>} : () -> tensor<3x4xf32>
  %0 = oriel.slice %x {limits = array<i64: 3, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %1 = oriel.add %0, %p : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %2 = oriel.mul %1, %s : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %3 = oriel.mul %2, %c0 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %4 = oriel.slice %x {limits = array<i64: 6, 4>, starts = array<i64: 3, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %5 = oriel.add %4, %p : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %6 = oriel.mul %5, %s : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3x4xf32>
  %7 = oriel.mul %6, %c1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
  %8 = oriel.concat %3, %7 {dim = 0 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  return %8 : tensor<6x4xf32>
}

// -----

// Who else uses a piece gets a slice.
// CHECK-LABEL: func.func @used_elsewhere
// CHECK-SAME: (%[[X:.*]]: tensor<2x6xf32>)
// CHECK: %[[E:.*]] = oriel.exp %[[X]]
// CHECK-DAG: %[[U:.*]] = oriel.slice %[[E]] {{.*}} -> tensor<1x6xf32>
// CHECK-DAG: %[[Y:.*]] = oriel.slice %[[E]] {limits = array<i64: 2, 4>, starts = array<i64: 0, 1>{{.*}} -> tensor<2x3xf32>
// CHECK: return %[[Y]], %[[U]]
func.func @used_elsewhere(%x: tensor<2x6xf32>) -> (tensor<2x3xf32>, tensor<1x6xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 1, 6>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<1x6xf32>
  %1 = oriel.exp %0 : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %2 = oriel.slice %1 {limits = array<i64: 1, 4>, starts = array<i64: 0, 1>, strides = array<i64: 1, 1>} : (tensor<1x6xf32>) -> tensor<1x3xf32>
  %3 = oriel.slice %x {limits = array<i64: 2, 6>, starts = array<i64: 1, 0>, strides = array<i64: 1, 1>} : (tensor<2x6xf32>) -> tensor<1x6xf32>
  %4 = oriel.exp %3 : (tensor<1x6xf32>) -> tensor<1x6xf32>
  %5 = oriel.slice %4 {limits = array<i64: 1, 4>, starts = array<i64: 0, 1>, strides = array<i64: 1, 1>} : (tensor<1x6xf32>) -> tensor<1x3xf32>
  %6 = oriel.concat %2, %5 {dim = 0 : i64} : (tensor<1x3xf32>, tensor<1x3xf32>) -> tensor<2x3xf32>
  return %6, %4 : tensor<2x3xf32>, tensor<1x6xf32>
}

// -----

// Pieces of one size behind each other.
// CHECK-LABEL: func.func @sizes
// CHECK-SAME: (%[[X:.*]]: tensor<7x4xf32>)
// CHECK: %[[A:.*]] = oriel.slice %[[X]] {{.*}} -> tensor<4x4xf32>
// CHECK: %[[EA:.*]] = oriel.exp %[[A]]
// CHECK: %[[B:.*]] = oriel.slice %[[X]] {{.*}} -> tensor<3x4xf32>
// CHECK: %[[EB:.*]] = oriel.exp %[[B]]
// CHECK: %[[Y:.*]] = oriel.concat %[[EA]], %[[EB]]
// CHECK-NEXT: return %[[Y]]
func.func @sizes(%x: tensor<7x4xf32>) -> tensor<7x4xf32> {
  %0 = oriel.slice %x {limits = array<i64: 2, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<2x4xf32>
  %1 = oriel.exp %0 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %2 = oriel.slice %x {limits = array<i64: 4, 4>, starts = array<i64: 2, 0>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<2x4xf32>
  %3 = oriel.exp %2 : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %4 = oriel.slice %x {limits = array<i64: 5, 4>, starts = array<i64: 4, 0>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<1x4xf32>
  %5 = oriel.exp %4 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %6 = oriel.slice %x {limits = array<i64: 6, 4>, starts = array<i64: 5, 0>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<1x4xf32>
  %7 = oriel.exp %6 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %8 = oriel.slice %x {limits = array<i64: 7, 4>, starts = array<i64: 6, 0>, strides = array<i64: 1, 1>} : (tensor<7x4xf32>) -> tensor<1x4xf32>
  %9 = oriel.exp %8 : (tensor<1x4xf32>) -> tensor<1x4xf32>
  %10 = oriel.concat %1, %3, %5, %7, %9 {dim = 0 : i64} : (tensor<2x4xf32>, tensor<2x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) -> tensor<7x4xf32>
  return %10 : tensor<7x4xf32>
}

// -----

// Other weights; the other way round; sums over what would be stacked, for which two transposes
// would take the place of two sums; other ops.
// CHECK-LABEL: func.func @refused
// CHECK-COUNT-2: oriel.linear %{{.*}} : (tensor<3x4xf32>
// CHECK-COUNT-2: oriel.exp %{{.*}} : (tensor<3x4xf32>)
// CHECK-COUNT-2: oriel.cumsum %{{.*}} : (tensor<3x4xf32>)
// CHECK: oriel.neg %{{.*}} : (tensor<3x4xf32>)
func.func @refused(%x: tensor<6x4xf32>, %w: tensor<4x3xf32>, %u: tensor<4x3xf32>) -> (tensor<6x3xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = oriel.slice %x {limits = array<i64: 3, 4>, starts = array<i64: 0, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %1 = oriel.slice %x {limits = array<i64: 6, 4>, starts = array<i64: 3, 0>, strides = array<i64: 1, 1>} : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %2 = oriel.linear %0, %w : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %3 = oriel.linear %1, %u : (tensor<3x4xf32>, tensor<4x3xf32>) -> tensor<3x3xf32>
  %4 = oriel.concat %2, %3 {dim = 0 : i64} : (tensor<3x3xf32>, tensor<3x3xf32>) -> tensor<6x3xf32>
  %5 = oriel.exp %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %6 = oriel.exp %0 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %7 = oriel.concat %5, %6 {dim = 0 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  %8 = oriel.cumsum %0 {dim = 0 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %9 = oriel.cumsum %1 {dim = 0 : i64} : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %10 = oriel.concat %8, %9 {dim = 0 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  %11 = oriel.exp %0 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %12 = oriel.neg %1 : (tensor<3x4xf32>) -> tensor<3x4xf32>
  %13 = oriel.concat %11, %12 {dim = 0 : i64} : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<6x4xf32>
  return %4, %7, %10, %13 : tensor<6x3xf32>, tensor<6x4xf32>, tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// One tensor twice; not if that is within rows.
// CHECK-LABEL: func.func @repeated
// CHECK-SAME: (%[[X:.*]]: tensor<1x3x4xf32>)
// CHECK: %[[R:.*]] = oriel.reshape %[[X]] : (tensor<1x3x4xf32>) -> tensor<1x1x3x4xf32>
// CHECK: %[[B:.*]] = oriel.broadcast %[[R]] : (tensor<1x1x3x4xf32>) -> tensor<1x2x3x4xf32>
// CHECK: %[[Y:.*]] = oriel.reshape %[[B]] : (tensor<1x2x3x4xf32>) -> tensor<1x6x4xf32>
// CHECK: %[[Z:.*]] = oriel.concat %[[X]], %[[X]] {dim = 2 : i64}
// CHECK: return %[[Y]], %[[Z]]
func.func @repeated(%x: tensor<1x3x4xf32>) -> (tensor<1x6x4xf32>, tensor<1x3x8xf32>) {
  %0 = oriel.concat %x, %x {dim = 1 : i64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x6x4xf32>
  %1 = oriel.concat %x, %x {dim = 2 : i64} : (tensor<1x3x4xf32>, tensor<1x3x4xf32>) -> tensor<1x3x8xf32>
  return %0, %1 : tensor<1x6x4xf32>, tensor<1x3x8xf32>
}
