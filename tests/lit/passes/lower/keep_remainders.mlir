// RUN: oriel-opt %s --oriel-keep-remainders --split-input-file | FileCheck %s
// RUN: oriel-opt %s --oriel-keep-remainders --oriel-form-lists --split-input-file | FileCheck %s --check-prefix=LIST

// Parameter and master are stored alike: of the master stays what the parameter lacks.
// CHECK-LABEL: func.func @update
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<8xbf16>
// CHECK-SAME: %[[M:[a-z0-9]+]]: tensor<8xi16> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"}
// CHECK-SAME: %[[G:[a-z0-9]+]]: tensor<8xf32>
// CHECK: %[[NEW:.*]], %[[REST:.*]] = oriel.sgd %[[P]], %[[G]], %[[M]], %[[S:.*]], %[[S]]
// CHECK-NOT: oriel.cast
// CHECK: return %[[NEW]], %[[REST]] : tensor<8xbf16>, tensor<8xi16>
module {
  func.func @update(%p: tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"},
                    %m: tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"},
                    %g: tensor<8xf32> {oriel.kind = "gradient", oriel.ref = "w"}, %s: tensor<f32> {oriel.kind = "scalar", oriel.ref = "step"})
      -> (tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"}, tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"}) {
    %0 = oriel.sgd %m, %g, %s, %s {weight_decay = 0.1 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    %1 = oriel.cast %0 : (tensor<8xf32>) -> tensor<8xbf16>
    return %1, %0 : tensor<8xbf16>, tensor<8xf32>
  }
}

// -----

// Two make a list; how they are split says so of remainders, too.
// CHECK-LABEL: func.func @update
// CHECK: oriel.adamw %{{.*}} oriel.rule = {factors = [{{.*}}], linear = [], operands = [{{\[\[0\]\], \[\[0\]\], \[\[0\]\], \[\[0\]\], \[\[0\]\], \[\], \[\], \[\]}}], results = [{{\[\[0\]\], \[\[0\]\], \[\[0\]\], \[\[0\]\]}}]}
// LIST-LABEL: func.func @update
// LIST: %{{.*}}:2, %{{.*}}:2, %{{.*}}:2, %{{.*}}:2 = oriel.adamw_list %arg0, %arg1, %arg4, %arg5, %arg6, %arg7, %arg6, %arg7, %arg2, %arg3, %arg8, %arg8, %arg8
// LIST-SAME: operandSegmentSizes = array<i32: 2, 2, 2, 2, 2, 1, 1, 1>
// LIST-SAME: resultSegmentSizes = array<i32: 2, 2, 2, 2, 0>
module {
  func.func @update(%p: tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"}, %q: tensor<4xbf16> {oriel.kind = "parameter", oriel.ref = "v"},
                    %m: tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"},
                    %n: tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "v", oriel.slot = "master"},
                    %g: tensor<8xbf16> {oriel.kind = "gradient", oriel.ref = "w"}, %h: tensor<4xbf16> {oriel.kind = "gradient", oriel.ref = "v"},
                    %a: tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "exp_avg"},
                    %b: tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "v", oriel.slot = "exp_avg"}, %s: tensor<f32> {oriel.kind = "scalar", oriel.ref = "step"})
      -> (tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"}, tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"},
          tensor<4xbf16> {oriel.kind = "parameter", oriel.ref = "v"}, tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "v", oriel.slot = "master"}) {
    %0:3 = oriel.adamw %m, %g, %a, %a, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.1 : f64, oriel.rule = {factors = [[8, "parallel"]], linear = [], operands = [[[0]], [[0]], [[0]], [[0]], [], [], []], results = [[[0]], [[0]], [[0]]]}} : (tensor<8xf32>, tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    %1 = oriel.cast %0#0 : (tensor<8xf32>) -> tensor<8xbf16>
    %2:3 = oriel.adamw %n, %h, %b, %b, %s, %s, %s {beta1 = 0.9 : f64, beta2 = 0.9 : f64, epsilon = 0.1 : f64, weight_decay = 0.1 : f64} : (tensor<4xf32>, tensor<4xbf16>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
    %3 = oriel.cast %2#0 : (tensor<4xf32>) -> tensor<4xbf16>
    return %1, %0#0, %3, %2#0 : tensor<8xbf16>, tensor<8xf32>, tensor<4xbf16>, tensor<4xf32>
  }
}

// -----

// The rank stores a part of the master, and joins the parameter of what all have rounded: it stays.
// CHECK-LABEL: func.func @update
// CHECK-SAME: tensor<4xf32> {oriel.kind = "optimizer_state"
// CHECK: oriel.cast
module {
  func.func @update(%p: tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"},
                    %m: tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "w"}, %s: tensor<f32> {oriel.kind = "scalar", oriel.ref = "step"})
      -> (tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"}, tensor<4xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"}) {
    %0 = oriel.sgd %m, %g, %s, %s {weight_decay = 0.1 : f64} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> tensor<4xf32>
    %1 = oriel.cast %0 : (tensor<4xf32>) -> tensor<4xbf16>
    %2 = oriel.all_gather %1 {axes = ["a0"], dim = 0 : i64} : (tensor<4xbf16>) -> tensor<8xbf16>
    return %2, %0 : tensor<8xbf16>, tensor<4xf32>
  }
}

// -----

// What reads the new master besides needs it in f32: it stays.
// CHECK-LABEL: func.func @update
// CHECK: oriel.cast
module {
  func.func @update(%p: tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"},
                    %m: tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"},
                    %g: tensor<8xf32> {oriel.kind = "gradient", oriel.ref = "w"}, %s: tensor<f32> {oriel.kind = "scalar", oriel.ref = "step"})
      -> (tensor<8xbf16> {oriel.kind = "parameter", oriel.ref = "w"}, tensor<8xf32> {oriel.kind = "optimizer_state", oriel.ref = "w", oriel.slot = "master"},
          tensor<8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.sgd %m, %g, %s, %s {weight_decay = 0.1 : f64} : (tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>
    %1 = oriel.cast %0 : (tensor<8xf32>) -> tensor<8xbf16>
    %2 = oriel.exp %0 : (tensor<8xf32>) -> tensor<8xf32>
    return %1, %0, %2 : tensor<8xbf16>, tensor<8xf32>, tensor<8xf32>
  }
}
