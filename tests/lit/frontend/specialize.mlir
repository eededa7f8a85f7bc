// RUN: oriel-opt %s --split-input-file --oriel-specialize | FileCheck %s

// What follows from constants folds; what is not used goes, parameters included; inputs stay.
// CHECK-LABEL: module @folds
// CHECK-NEXT: oriel.parameter @p0
// CHECK-NOT: @unused
// CHECK: func.func @main(%[[X:.*]]: tensor<4xf32> {{.*}}"x"{{.*}}, %{{.*}}: tensor<2xi64> {{.*}}"ids"
// CHECK-SAME: %[[W:.*]]: tensor<4xf32> {{.*}}"p0"
// CHECK: %[[C:.*]] = oriel.constant {{.*}}dense<3.000000e+00> : tensor<f32>
// CHECK: %[[M:.*]] = oriel.mul %[[X]], %[[W]]
// CHECK: %[[R:.*]] = oriel.mul %[[M]], %[[C]]
// CHECK-NEXT: return %[[R]]
module @folds {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<4xf32>}
  oriel.parameter @unused {onnx_name = "u", type = tensor<4xf32>}
  func.func @main(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"},
                  %ids: tensor<2xi64> {oriel.kind = "input", oriel.ref = "ids"},
                  %w: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
                  %u: tensor<4xf32> {oriel.kind = "parameter", oriel.ref = "unused"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %three = oriel.add %one, %two : (tensor<f32>, tensor<f32>) -> tensor<f32>
    %dead = oriel.exp %u : (tensor<4xf32>) -> tensor<4xf32>
    %0 = oriel.mul %x, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.mul %0, %three : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

// Equal ops become one.
// CHECK-LABEL: module @merges
// CHECK: %[[E:.*]] = oriel.exp
// CHECK-NEXT: %[[R:.*]] = oriel.mul %[[E]], %[[E]]
// CHECK-NEXT: return %[[R]]
module @merges {
  func.func @main(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
    %2 = oriel.mul %0, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %2 : tensor<4xf32>
  }
}
