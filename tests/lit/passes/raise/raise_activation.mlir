// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-activation))" --split-input-file | FileCheck %s

// CHECK-LABEL: func.func @swiglu
// CHECK-SAME: (%[[G:.*]]: tensor<4xf32>, %[[U:.*]]: tensor<4xf32>)
// CHECK-NEXT: %[[Y:.*]] = oriel.gated_activation %[[G]], %[[U]] {kind = "silu"}
// CHECK-NEXT: return %[[Y]]
func.func @swiglu(%g: tensor<4xf32>, %u: tensor<4xf32>) -> tensor<4xf32> {
  %0 = oriel.sigmoid %g : (tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.mul %g, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.mul %1, %u : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// CHECK-LABEL: func.func @gelu_quick
// CHECK: oriel.activation %{{.*}} {kind = "gelu_quick"}
// CHECK-NEXT: return
func.func @gelu_quick(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c = oriel.constant {value = dense<1.702> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.sigmoid %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.mul %x, %1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

// 0.5 outside: (x * (1 + erf(x / √2))) * 0.5.
// CHECK-LABEL: func.func @gelu_erf
// CHECK: oriel.activation %{{.*}} {kind = "gelu"}
// CHECK-NEXT: return
func.func @gelu_erf(%x: tensor<4xf32>) -> tensor<4xf32> {
  %r = oriel.constant {value = dense<1.41421354> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.div %x, %r : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.erf %0 : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.add %1, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = oriel.mul %x, %2 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = oriel.mul %3, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %4 : tensor<4xf32>
}

// -----

// 0.5 on x: (0.5 x) (1 + tanh(√(2/π) (x + 0.044715 x³))).
// CHECK-LABEL: func.func @gelu_tanh
// CHECK: oriel.activation %{{.*}} {kind = "gelu_tanh"}
// CHECK-NEXT: return
func.func @gelu_tanh(%x: tensor<4xf32>) -> tensor<4xf32> {
  %c0 = oriel.constant {value = dense<0.797884583> : tensor<f32>} : () -> tensor<f32>
  %c1 = oriel.constant {value = dense<4.471500e-02> : tensor<f32>} : () -> tensor<f32>
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

// A sigmoid gate of another value is left as it is.
// CHECK-LABEL: func.func @other_gate
// CHECK: oriel.sigmoid
// CHECK: oriel.mul
func.func @other_gate(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = oriel.sigmoid %y : (tensor<4xf32>) -> tensor<4xf32>
  %1 = oriel.mul %x, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// x/2 (1 + tanh(√(2/π) x (1 + 0.044715 x²))), the factors on x.
// CHECK-LABEL: func.func @gelu_tanh_factored
// CHECK: oriel.activation %{{.*}} {kind = "gelu_tanh"}
// CHECK-NEXT: return
func.func @gelu_tanh_factored(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %r = oriel.constant {value = dense<0.79788456> : tensor<f32>} : () -> tensor<f32>
  %c = oriel.constant {value = dense<0.044715> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.mul %x, %r : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = oriel.mul %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = oriel.mul %2, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = oriel.add %3, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = oriel.mul %1, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = oriel.tanh %5 : (tensor<4xf32>) -> tensor<4xf32>
  %7 = oriel.add %6, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %8 = oriel.mul %0, %7 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %8 : tensor<4xf32>
}

// -----

// 0.05 is not 0.044715.
// CHECK-LABEL: func.func @gelu_tanh_other_factor
// CHECK-NOT: oriel.activation
// CHECK: return
func.func @gelu_tanh_other_factor(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %r = oriel.constant {value = dense<0.79788456> : tensor<f32>} : () -> tensor<f32>
  %c = oriel.constant {value = dense<0.05> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.mul %x, %r : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %2 = oriel.mul %x, %c : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = oriel.mul %2, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %4 = oriel.add %3, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %5 = oriel.mul %1, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %6 = oriel.tanh %5 : (tensor<4xf32>) -> tensor<4xf32>
  %7 = oriel.add %6, %one : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %8 = oriel.mul %0, %7 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %8 : tensor<4xf32>
}

// -----

// With the complement of erf, as Keras writes it.
// CHECK-LABEL: func.func @gelu_erfc
// CHECK-SAME: (%[[X:.*]]: tensor<4xf32>)
// CHECK: oriel.activation %[[X]] {kind = "gelu"}
func.func @gelu_erfc(%x: tensor<4xf32>) -> tensor<4xf32> {
  %half = oriel.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %root = oriel.constant {value = dense<0.707106769> : tensor<f32>} : () -> tensor<f32>
  %one = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.mul %x, %half : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = oriel.neg %x : (tensor<4xf32>) -> tensor<4xf32>
  %2 = oriel.mul %1, %root : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %3 = oriel.erf %2 : (tensor<4xf32>) -> tensor<4xf32>
  %4 = oriel.sub %one, %3 : (tensor<f32>, tensor<4xf32>) -> tensor<4xf32>
  %5 = oriel.mul %0, %4 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %5 : tensor<4xf32>
}
