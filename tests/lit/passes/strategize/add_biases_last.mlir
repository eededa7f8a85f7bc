// RUN: oriel-opt %s --oriel-add-biases-last=strategy=%S/Inputs/tp2.yaml --split-input-file | FileCheck %s
// RUN: oriel-opt %s --oriel-add-biases-last=strategy=%S/Inputs/dp2.yaml --split-input-file | FileCheck %s --check-prefix=WHOLE

// A layer with an adapter (Hu et al. 2021).
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x8xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<8xf32>
// CHECK: %[[P:.*]] = oriel.linear %[[X]], %[[W]] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[S:.*]] = oriel.mul
// CHECK: %[[SUM:.*]] = oriel.add %[[P]], %[[S]]
// CHECK: %[[Y:.*]] = oriel.add %[[SUM]], %[[B]]
// CHECK: return %[[Y]]
// WHOLE-LABEL: func.func @main
// WHOLE-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x8xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<8xf32>
// WHOLE: oriel.linear %[[X]], %[[W]], %[[B]]
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  oriel.parameter @b {onnx_name = "b", type = tensor<8xf32>}
  oriel.parameter @down {onnx_name = "lora_A", type = tensor<8x2xf32>}
  oriel.parameter @up {onnx_name = "lora_B", type = tensor<2x8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %b: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b"},
      %down: tensor<8x2xf32> {oriel.kind = "parameter", oriel.ref = "down"},
      %up: tensor<2x8xf32> {oriel.kind = "parameter", oriel.ref = "up"}) -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.linear %x, %w, %b : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = oriel.linear %x, %down : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
    %2 = oriel.linear %1, %up : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.mul %2, %two : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %4 = oriel.add %0, %3 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %4 : tensor<4x8xf32>
  }
}

// -----

// What is added to the layer is no product: its bias stays in the layer.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x8xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<8xf32>
// CHECK: oriel.linear %[[X]], %[[W]], %[[B]]
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  oriel.parameter @b {onnx_name = "b", type = tensor<8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %b: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b"}) -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w, %b : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = oriel.add %0, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %1 : tensor<4x8xf32>
  }
}

// -----

// Two layers of which the sum is taken, each with a bias.
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x8xf32> {{.*}}, %[[B:[a-z0-9]+]]: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b"}, %[[C:[a-z0-9]+]]: tensor<8xf32>
// CHECK-DAG: %[[P:.*]] = oriel.linear %[[X]], %[[W]] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK-DAG: %[[Q:.*]] = oriel.linear %[[X]], %[[W]] {transpose_weight = true} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: %[[SUM:.*]] = oriel.add %[[P]], %[[Q]]
// CHECK: %[[FIRST:.*]] = oriel.add %[[SUM]], %[[C]]
// CHECK: %[[BOTH:.*]] = oriel.add %[[FIRST]], %[[B]]
// CHECK: return %[[BOTH]]
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  oriel.parameter @b {onnx_name = "b", type = tensor<8xf32>}
  oriel.parameter @c {onnx_name = "c", type = tensor<8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %b: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "b"},
      %c: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "c"}) -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w, %b : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = oriel.linear %x, %w, %c {transpose_weight = true} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %2 = oriel.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}
