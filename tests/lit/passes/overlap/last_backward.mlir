// RUN: oriel-opt %s --oriel-overlap --split-input-file | FileCheck %s

// The last microbatch reduces what was accumulated, in the gradient's place.
// CHECK-LABEL: oriel.schedule = {{\[}}["forward", 0], ["backward", 0], ["forward", 1], ["backward_last", 1], ["update", 0]]
// CHECK: func.func @backward(
// CHECK-NEXT: %[[SUM:.*]] = oriel.add
// CHECK-NEXT: return %[[SUM]]
// CHECK: func.func @backward_last(
// CHECK-SAME: -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}]>})
// CHECK-NEXT: %[[SUM:.*]] = oriel.add
// CHECK-NEXT: %[[STARTED:.*]] = oriel.all_reduce %[[SUM]] {axes = ["a0"], {{.*}}oriel.stream = 1 : i64
// CHECK-NEXT: %[[REDUCED:.*]] = oriel.wait %[[STARTED]] {oriel.shardings = [#oriel.sharding<[{}]>]}
// CHECK-NEXT: return %[[REDUCED]]
// CHECK: func.func @update(
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}]>}
// What is no gradient is reduced there still.
// CHECK: %[[LOSS:.*]] = oriel.all_reduce %{{.*}} {axes = ["a0"], {{.*}}} : (tensor<f32>) -> tensor<f32>
// CHECK: oriel.sub %{{.*}}, %[[G]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = [["forward", 0], ["backward", 0], ["forward", 1], ["backward", 1], ["update", 0]]} {
  func.func @forward() {
    return
  }
  func.func @backward(%d: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x", oriel.sharding = #oriel.sharding<[{}] sum {a0}>},
                      %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}] sum {a0}>})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}] sum {a0}>}) {
    %0 = oriel.add %g, %d {oriel.shardings = [#oriel.sharding<[{}] sum {a0}>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%p: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}]>},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}] sum {a0}>},
                    %l: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "loss", oriel.sharding = #oriel.sharding<[] sum {a0}>})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0", oriel.sharding = #oriel.sharding<[{}]>},
          tensor<f32> {oriel.kind = "output", oriel.ref = "loss", oriel.sharding = #oriel.sharding<[]>}) {
    %r:2 = oriel.all_reduce %g, %l {axes = ["a0"], oriel.shardings = [#oriel.sharding<[{}]>, #oriel.sharding<[]>], reduction = "sum"} : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<f32>)
    %n = oriel.sub %p, %r#0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %n, %r#1 : tensor<4xf32>, tensor<f32>
  }
}

// -----

// A piece goes to the update as a stash value of the last microbatch. With one microbatch there is
// no other segment.
// CHECK-LABEL: oriel.schedule = {{\[}}["forward.0", 0], ["backward_last.0", 0], ["update", 0]]
// CHECK-NOT: @backward.0
// CHECK: func.func @backward_last.0(
// CHECK-SAME: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}
// CHECK-SAME: tensor<2xf32> {oriel.kind = "stash", oriel.ref = "reduced.p0", oriel.sharding = #oriel.sharding<[{a0}]>}
// CHECK: %[[SUM:.*]] = oriel.add
// CHECK: %[[STARTED:.*]] = oriel.reduce_scatter %[[SUM]]
// CHECK: %[[PIECE:.*]] = oriel.wait %[[STARTED]]
// CHECK: return %[[SUM]], %[[PIECE]]
// CHECK: func.func @update(
// CHECK-SAME: %[[PIECE:[a-z0-9]+]]: tensor<2xf32> {oriel.kind = "stash", oriel.ref = "reduced.p0", oriel.sharding = #oriel.sharding<[{a0}]>}
// CHECK-NOT: reduce_scatter
// CHECK: oriel.sub %{{.*}}, %[[PIECE]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = [["forward.0", 0], ["backward.0", 0], ["update", 0]]} {
  func.func @forward.0() {
    return
  }
  func.func @backward.0(%d: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"},
                        %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.add %g, %d : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%p: tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<2xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %r = oriel.reduce_scatter %g {axes = ["a0"], dim = 0 : i64, oriel.shardings = [#oriel.sharding<[{a0}]>], reduction = "sum"} : (tensor<4xf32>) -> tensor<2xf32>
    %n = oriel.sub %p, %r : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
    return %n : tensor<2xf32>
  }
}

// -----

// Where two segments of a program add to a gradient, the later one in the schedule reduces it. A
// gradient that the update adds to first is reduced there.
// CHECK-LABEL: oriel.schedule = {{\[}}["backward.1", 0], ["backward.0", 0], ["backward.1", 1], ["backward_last.0", 1], ["update", 0]]
// CHECK: func.func @backward_last.0(
// CHECK: oriel.all_reduce
// CHECK: func.func @backward.1(
// CHECK-NOT: oriel.all_reduce
// CHECK: func.func @update(
// CHECK: %[[SUM:.*]] = oriel.add
// CHECK: oriel.all_reduce %[[SUM]]
// CHECK-NOT: oriel.all_reduce
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = [["backward.1", 0], ["backward.0", 0], ["backward.1", 1], ["backward.0", 1], ["update", 0]]} {
  func.func @backward.0(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                        %h: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p1"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}, tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p1"}) {
    %0 = oriel.add %g, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.add %h, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0, %1 : tensor<4xf32>, tensor<4xf32>
  }
  func.func @backward.1(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}) {
    %0 = oriel.add %g, %g : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
  func.func @update(%p: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                    %h: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p1"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %r = oriel.all_reduce %g {axes = ["a0"], reduction = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
    %s = oriel.add %h, %h : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %t = oriel.all_reduce %s {axes = ["a0"], reduction = "sum"} : (tensor<4xf32>) -> tensor<4xf32>
    return %r, %t : tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// Gradients are reduced in the order in which they get ready, whatever that of the update, while
// others are computed.
// CHECK-LABEL: func.func @backward_last(
// CHECK: %[[D:.*]] = oriel.matmul
// CHECK: %[[B:.*]] = oriel.add %{{.*}}, %[[D]]
// CHECK-NEXT: oriel.all_reduce %[[B]]
// CHECK: oriel.matmul
// CHECK: %[[A:.*]] = oriel.add
// CHECK-NEXT: oriel.all_reduce %[[A]]
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}, oriel.schedule = [["backward", 0], ["update", 0]]} {
  func.func @backward(%x: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "x"},
                      %a: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                      %b: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"})
      -> (tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"}, tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"}) {
    %0 = oriel.matmul %x, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = oriel.add %b, %0 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = oriel.matmul %0, %x : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %3 = oriel.add %a, %2 : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %3, %1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
  func.func @update(%p: tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %a: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                    %b: tensor<4x4xf32> {oriel.kind = "gradient", oriel.ref = "p1"})
      -> (tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}, tensor<4x4xf32> {oriel.kind = "parameter", oriel.ref = "p1"}) {
    %r:2 = oriel.all_reduce %a, %b {axes = ["a0"], reduction = "sum"} : (tensor<4x4xf32>, tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
    return %r#0, %r#1 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}
