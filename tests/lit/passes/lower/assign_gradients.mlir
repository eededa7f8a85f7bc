// RUN: oriel-opt %s --oriel-assign-gradients --split-input-file | FileCheck %s

// One run of one backward makes it: it is set, and update leaves it.
// CHECK-LABEL: func.func @backward
// CHECK-SAME: (%arg0: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"}) ->
// CHECK-NEXT: %[[G:.*]] = oriel.exp %arg0
// CHECK-NEXT: return %[[G]]
// CHECK-LABEL: func.func @update
// CHECK-SAME: -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "w"})
// CHECK: %[[W:.*]] = oriel.sub
// CHECK: return %[[W]] : tensor<4xf32>
module attributes {oriel.schedule = [["forward", 0], ["backward", 0], ["update", 0]]} {
  func.func @backward(%x: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"}, %sum: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.add %sum, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func @update(%w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "w"}, %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "w"}, tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.sub %w, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.constant {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Two microbatches, or two stages of one rank, add.
// CHECK-LABEL: func.func @backward
// CHECK: oriel.add
// CHECK-LABEL: func.func @update
// CHECK: oriel.constant
module attributes {oriel.schedule = [["backward", 0], ["backward", 1], ["update", 0]]} {
  func.func @backward(%x: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"}, %sum: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.add %sum, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.constant {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// CHECK-LABEL: func.func @backward.1
// CHECK: oriel.add
// CHECK-LABEL: func.func @backward.0
// CHECK: oriel.add
// CHECK-LABEL: func.func @update
// CHECK: oriel.constant
module attributes {oriel.schedule = [["backward.1", 0], ["backward.0", 0], ["update", 0]]} {
  func.func @backward.1(%x: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"}, %sum: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.add %sum, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @backward.0(%x: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v1"}, %sum: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.add %sum, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.constant {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}

// -----

// What is done with the sum besides, or a reset that is none: it stays.
// CHECK-LABEL: func.func @backward
// CHECK: oriel.add
// CHECK: oriel.add
// CHECK-LABEL: func.func @update
// CHECK: return %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<4xf32>
module attributes {oriel.schedule = [["backward", 0], ["update", 0]]} {
  func.func @backward(%x: tensor<4xf32> {oriel.kind = "stash", oriel.ref = "v0"}, %v: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "v"}, %w: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "v"}, tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.mul %v, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.add %v, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %2 = oriel.add %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1, %2 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @update(%v: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "v"}, %w: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "v"}, tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}) {
    %0 = oriel.constant {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
    return %0, %w : tensor<4xf32>, tensor<4xf32>
  }
}
