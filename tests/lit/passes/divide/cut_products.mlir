// RUN: oriel-opt %s --oriel-cut-products=strategy=%S/Inputs/tp4.yaml --split-input-file | FileCheck %s

// Query, key and value of a linear layer, with fewer key heads; the keys are used twice.

// CHECK: oriel.parameter @p0_0 {onnx_name = "qkv.weight", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 16>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p0_1 {onnx_name = "qkv.weight", oriel.start = array<i64: 0, 8>, oriel.whole = array<i64: 8, 16>, type = tensor<8x4xf32>}
// CHECK: oriel.parameter @p0_2 {onnx_name = "qkv.weight", oriel.start = array<i64: 0, 12>, oriel.whole = array<i64: 8, 16>, type = tensor<8x4xf32>}
// CHECK: oriel.parameter @p1_3 {onnx_name = "qkv.bias", oriel.start = array<i64: 0>, oriel.whole = array<i64: 16>, type = tensor<8xf32>}
// CHECK: oriel.parameter @p1_4 {{.*}}, type = tensor<4xf32>}
// CHECK: oriel.parameter @p1_5 {onnx_name = "qkv.bias", oriel.start = array<i64: 12>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x3x8xf32> {oriel.kind = "input", oriel.ref = "x"}
// CHECK-SAME: %[[WQ:[a-z0-9]+]]: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "p0_0"}
// CHECK-SAME: %[[WK:[a-z0-9]+]]: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p0_1"}
// CHECK-SAME: %[[WV:[a-z0-9]+]]: tensor<8x4xf32> {oriel.kind = "parameter", oriel.ref = "p0_2"}
// CHECK-SAME: %[[BQ:[a-z0-9]+]]: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "p1_3"}
// CHECK-SAME: %[[BK:[a-z0-9]+]]: tensor<4xf32>
// CHECK-SAME: %[[BV:[a-z0-9]+]]: tensor<4xf32>
// CHECK-DAG: %[[Q:.*]] = oriel.linear %[[X]], %[[WQ]], %[[BQ]] : {{.*}} -> tensor<2x3x8xf32>
// CHECK-DAG: %[[K:.*]] = oriel.linear %[[X]], %[[WK]], %[[BK]] : {{.*}} -> tensor<2x3x4xf32>
// CHECK-DAG: %[[V:.*]] = oriel.linear %[[X]], %[[WV]], %[[BV]] : {{.*}} -> tensor<2x3x4xf32>
// CHECK-DAG: %[[FLAT:.*]] = oriel.reshape %[[K]] : (tensor<2x3x4xf32>) -> tensor<6x4xf32>
// CHECK-NOT: slice
// CHECK: %[[Y:.*]] = oriel.concat %[[V]], %[[K]], %[[Q]]
// CHECK: return %[[Y]], %[[FLAT]]
oriel.parameter @p0 {onnx_name = "qkv.weight", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "qkv.bias", type = tensor<16xf32>}
func.func @main(
    %x: tensor<2x3x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %b: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
    -> (tensor<2x3x16xf32> {oriel.kind = "output", oriel.ref = "logits"},
        tensor<6x4xf32> {oriel.kind = "output", oriel.ref = "flat"}) {
  %0 = oriel.linear %x, %w, %b : (tensor<2x3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<2x3x16xf32>
  %q = oriel.slice %0 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 3, 8>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x16xf32>) -> tensor<2x3x8xf32>
  %k = oriel.slice %0 {starts = array<i64: 0, 0, 8>, limits = array<i64: 2, 3, 12>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x16xf32>) -> tensor<2x3x4xf32>
  %v = oriel.slice %0 {starts = array<i64: 0, 0, 12>, limits = array<i64: 2, 3, 16>, strides = array<i64: 1, 1, 1>} : (tensor<2x3x16xf32>) -> tensor<2x3x4xf32>
  %rows = oriel.reshape %0 : (tensor<2x3x16xf32>) -> tensor<6x16xf32>
  %flat = oriel.slice %rows {starts = array<i64: 0, 8>, limits = array<i64: 6, 12>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x4xf32>
  %y = oriel.concat %v, %k, %q {dim = 2 : i64} : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<2x3x8xf32>) -> tensor<2x3x16xf32>
  return %y, %flat : tensor<2x3x16xf32>, tensor<6x4xf32>
}

// -----

// The parts are a dimension of their own, in front.

// CHECK: oriel.parameter @p0_0 {onnx_name = "w", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 24, 8>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p0_1 {onnx_name = "w", oriel.start = array<i64: 8, 0>, oriel.whole = array<i64: 24, 8>, type = tensor<16x8xf32>}
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6x8xf32> {
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<8x8xf32> {
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x8xf32> {
// CHECK: %[[FIRST:.*]] = oriel.linear %[[X]], %[[W0]] {transpose_weight = true}
// CHECK: %[[SECOND:.*]] = oriel.linear %[[X]], %[[W1]] {transpose_weight = true}
// CHECK: %[[R0:.*]] = oriel.reshape %[[FIRST]] : (tensor<6x8xf32>) -> tensor<6x1x2x4xf32>
// CHECK: %[[T0:.*]] = oriel.transpose %[[R0]] {permutation = array<i64: 1, 0, 2, 3>} : {{.*}} -> tensor<1x6x2x4xf32>
// CHECK: %[[R1:.*]] = oriel.reshape %[[SECOND]] : (tensor<6x16xf32>) -> tensor<6x2x2x4xf32>
// CHECK: %[[T1:.*]] = oriel.transpose %[[R1]] {permutation = array<i64: 1, 0, 2, 3>} : {{.*}} -> tensor<2x6x2x4xf32>
// CHECK: oriel.concat %[[T1]], %[[T0]]
oriel.parameter @p0 {onnx_name = "w", type = tensor<24x8xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<24x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<3x6x2x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w {transpose_weight = true} : (tensor<6x8xf32>, tensor<24x8xf32>) -> tensor<6x24xf32>
  %1 = oriel.reshape %0 : (tensor<6x24xf32>) -> tensor<6x3x2x4xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 1, 0, 2, 3>} : (tensor<6x3x2x4xf32>) -> tensor<3x6x2x4xf32>
  %q = oriel.slice %2 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 1, 6, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x6x2x4xf32>) -> tensor<1x6x2x4xf32>
  %kv = oriel.slice %2 {starts = array<i64: 1, 0, 0, 0>, limits = array<i64: 3, 6, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<3x6x2x4xf32>) -> tensor<2x6x2x4xf32>
  %y = oriel.concat %kv, %q {dim = 0 : i64} : (tensor<2x6x2x4xf32>, tensor<1x6x2x4xf32>) -> tensor<3x6x2x4xf32>
  return %y : tensor<3x6x2x4xf32>
}

// -----

// A permutation that is not its own inverse, beside dimensions of size 1.

// CHECK: oriel.parameter @p0_0 {onnx_name = "w", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 24, 8>, type = tensor<8x8xf32>}
// CHECK: oriel.parameter @p0_1 {onnx_name = "w", oriel.start = array<i64: 8, 0>
// CHECK: oriel.parameter @p0_2 {onnx_name = "w", oriel.start = array<i64: 16, 0>
// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x5x8xf32> {
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<8x8xf32> {
// CHECK: %[[P:.*]] = oriel.linear %[[X]], %[[W0]] {transpose_weight = true} : {{.*}} -> tensor<1x5x8xf32>
// CHECK: %[[R:.*]] = oriel.reshape %[[P]] : (tensor<1x5x8xf32>) -> tensor<1x5x1x2x4xf32>
// CHECK: %[[T:.*]] = oriel.transpose %[[R]] {permutation = array<i64: 2, 0, 3, 1, 4>} : {{.*}} -> tensor<1x1x2x5x4xf32>
// CHECK: %[[Q:.*]] = oriel.reshape %[[T]] : {{.*}} -> tensor<1x2x5x4xf32>
// CHECK: oriel.add %[[Q]],
oriel.parameter @p0 {onnx_name = "w", type = tensor<24x8xf32>}
func.func @main(
    %x: tensor<1x5x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<24x8xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<1x2x5x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w {transpose_weight = true} : (tensor<1x5x8xf32>, tensor<24x8xf32>) -> tensor<1x5x24xf32>
  %1 = oriel.reshape %0 : (tensor<1x5x24xf32>) -> tensor<1x5x3x2x4xf32>
  %2 = oriel.transpose %1 {permutation = array<i64: 2, 0, 3, 1, 4>} : (tensor<1x5x3x2x4xf32>) -> tensor<3x1x2x5x4xf32>
  %3 = oriel.slice %2 {starts = array<i64: 0, 0, 0, 0, 0>, limits = array<i64: 1, 1, 2, 5, 4>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x1x2x5x4xf32>) -> tensor<1x1x2x5x4xf32>
  %4 = oriel.slice %2 {starts = array<i64: 1, 0, 0, 0, 0>, limits = array<i64: 2, 1, 2, 5, 4>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x1x2x5x4xf32>) -> tensor<1x1x2x5x4xf32>
  %5 = oriel.slice %2 {starts = array<i64: 2, 0, 0, 0, 0>, limits = array<i64: 3, 1, 2, 5, 4>, strides = array<i64: 1, 1, 1, 1, 1>} : (tensor<3x1x2x5x4xf32>) -> tensor<1x1x2x5x4xf32>
  %q = oriel.reshape %3 : (tensor<1x1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %k = oriel.reshape %4 : (tensor<1x1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %v = oriel.reshape %5 : (tensor<1x1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %6 = oriel.add %q, %k : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  %7 = oriel.add %6, %v : (tensor<1x2x5x4xf32>, tensor<1x2x5x4xf32>) -> tensor<1x2x5x4xf32>
  return %7 : tensor<1x2x5x4xf32>
}

// -----

// Keys and values are sliced together first: parts of a part, in the weight of the file.

// CHECK: oriel.parameter @p0_0 {onnx_name = "w", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 16>, type = tensor<8x8xf32>}
// CHECK-NEXT: oriel.parameter @{{.*}} {onnx_name = "w", oriel.start = array<i64: 0, 8>, oriel.whole = array<i64: 8, 16>, type = tensor<8x4xf32>}
// CHECK-NEXT: oriel.parameter @{{.*}} {onnx_name = "w", oriel.start = array<i64: 0, 12>, oriel.whole = array<i64: 8, 16>, type = tensor<8x4xf32>}
// CHECK-NEXT: func.func @main
// CHECK-NOT: slice
// CHECK: return
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
    -> (tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %q = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %kv = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %k = oriel.slice %kv {starts = array<i64: 0, 0>, limits = array<i64: 6, 4>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x4xf32>
  %v = oriel.slice %kv {starts = array<i64: 0, 4>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x8xf32>) -> tensor<6x4xf32>
  %y = oriel.concat %v, %q, %k {dim = 1 : i64} : (tensor<6x4xf32>, tensor<6x8xf32>, tensor<6x4xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// -----

// The slices are of a sum with the product of an adapter, times a number: both products are cut.

// CHECK: @p0_0 {onnx_name = "w", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 16>, type = tensor<8x12xf32>}
// CHECK: @p0_1 {onnx_name = "w", oriel.start = array<i64: 0, 12>, oriel.whole = array<i64: 8, 16>, type = tensor<8x4xf32>}
// CHECK: @p1 {onnx_name = "a", type = tensor<8x2xf32>}
// CHECK: @p2_2 {onnx_name = "b", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 2, 16>, type = tensor<2x12xf32>}
// CHECK: @p2_3 {onnx_name = "b", oriel.start = array<i64: 0, 12>, oriel.whole = array<i64: 2, 16>, type = tensor<2x4xf32>}
// CHECK: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6x8xf32> {
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<8x2xf32> {
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<8x12xf32> {
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<8x4xf32> {
// CHECK-SAME: %[[B0:[a-z0-9]+]]: tensor<2x12xf32> {
// CHECK-SAME: %[[B1:[a-z0-9]+]]: tensor<2x4xf32> {
// CHECK-DAG: %[[TWO:.*]] = oriel.constant
// CHECK-DAG: %[[LOW:.*]] = oriel.linear %[[X]], %[[A]]
// CHECK-DAG: %[[P0:.*]] = oriel.linear %[[X]], %[[W0]]
// CHECK-DAG: %[[P1:.*]] = oriel.linear %[[X]], %[[W1]]
// CHECK-DAG: %[[Q0:.*]] = oriel.linear %[[LOW]], %[[B0]]
// CHECK-DAG: %[[Q1:.*]] = oriel.linear %[[LOW]], %[[B1]]
// CHECK-DAG: %[[T0:.*]] = oriel.mul %[[Q0]], %[[TWO]] : (tensor<6x12xf32>, tensor<f32>) -> tensor<6x12xf32>
// CHECK-DAG: %[[T1:.*]] = oriel.mul %[[Q1]], %[[TWO]] : (tensor<6x4xf32>, tensor<f32>) -> tensor<6x4xf32>
// CHECK-DAG: %[[S0:.*]] = oriel.add %[[P0]], %[[T0]]
// CHECK-DAG: %[[S1:.*]] = oriel.add %[[P1]], %[[T1]]
// CHECK-NOT: slice
// CHECK: oriel.concat %[[S1]], %[[S0]]
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "a", type = tensor<8x2xf32>}
oriel.parameter @p2 {onnx_name = "b", type = tensor<2x16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %a: tensor<8x2xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %b: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
    -> (tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %two = oriel.constant {value = dense<2.0> : tensor<f32>} : () -> tensor<f32>
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.linear %x, %a : (tensor<6x8xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
  %2 = oriel.linear %1, %b : (tensor<6x2xf32>, tensor<2x16xf32>) -> tensor<6x16xf32>
  %3 = oriel.mul %2, %two : (tensor<6x16xf32>, tensor<f32>) -> tensor<6x16xf32>
  %4 = oriel.add %0, %3 : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32>
  %first = oriel.slice %4 {starts = array<i64: 0, 0>, limits = array<i64: 6, 12>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x12xf32>
  %last = oriel.slice %4 {starts = array<i64: 0, 12>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x4xf32>
  %y = oriel.concat %last, %first {dim = 1 : i64} : (tensor<6x4xf32>, tensor<6x12xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// -----

// A bias behind the sum with the adapter's product becomes parts, too.

// CHECK: @p0_0 {{.*}}, type = tensor<8x12xf32>}
// CHECK: @p0_1 {{.*}}, type = tensor<8x4xf32>}
// CHECK: {onnx_name = "bias", oriel.start = array<i64: 0>, oriel.whole = array<i64: 16>, type = tensor<12xf32>}
// CHECK: {onnx_name = "bias", oriel.start = array<i64: 12>, oriel.whole = array<i64: 16>, type = tensor<4xf32>}
// CHECK: func.func @main
// CHECK-NOT: slice
// CHECK: return
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "a", type = tensor<8x2xf32>}
oriel.parameter @p2 {onnx_name = "b", type = tensor<2x16xf32>}
oriel.parameter @p3 {onnx_name = "bias", type = tensor<16xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %a: tensor<8x2xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
    %b: tensor<2x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"},
    %bias: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p3"})
    -> (tensor<6x16xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.linear %x, %a : (tensor<6x8xf32>, tensor<8x2xf32>) -> tensor<6x2xf32>
  %2 = oriel.linear %1, %b : (tensor<6x2xf32>, tensor<2x16xf32>) -> tensor<6x16xf32>
  %3 = oriel.add %0, %2 : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32>
  %4 = oriel.add %3, %bias : (tensor<6x16xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  %first = oriel.slice %4 {starts = array<i64: 0, 0>, limits = array<i64: 6, 12>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x12xf32>
  %last = oriel.slice %4 {starts = array<i64: 0, 12>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x4xf32>
  %y = oriel.concat %last, %first {dim = 1 : i64} : (tensor<6x4xf32>, tensor<6x12xf32>) -> tensor<6x16xf32>
  return %y : tensor<6x16xf32>
}

// -----

// What pointwise ops make of a product, with a number for all columns that is computed and read
// elsewhere, too; that number, in one dimension, is nothing to cut.

// CHECK: @p0_0 {{.*}}, type = tensor<8x8xf32>}
// CHECK: @p0_1 {{.*}}, type = tensor<8x8xf32>}
// CHECK: func.func @main
// CHECK: %[[SCALE:.*]] = oriel.exp
// CHECK-DAG: %[[P0:.*]] = oriel.linear {{.*}} -> tensor<6x8xf32>
// CHECK-DAG: %[[P1:.*]] = oriel.linear {{.*}} -> tensor<6x8xf32>
// CHECK-DAG: %[[M0:.*]] = oriel.mul %[[P0]], %[[SCALE]]
// CHECK-DAG: %[[M1:.*]] = oriel.mul %[[P1]], %[[SCALE]]
// CHECK-DAG: %[[R0:.*]] = oriel.relu %[[M0]]
// CHECK-DAG: %[[R1:.*]] = oriel.relu %[[M1]]
// CHECK-NOT: slice
// CHECK: %[[ONE:.*]] = oriel.reshape %[[SCALE]] : (tensor<f32>) -> tensor<1xf32>
// CHECK: %[[BOTH:.*]] = oriel.add %[[R0]], %[[R1]]
// CHECK: oriel.mul %[[BOTH]], %[[ONE]]
oriel.parameter @p0 {onnx_name = "w", type = tensor<8x16xf32>}
oriel.parameter @p1 {onnx_name = "scale", type = tensor<f32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
    %s: tensor<f32> {oriel.kind = "parameter", oriel.ref = "p1"})
    -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %scale = oriel.exp %s : (tensor<f32>) -> tensor<f32>
  %0 = oriel.linear %x, %w : (tensor<6x8xf32>, tensor<8x16xf32>) -> tensor<6x16xf32>
  %1 = oriel.mul %0, %scale : (tensor<6x16xf32>, tensor<f32>) -> tensor<6x16xf32>
  %2 = oriel.relu %1 : (tensor<6x16xf32>) -> tensor<6x16xf32>
  %a = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %b = oriel.slice %2 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %one = oriel.reshape %scale : (tensor<f32>) -> tensor<1xf32>
  %both = oriel.add %a, %b : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  %y = oriel.mul %both, %one : (tensor<6x8xf32>, tensor<1xf32>) -> tensor<6x8xf32>
  return %y : tensor<6x8xf32>
}

// -----

// A bias that the model joins of a query's, of zeros and of a value's (BEiT, Bao et al. 2021): each
// part has its own.
// CHECK-LABEL: oriel.parameter @bq {onnx_name = "q_bias"
// CHECK: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<6x8xf32> {
// CHECK-SAME: %[[BQ:[a-z0-9]+]]: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "bq"}
// CHECK-SAME: %[[BV:[a-z0-9]+]]: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "bv"}
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w_0"}
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w_1"}
// CHECK: %[[ZEROS:.*]] = oriel.constant
// CHECK-DAG: %[[BKV:.*]] = oriel.concat %[[ZEROS]], %[[BV]] {dim = 0 : i64}
// CHECK-DAG: oriel.linear %[[X]], %[[W0]], %[[BQ]]
// CHECK-DAG: oriel.linear %[[X]], %[[W1]], %[[BKV]]
// CHECK-NOT: oriel.slice
oriel.parameter @w {onnx_name = "w", type = tensor<24x8xf32>}
oriel.parameter @bq {onnx_name = "q_bias", type = tensor<8xf32>}
oriel.parameter @bv {onnx_name = "v_bias", type = tensor<8xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<24x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
    %bq: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "bq"},
    %bv: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "bv"}) -> (tensor<6x24xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %zeros = oriel.constant {value = dense<0.0> : tensor<8xf32>} : () -> tensor<8xf32>
  %b = oriel.concat %bq, %zeros, %bv {dim = 0 : i64} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> tensor<24xf32>
  %0 = oriel.linear %x, %w, %b {transpose_weight = true} : (tensor<6x8xf32>, tensor<24x8xf32>, tensor<24xf32>) -> tensor<6x24xf32>
  %1 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x24xf32>) -> tensor<6x8xf32>
  %2 = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 24>, strides = array<i64: 1, 1>} : (tensor<6x24xf32>) -> tensor<6x16xf32>
  %3 = oriel.concat %2, %1 {dim = 1 : i64} : (tensor<6x16xf32>, tensor<6x8xf32>) -> tensor<6x24xf32>
  return %3 : tensor<6x24xf32>
}

// -----

// One of the joined values lies in two parts: the weight stays whole.
// CHECK-LABEL: oriel.parameter @b {onnx_name = "b", type = tensor<12xf32>}
// CHECK: %[[B:.*]] = oriel.concat
// CHECK: oriel.linear %{{.*}}, %{{.*}}, %[[B]] {transpose_weight = true} : (tensor<6x8xf32>, tensor<16x8xf32>, tensor<16xf32>)
oriel.parameter @w {onnx_name = "w", type = tensor<16x8xf32>}
oriel.parameter @b {onnx_name = "b", type = tensor<12xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
    %b: tensor<12xf32> {oriel.kind = "parameter", oriel.ref = "b"}) -> (tensor<6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %zeros = oriel.constant {value = dense<0.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %joined = oriel.concat %b, %zeros {dim = 0 : i64} : (tensor<12xf32>, tensor<4xf32>) -> tensor<16xf32>
  %0 = oriel.linear %x, %w, %joined {transpose_weight = true} : (tensor<6x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<6x16xf32>
  %1 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 6, 8>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %2 = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 6, 16>, strides = array<i64: 1, 1>} : (tensor<6x16xf32>) -> tensor<6x8xf32>
  %3 = oriel.mul %1, %2 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
  return %3 : tensor<6x8xf32>
}

// -----

// An einsum's weight, [3, heads, depth, columns], and its bias are moved before they are multiplied
// with.
// CHECK-LABEL: oriel.parameter @w_0 {onnx_name = "w", oriel.start = array<i64: 0, 0, 0, 0>, oriel.whole = array<i64: 3, 2, 8, 4>, type = tensor<1x2x8x4xf32>}
// CHECK: oriel.parameter @b_{{[0-9]}} {onnx_name = "b", oriel.start = array<i64: 0, 0, 0>, oriel.whole = array<i64: 3, 2, 4>, type = tensor<1x2x4xf32>}
// CHECK-COUNT-3: oriel.linear %{{.*}}, %{{.*}}, %{{.*}} : (tensor<6x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<6x8xf32>
// CHECK-NOT: oriel.slice
oriel.parameter @w {onnx_name = "w", type = tensor<3x2x8x4xf32>}
oriel.parameter @b {onnx_name = "b", type = tensor<3x2x4xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<3x2x8x4xf32> {oriel.kind = "parameter", oriel.ref = "w"},
    %b: tensor<3x2x4xf32> {oriel.kind = "parameter", oriel.ref = "b"}) -> (tensor<6x1x2x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %t = oriel.transpose %w {permutation = array<i64: 2, 0, 1, 3>} : (tensor<3x2x8x4xf32>) -> tensor<8x3x2x4xf32>
  %m = oriel.reshape %t : (tensor<8x3x2x4xf32>) -> tensor<8x24xf32>
  %n = oriel.reshape %b : (tensor<3x2x4xf32>) -> tensor<24xf32>
  %0 = oriel.linear %x, %m, %n : (tensor<6x8xf32>, tensor<8x24xf32>, tensor<24xf32>) -> tensor<6x24xf32>
  %1 = oriel.reshape %0 : (tensor<6x24xf32>) -> tensor<6x3x2x4xf32>
  %2 = oriel.slice %1 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 6, 1, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x3x2x4xf32>) -> tensor<6x1x2x4xf32>
  %3 = oriel.slice %1 {starts = array<i64: 0, 1, 0, 0>, limits = array<i64: 6, 2, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x3x2x4xf32>) -> tensor<6x1x2x4xf32>
  %4 = oriel.slice %1 {starts = array<i64: 0, 2, 0, 0>, limits = array<i64: 6, 3, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x3x2x4xf32>) -> tensor<6x1x2x4xf32>
  %5 = oriel.mul %2, %3 : (tensor<6x1x2x4xf32>, tensor<6x1x2x4xf32>) -> tensor<6x1x2x4xf32>
  %6 = oriel.mul %5, %4 : (tensor<6x1x2x4xf32>, tensor<6x1x2x4xf32>) -> tensor<6x1x2x4xf32>
  return %6 : tensor<6x1x2x4xf32>
}

// -----

// Columns that no dimension of the parameter tells apart: heads are outermost there.
// CHECK-LABEL: oriel.parameter @w {onnx_name = "w", type = tensor<2x3x8x4xf32>}
// CHECK: oriel.linear %{{.*}}, %{{.*}} : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32>
oriel.parameter @w {onnx_name = "w", type = tensor<2x3x8x4xf32>}
func.func @main(
    %x: tensor<6x8xf32> {oriel.kind = "input", oriel.ref = "x"},
    %w: tensor<2x3x8x4xf32> {oriel.kind = "parameter", oriel.ref = "w"}) -> (tensor<6x1x2x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
  %t = oriel.transpose %w {permutation = array<i64: 2, 0, 1, 3>} : (tensor<2x3x8x4xf32>) -> tensor<8x2x3x4xf32>
  %m = oriel.reshape %t : (tensor<8x2x3x4xf32>) -> tensor<8x24xf32>
  %0 = oriel.linear %x, %m : (tensor<6x8xf32>, tensor<8x24xf32>) -> tensor<6x24xf32>
  %1 = oriel.reshape %0 : (tensor<6x24xf32>) -> tensor<6x3x2x4xf32>
  %2 = oriel.slice %1 {starts = array<i64: 0, 0, 0, 0>, limits = array<i64: 6, 1, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x3x2x4xf32>) -> tensor<6x1x2x4xf32>
  %3 = oriel.slice %1 {starts = array<i64: 0, 1, 0, 0>, limits = array<i64: 6, 2, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x3x2x4xf32>) -> tensor<6x1x2x4xf32>
  %4 = oriel.slice %1 {starts = array<i64: 0, 2, 0, 0>, limits = array<i64: 6, 3, 2, 4>, strides = array<i64: 1, 1, 1, 1>} : (tensor<6x3x2x4xf32>) -> tensor<6x1x2x4xf32>
  %5 = oriel.mul %2, %3 : (tensor<6x1x2x4xf32>, tensor<6x1x2x4xf32>) -> tensor<6x1x2x4xf32>
  %6 = oriel.mul %5, %4 : (tensor<6x1x2x4xf32>, tensor<6x1x2x4xf32>) -> tensor<6x1x2x4xf32>
  return %6 : tensor<6x1x2x4xf32>
}

// -----

// A layer that runs twice: both times by the same parts.
// CHECK-LABEL: oriel.parameter @p0_0 {onnx_name = "twice.w", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 8, 16>, type = tensor<8x8xf32>}
// CHECK-NEXT: oriel.parameter @p0_1 {onnx_name = "twice.w", oriel.start = array<i64: 0, 8>
// CHECK: oriel.parameter @p1_{{[0-9]}} {onnx_name = "twice.b", oriel.start = array<i64: 0>
// CHECK: oriel.parameter @p1_{{[0-9]}} {onnx_name = "twice.b", oriel.start = array<i64: 8>
// CHECK: func.func @main
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<3x8xf32> {
// CHECK-SAME: %[[W0:[a-z0-9]+]]: tensor<8x8xf32> {
// CHECK-SAME: %[[W1:[a-z0-9]+]]: tensor<8x8xf32> {
// CHECK-SAME: %[[B0:[a-z0-9]+]]: tensor<8xf32> {
// CHECK-SAME: %[[B1:[a-z0-9]+]]: tensor<8xf32> {
// CHECK-NOT: slice
// CHECK: %[[Q:.*]] = oriel.linear %[[X]], %[[W0]], %[[B0]]
// CHECK: %[[K:.*]] = oriel.linear %[[X]], %[[W1]], %[[B1]]
// CHECK: %[[NEXT:.*]] = oriel.mul %[[Q]], %[[K]]
// CHECK: oriel.linear %[[NEXT]], %[[W0]], %[[B0]]
// CHECK: oriel.linear %[[NEXT]], %[[W1]], %[[B1]]
module {
  oriel.parameter @p0 {onnx_name = "twice.w", type = tensor<8x16xf32>}
  oriel.parameter @p1 {onnx_name = "twice.b", type = tensor<16xf32>}
  func.func @main(%x: tensor<3x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %b: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<3x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w, %b : (tensor<3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
    %q0 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k0 = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %1 = oriel.mul %q0, %k0 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %2 = oriel.linear %1, %w, %b : (tensor<3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
    %q1 = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k1 = oriel.slice %2 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %3 = oriel.mul %q1, %k1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %3 : tensor<3x8xf32>
  }
}

// -----

// Other slices the second time: it stays whole.
// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "other.w", type = tensor<8x16xf32>}
// CHECK-NEXT: func.func @main
module {
  oriel.parameter @p0 {onnx_name = "other.w", type = tensor<8x16xf32>}
  func.func @main(%x: tensor<3x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p0"})
      -> (tensor<3x4xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<3x8xf32>, tensor<8x16xf32>) -> tensor<3x16xf32>
    %q0 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k0 = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %1 = oriel.mul %q0, %k0 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %2 = oriel.linear %1, %w : (tensor<3x8xf32>, tensor<8x16xf32>) -> tensor<3x16xf32>
    %q1 = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 3, 12>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x12xf32>
    %k1 = oriel.slice %2 {starts = array<i64: 0, 12>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x4xf32>
    %3 = oriel.slice %q1 {starts = array<i64: 0, 0>, limits = array<i64: 3, 4>, strides = array<i64: 1, 1>} : (tensor<3x12xf32>) -> tensor<3x4xf32>
    %4 = oriel.mul %3, %k1 : (tensor<3x4xf32>, tensor<3x4xf32>) -> tensor<3x4xf32>
    return %4 : tensor<3x4xf32>
  }
}

// -----

// A bias that layers share is no weight, wherever it comes.
// CHECK-LABEL: oriel.parameter @p0 {onnx_name = "shared.b", type = tensor<16xf32>}
// CHECK: oriel.parameter @p1 {onnx_name = "first.w", type = tensor<8x16xf32>}
// CHECK: oriel.parameter @p2 {onnx_name = "second.w", type = tensor<8x16xf32>}
module {
  oriel.parameter @p0 {onnx_name = "shared.b", type = tensor<16xf32>}
  oriel.parameter @p1 {onnx_name = "first.w", type = tensor<8x16xf32>}
  oriel.parameter @p2 {onnx_name = "second.w", type = tensor<8x16xf32>}
  func.func @main(%x: tensor<3x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %b: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"},
      %v: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p2"})
      -> (tensor<3x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w, %b : (tensor<3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
    %q0 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k0 = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %1 = oriel.mul %q0, %k0 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %2 = oriel.linear %1, %v, %b : (tensor<3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
    %q1 = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k1 = oriel.slice %2 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %3 = oriel.mul %q1, %k1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %3 : tensor<3x8xf32>
  }
}

// -----

// The bias of a layer that runs twice may come before its weight.
// CHECK-LABEL: oriel.parameter @p0_{{[0-9]}} {onnx_name = "early.b"
// CHECK: oriel.parameter @p0_{{[0-9]}} {onnx_name = "early.b"
// CHECK: oriel.parameter @p1_{{[0-9]}} {onnx_name = "late.w"
// CHECK: oriel.parameter @p1_{{[0-9]}} {onnx_name = "late.w"
module {
  oriel.parameter @p0 {onnx_name = "early.b", type = tensor<16xf32>}
  oriel.parameter @p1 {onnx_name = "late.w", type = tensor<8x16xf32>}
  func.func @main(%x: tensor<3x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %b: tensor<16xf32> {oriel.kind = "parameter", oriel.ref = "p0"},
      %w: tensor<8x16xf32> {oriel.kind = "parameter", oriel.ref = "p1"})
      -> (tensor<3x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w, %b : (tensor<3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
    %q0 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k0 = oriel.slice %0 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %1 = oriel.mul %q0, %k0 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    %2 = oriel.linear %1, %w, %b : (tensor<3x8xf32>, tensor<8x16xf32>, tensor<16xf32>) -> tensor<3x16xf32>
    %q1 = oriel.slice %2 {starts = array<i64: 0, 0>, limits = array<i64: 3, 8>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %k1 = oriel.slice %2 {starts = array<i64: 0, 8>, limits = array<i64: 3, 16>, strides = array<i64: 1, 1>} : (tensor<3x16xf32>) -> tensor<3x8xf32>
    %3 = oriel.mul %q1, %k1 : (tensor<3x8xf32>, tensor<3x8xf32>) -> tensor<3x8xf32>
    return %3 : tensor<3x8xf32>
  }
}
