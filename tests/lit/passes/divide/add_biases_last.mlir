// RUN: oriel-opt %s --oriel-add-biases-last=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s
// RUN: oriel-opt %s --oriel-add-biases-last=strategy=%S/Inputs/dp2.yaml --split-input-file | FileCheck %s --check-prefix=WHOLE

// Two layers with adapters (Hu et al. 2021): the ranks split the first one by columns, whose bias is
// with it as before, and the second one by rows.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[B0:[a-z0-9]+]]: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "b0"}
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w1"}, %[[B1:[a-z0-9]+]]: tensor<8xf32>
// CHECK: oriel.linear %{{.*}}, %{{.*}}, %[[B0]]
// CHECK: %[[P:.*]] = oriel.linear %[[H:.*]], %[[W1]] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = oriel.mul
// CHECK: %[[SUM:.*]] = oriel.add %[[P]], %[[S]]
// CHECK: %[[Y:.*]] = oriel.add %[[SUM]], %[[B1]]
// CHECK: return %[[Y]]
// WHOLE-LABEL: func.func @main
// WHOLE-SAME: %[[B1:[a-z0-9]+]]: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b1"}
// WHOLE: oriel.linear %{{.*}}, %{{.*}}, %[[B1]]
module {
  oriel.parameter @w0 {onnx_name = "w0", type = tensor<8x16xf32>}
  oriel.parameter @b0 {onnx_name = "b0", type = tensor<16xf32>}
  oriel.parameter @w1 {onnx_name = "w1", type = tensor<16x8xf32>}
  oriel.parameter @b1 {onnx_name = "b1", type = tensor<8xf32>}
  oriel.parameter @d0 {onnx_name = "0.lora_A", type = tensor<8x2xf32>}
  oriel.parameter @u0 {onnx_name = "0.lora_B", type = tensor<2x16xf32>}
  oriel.parameter @d1 {onnx_name = "1.lora_A", type = tensor<16x2xf32>}
  oriel.parameter @u1 {onnx_name = "1.lora_B", type = tensor<2x8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w0: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "w0"},
      %b0: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "b0"},
      %w1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w1"},
      %b1: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b1"},
      %d0: tensor<8x2xf32> {oriel.kind = "parameter", oriel.ref = "d0"},
      %u0: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "u0"},
      %d1: tensor<16x2xf32> {oriel.kind = "parameter", oriel.ref = "d1"},
      %u1: tensor<2x8xf32> {oriel.kind = "parameter", oriel.ref = "u1"}) -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.linear %x, %w0, %b0 : (tensor<4x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<4x16xf32>
    %1 = oriel.linear %x, %d0 : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %2 = oriel.linear %1, %u0 : (tensor<4x2xf32>, tensor<2x16xf32>) -> tensor<4x16xf32>
    %3 = oriel.add %0, %2 : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
    %4 = oriel.relu %3 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %5 = oriel.linear %4, %w1, %b1 : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %6 = oriel.linear %4, %d1 : (tensor<4x16xf32>, tensor<16x2xf32>) -> tensor<4x2xf32>
    %7 = oriel.linear %6, %u1 : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    %8 = oriel.mul %7, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %9 = oriel.add %5, %8 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %9 : tensor<4x8xf32>
  }
}

// -----

// Two layers by rows of which the sum is taken, each with a bias. What is added to that is no
// product.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w1"}, %[[B1:[a-z0-9]+]]: tensor<8xf32> {{.*}}, %[[W2:[a-z0-9]+]]: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w2"}, %[[B2:[a-z0-9]+]]: tensor<8xf32>
// CHECK-DAG: %[[P:.*]] = oriel.linear %{{.*}}, %[[W1]] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
// CHECK-DAG: %[[Q:.*]] = oriel.linear %{{.*}}, %[[W2]] : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = oriel.add %[[P]], %[[Q]]
// CHECK: %[[FIRST:.*]] = oriel.add %[[SUM]], %[[B2]]
// CHECK: %[[BOTH:.*]] = oriel.add %[[FIRST]], %[[B1]]
// CHECK: oriel.add %[[BOTH]]
module {
  oriel.parameter @w0 {onnx_name = "w0", type = tensor<8x16xf32>}
  oriel.parameter @w1 {onnx_name = "w1", type = tensor<16x8xf32>}
  oriel.parameter @b1 {onnx_name = "b1", type = tensor<8xf32>}
  oriel.parameter @w2 {onnx_name = "w2", type = tensor<16x8xf32>}
  oriel.parameter @b2 {onnx_name = "b2", type = tensor<8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w0: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "w0"},
      %w1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w1"},
      %b1: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b1"},
      %w2: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w2"},
      %b2: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b2"}) -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.relu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.linear %1, %w1, %b1 : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %3 = oriel.linear %1, %w2, %b2 : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %4 = oriel.add %2, %3 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %5 = oriel.add %4, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %5 : tensor<4x8xf32>
  }
}

// -----

// What is added to the layer is no product: its bias stays in the layer.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w1"}, %[[B1:[a-z0-9]+]]: tensor<8xf32>
// CHECK: oriel.linear %{{.*}}, %[[W1]], %[[B1]]
module {
  oriel.parameter @w0 {onnx_name = "w0", type = tensor<8x16xf32>}
  oriel.parameter @w1 {onnx_name = "w1", type = tensor<16x8xf32>}
  oriel.parameter @b1 {onnx_name = "b1", type = tensor<8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w0: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "w0"},
      %w1: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w1"},
      %b1: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b1"}) -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w0 : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.relu %0 : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.linear %1, %w1, %b1 : (tensor<4x16xf32>, tensor<16x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %3 = oriel.add %2, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %3 : tensor<4x8xf32>
  }
}
