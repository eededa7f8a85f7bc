// RUN: oriel-opt %s --oriel-form-lists --split-input-file | FileCheck %s

// Steps with the same attributes; the masters' rounded values come with them.
// CHECK-LABEL: func.func @update
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<8xf32>
// CHECK-SAME: %[[Q:[a-z0-9]+]]: tensor<4xf32>
// CHECK-SAME: %[[R:[a-z0-9]+]]: tensor<2xf32>
// CHECK: %[[NEW:.*]]:2, %[[ROUNDED:.*]]:2 = oriel.sgd_list %[[P]], %[[Q]], %[[P]], %[[Q]], %[[S:.*]], %[[S]] {
// CHECK-SAME: resultSegmentSizes = array<i32: 2, 0, 2>, weight_decay = 1.000000e-01 : f64
// CHECK: %[[N:.*]] = oriel.sgd %[[R]]
// CHECK-NOT: oriel.cast
// CHECK: return %[[ROUNDED]]#0, %[[ROUNDED]]#1, %[[NEW]]#0, %[[NEW]]#1, %[[N]]
module {
  func.func @update(%p: tensor<8xf32>, %q: tensor<4xf32>, %r: tensor<2xf32>, %s: tensor<f32>)
      -> (tensor<8xbf16>, tensor<4xbf16>, tensor<8xf32>, tensor<4xf32>, tensor<2xf32>) {
    %0 = oriel.sgd %p, %p, %s, %s {weight_decay = 0.1 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    %1 = oriel.cast %0 : (tensor<8xf32>) -> tensor<8xbf16>
    %2 = oriel.sgd %q, %q, %s, %s {weight_decay = 0.1 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
    %3 = oriel.cast %2 : (tensor<4xf32>) -> tensor<4xbf16>
    %4 = oriel.sgd %r, %r, %s, %s {weight_decay = 0.0 : f64} : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> tensor<2xf32>
    return %1, %3, %0, %2, %4 : tensor<8xbf16>, tensor<4xbf16>, tensor<8xf32>, tensor<4xf32>, tensor<2xf32>
  }
}

// -----

// Attributes decide, not what stands between: two lists, of decayed and of other parameters.
// CHECK-LABEL: func.func @alternating
// CHECK: oriel.adamw_list %arg0, %arg2, {{.*}} weight_decay = 1.000000e-01
// CHECK: oriel.adamw_list %arg1, %arg3, {{.*}} weight_decay = 0.000000e+00
// CHECK-NOT: oriel.adamw
module {
  func.func @alternating(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %s: tensor<f32>)
      -> (tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0:3 = oriel.adamw %a, %a, %a, %a, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.1 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    %1:3 = oriel.adamw %b, %b, %b, %b, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    %2:3 = oriel.adamw %c, %c, %c, %c, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.1 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %3:3 = oriel.adamw %d, %d, %d, %d, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    return %0#0, %1#0, %2#0, %3#0 : tensor<8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// What a collective gathers leaves before the steps behind it; a wait is not passed either.
// CHECK-LABEL: func.func @gathers
// CHECK: oriel.sgd %arg0
// CHECK: oriel.all_gather
// CHECK: oriel.sgd %arg1
// CHECK: oriel.wait
// CHECK: oriel.sgd %arg1
module {
  func.func @gathers(%p: tensor<8xf32>, %q: tensor<4xf32>, %s: tensor<f32>) -> (tensor<16xf32>, tensor<4xf32>, tensor<4xf32>) {
    %0 = oriel.sgd %p, %p, %s, %s {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    %1 = oriel.all_gather %0 {axes = ["a0"], dim = 0 : i64, oriel.stream = 1 : i64} : (tensor<8xf32>) -> tensor<16xf32>
    %2 = oriel.sgd %q, %q, %s, %s {weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
    %3 = oriel.wait %1 : (tensor<16xf32>) -> tensor<16xf32>
    %4 = oriel.sgd %q, %2, %s, %s {weight_decay = 0.0 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
    return %3, %2, %4 : tensor<16xf32>, tensor<4xf32>, tensor<4xf32>
  }
}

// -----

// A step of what another one makes is in no list with it.
// CHECK-LABEL: func.func @chain
// CHECK: %[[A:.*]] = oriel.sgd %arg0
// CHECK: oriel.sgd %[[A]]
module {
  func.func @chain(%p: tensor<8xf32>, %s: tensor<f32>) -> tensor<8xf32> {
    %0 = oriel.sgd %p, %p, %s, %s {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    %1 = oriel.sgd %0, %p, %s, %s {weight_decay = 0.0 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// The factors of each op's rule stand behind those of the ops before it.
// CHECK-LABEL: func.func @split
// CHECK: oriel.sgd_list
// CHECK-SAME: oriel.rule = {factors = {{\[\[}}16, "parallel"], [4, "parallel"]], linear = [], operands = {{\[\[\[}}0]], {{\[\[}}1]], {{\[\[}}0]], {{\[\[}}1]], [], []], results = {{\[\[\[}}0]], {{\[\[}}1]]]}
// CHECK-SAME: oriel.split = {{\[\[}}"a0"], ["a0"]]
module {
  func.func @split(%p: tensor<8xf32>, %q: tensor<2xf32>, %s: tensor<f32>) -> (tensor<8xf32>, tensor<2xf32>) {
    %0 = oriel.sgd %p, %p, %s, %s {weight_decay = 0.0 : f64, oriel.rule = {factors = [[16, "parallel"]], linear = [], operands = [[[0]], [[0]], [], []], results = [[[0]]]}, oriel.split = [["a0"]]} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    %1 = oriel.sgd %q, %q, %s, %s {weight_decay = 0.0 : f64, oriel.rule = {factors = [[4, "parallel"]], linear = [], operands = [[[0]], [[0]], [], []], results = [[[0]]]}, oriel.split = [["a0"]]} : (tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<f32>) -> tensor<2xf32>
    return %0, %1 : tensor<8xf32>, tensor<2xf32>
  }
}
