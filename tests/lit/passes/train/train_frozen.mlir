// RUN: oriel-opt %s --oriel-train=recipe=%S/Inputs/sgd.yaml --oriel-verify-train --split-input-file --verify-diagnostics | FileCheck %s

// A trainable parameter that the loss does not depend on is frozen; one of integers is never
// trained, nor spoken of. One that the output does not depend on is left out.
// CHECK: oriel.parameter @p0 {onnx_name = "w", trainable = true
// CHECK: oriel.parameter @p1 {onnx_name = "stopped", type
// CHECK-NOT: @p2
// CHECK: oriel.parameter @p3 {onnx_name = "table", type
// CHECK-LABEL: func.func @forward(
// CHECK-SAME: oriel.ref = "p1"
// CHECK-NOT: "p2"
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: "p1"
// CHECK-LABEL: func.func @update(
// CHECK-NOT: "p1"
// CHECK-LABEL: func.func @eval(
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x6xf32>}
  // expected-warning @below {{the trainable parameter 'stopped' does not reach the loss, or only by what has the derivative 0; it is frozen}}
  oriel.parameter @p1 {onnx_name = "stopped", type = tensor<6xf32>}
  oriel.parameter @p2 {onnx_name = "unused", type = tensor<6xf32>}
  oriel.parameter @p3 {onnx_name = "table", type = tensor<8xi64>}
  // expected-warning @below {{the output 'logits' does not depend on the parameter 'unused': left out of the plan and its checkpoints}}
  func.func @main(%w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %s: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %u: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %t: tensor<8xi64> {oriel.kind = "parameter", oriel.ref = "p3"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.gather %w, %t {dim = 0 : i64} : (tensor<6x6xf32>, tensor<8xi64>) -> tensor<8x6xf32>
    %1 = oriel.cast %s : (tensor<6xf32>) -> tensor<6xi64>
    %2 = oriel.cast %1 : (tensor<6xi64>) -> tensor<6xf32>
    %3 = oriel.add %0, %2 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    return %3 : tensor<8x6xf32>
  }
}

// -----

// The path from a frozen parameter is pruned in the middle of the graph too: the branch that
// only a frozen parameter feeds gets no backward, though it reaches the loss.
// CHECK-LABEL: func.func @backward(
// CHECK-NOT: oriel.activation_grad
// CHECK-LABEL: func.func @update(
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x6xf32>}
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.activation %x {kind = "silu"} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %2 = oriel.mul %0, %1 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// Of many, some are named.
module {
  oriel.parameter @p0 {onnx_name = "w", type = tensor<6x6xf32>}
  // expected-warning @below {{the trainable parameters 'first', 'second', 'third' and 1 more do not reach the loss, or only by what has the derivative 0; they are frozen}}
  oriel.parameter @p1 {onnx_name = "first", type = tensor<6xf32>}
  oriel.parameter @p2 {onnx_name = "second", type = tensor<6xf32>}
  oriel.parameter @p3 {onnx_name = "third", type = tensor<6xf32>}
  oriel.parameter @p4 {onnx_name = "fourth", type = tensor<6xf32>}
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<6x6xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %s1: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %s2: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
      %s3: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p3"},
      %s4: tensor<6xf32> {oriel.kind = "parameter", oriel.ref = "p4"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.add %s1, %s2 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %1 = oriel.add %s3, %s4 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %2 = oriel.add %0, %1 : (tensor<6xf32>, tensor<6xf32>) -> tensor<6xf32>
    %3 = oriel.cast %2 : (tensor<6xf32>) -> tensor<6xi64>
    %4 = oriel.cast %3 : (tensor<6xi64>) -> tensor<6xf32>
    %5 = oriel.linear %x, %w : (tensor<8x6xf32>, tensor<6x6xf32>) -> tensor<8x6xf32>
    %6 = oriel.add %5, %4 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    return %6 : tensor<8x6xf32>
  }
}
