// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-attention),canonicalize)" --split-input-file | FileCheck %s

// A temperature of each head, learned, scales the queries; behind a scale that is known.
// CHECK-LABEL: func.func @temperature
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x4x8xf32>, %[[K:.*]]: tensor<2x3x4x8xf32>, %[[V:.*]]: tensor<2x3x4x8xf32>, %[[T:.*]]: tensor<3x1x1xf32>)
// CHECK: %[[E:.*]] = oriel.exp %[[T]]
// CHECK: %[[S:.*]] = oriel.mul %[[Q]], %[[E]] : (tensor<2x3x4x8xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x8xf32>
// CHECK: %[[Y:.*]], %{{.*}} = oriel.attention %[[S]], %[[K]], %[[V]] {scale = 5.000000e-01 : f64}
// CHECK: return %[[Y]]
func.func @temperature(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %t: tensor<3x1x1xf32>) -> tensor<2x3x4x8xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %1 = oriel.mul %0, %half : (tensor<2x3x4x4xf32>, tensor<f32>) -> tensor<2x3x4x4xf32>
  %2 = oriel.exp %t : (tensor<3x1x1xf32>) -> tensor<3x1x1xf32>
  %3 = oriel.mul %2, %1 : (tensor<3x1x1xf32>, tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %4 = oriel.softmax %3 {dim = 3 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %5 = oriel.matmul %4, %v : (tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %5 : tensor<2x3x4x8xf32>
}

// -----

// Divided by one of all.
// CHECK-LABEL: func.func @divided
// CHECK-SAME: (%[[Q:[a-z0-9]+]]: tensor<2x3x4x8xf32>, {{.*}}%[[T:[a-z0-9]+]]: tensor<f32>)
// CHECK: %[[S:.*]] = oriel.div %[[Q]], %[[T]] : (tensor<2x3x4x8xf32>, tensor<f32>)
// CHECK: oriel.attention %[[S]]
func.func @divided(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %t: tensor<f32>) -> tensor<2x3x4x8xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %1 = oriel.div %0, %t : (tensor<2x3x4x4xf32>, tensor<f32>) -> tensor<2x3x4x4xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %3 = oriel.matmul %2, %v : (tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %3 : tensor<2x3x4x8xf32>
}

// -----

// One of each key.
// CHECK-LABEL: func.func @of_keys
// CHECK-NOT: oriel.attention
// CHECK: return
func.func @of_keys(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %v: tensor<2x3x4x8xf32>, %t: tensor<4xf32>) -> tensor<2x3x4x8xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %1 = oriel.mul %0, %t : (tensor<2x3x4x4xf32>, tensor<4xf32>) -> tensor<2x3x4x4xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %3 = oriel.matmul %2, %v : (tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %3 : tensor<2x3x4x8xf32>
}

// -----

// Queries that are keys, too, are scaled once.
// CHECK-LABEL: func.func @of_itself
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x3x4x8xf32>, %[[T:[a-z0-9]+]]: tensor<3x1x1xf32>)
// CHECK: %[[S:.*]] = oriel.mul %[[X]], %[[T]]
// CHECK: oriel.attention %[[S]], %[[X]], %[[X]]
func.func @of_itself(%x: tensor<2x3x4x8xf32>, %t: tensor<3x1x1xf32>) -> tensor<2x3x4x8xf32> {
  %0 = oriel.matmul %x, %x {transpose_rhs = true} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %1 = oriel.mul %0, %t : (tensor<2x3x4x4xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %3 = oriel.matmul %2, %x : (tensor<2x3x4x4xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x8xf32>
  return %3 : tensor<2x3x4x8xf32>
}

// -----

// Of no attention, scores stay as they are.
// CHECK-LABEL: func.func @no_attention
// CHECK: %[[P:.*]] = oriel.matmul
// CHECK: oriel.mul %[[P]]
func.func @no_attention(%q: tensor<2x3x4x8xf32>, %k: tensor<2x3x4x8xf32>, %t: tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32> {
  %0 = oriel.matmul %q, %k {transpose_rhs = true} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>) -> tensor<2x3x4x4xf32>
  %1 = oriel.mul %0, %t : (tensor<2x3x4x4xf32>, tensor<3x1x1xf32>) -> tensor<2x3x4x4xf32>
  %2 = oriel.softmax %1 {dim = 3 : i64} : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  return %2 : tensor<2x3x4x4xf32>
}

// -----

// Of heads behind positions as well, in front of the reshape that made them.
// CHECK-LABEL: func.func @heads_behind
// CHECK-SAME: (%[[Q:.*]]: tensor<2x3x2x4x8xf32>, %[[K:.*]]: tensor<2x3x8x8xf32>)
// CHECK: %[[HEADS:.*]] = oriel.reshape %[[Q]]
// CHECK: oriel.attention %[[HEADS]], %[[K]], %[[K]] {scale = 1.250000e-01 : f64, sequence_first = true} :
func.func @heads_behind(%q: tensor<2x3x2x4x8xf32>, %k: tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32> {
  %c = oriel.constant {value = dense<0.25> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %q, %c : (tensor<2x3x2x4x8xf32>, tensor<f32>) -> tensor<2x3x2x4x8xf32>
  %1 = oriel.reshape %0 : (tensor<2x3x2x4x8xf32>) -> tensor<2x3x8x8xf32>
  %2, %lse = oriel.attention %1, %k, %k {scale = 0.5, sequence_first = true} : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>) -> (tensor<2x3x8x8xf32>, tensor<2x8x3xf32>)
  return %2 : tensor<2x3x8x8xf32>
}
