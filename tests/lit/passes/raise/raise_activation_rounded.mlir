// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-activation))" --split-input-file | FileCheck %s

// With the factors as bf16 has them, 0.0446777 and 0.796875.
// CHECK-LABEL: func.func @gelu_tanh_bf16
// CHECK: oriel.activation %{{.*}} {kind = "gelu_tanh"}
// CHECK-NEXT: return
func.func @gelu_tanh_bf16(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = oriel.constant {value = dense<0.796875> : tensor<f32>} : () -> tensor<f32>
  %c1 = oriel.constant {value = dense<0.0446777344> : tensor<f32>} : () -> tensor<f32>
  %c3 = oriel.constant {value = dense<3.0> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.pow %x, %c3 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.mul %0, %c1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = oriel.add %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %3 = oriel.mul %2, %c0 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %4 = oriel.tanh %3 : (tensor<4xf32>) -> tensor<4xf32>
  %5 = oriel.add %4, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %6 = oriel.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %7 = oriel.mul %6, %5 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %7 : tensor<4xf32>
}

// -----

// x/1.4140625, which is √2 in f16.
// CHECK-LABEL: func.func @gelu_f16
// CHECK: oriel.activation %{{.*}} {kind = "gelu"}
// CHECK-NEXT: return
func.func @gelu_f16(%x: tensor<4xf32>) -> tensor<4xf32> {
  %root = oriel.constant {value = dense<1.4140625> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.div %x, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = oriel.mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = oriel.mul %3, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}
