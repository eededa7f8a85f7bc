// RUN: oriel-opt %s --oriel-reduce-gradients --split-input-file --verify-diagnostics | FileCheck %s

// One all-reduce carries the gradients and the accumulators; what follows sees the sums.
// CHECK-LABEL: func.func @update
// CHECK-SAME: %[[P:[a-z0-9]*]]: tensor<4xf32>
// CHECK-SAME: %[[G:[a-z0-9]*]]: tensor<4xf32>
// CHECK-SAME: %[[N:[a-z0-9]*]]: tensor<f32>
// CHECK-NEXT: %[[R:.*]]:2 = oriel.all_reduce %[[G]], %[[N]] {axes = ["a0"], reduction = "sum"}
// CHECK: oriel.div %[[R]]#0, %[[R]]#1
module attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @update(%p: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                    %g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"},
                    %n: tensor<f32> {oriel.kind = "accumulator", oriel.ref = "token_count"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    %0 = oriel.div %g, %n : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = oriel.sub %p, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

// One rank needs no collective.
// CHECK-LABEL: func.func @update
// CHECK-NOT: oriel.all_reduce
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @update(%g: tensor<4xf32> {oriel.kind = "gradient", oriel.ref = "p0"})
      -> (tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"}) {
    return %g : tensor<4xf32>
  }
}

// -----

// expected-error@+1 {{has no segment @update: run the train phase first}}
module attributes {oriel.grid = {a0 = 4 : i64}, oriel.mesh = {dp = ["a0"]}} {
}

// -----

// expected-error@+1 {{has no device grid: run strategize first}}
module {
}
