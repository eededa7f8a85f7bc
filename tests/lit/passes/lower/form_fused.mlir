// RUN: oriel-opt %s --oriel-form-fused --split-input-file | FileCheck %s

// The gradient of this microbatch, and that of those before.
// CHECK-LABEL: func.func @accumulate
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xbf16>, %[[DY:[a-z0-9]+]]: tensor<4x6xbf16>, %[[DW:[a-z0-9]+]]: tensor<6x8xf32>
// CHECK-NEXT: %[[SUM:.*]] = oriel.linear_weight_grad_add %[[X]], %[[DY]], %[[DW]] {origin = 3 : i64, transpose_weight = true}
// CHECK-NEXT: return %[[SUM]]
module {
  func.func @accumulate(%x: tensor<4x8xbf16>, %dy: tensor<4x6xbf16>, %dw: tensor<6x8xf32>) -> tensor<6x8xf32> {
    %0 = oriel.linear_weight_grad %x, %dy {origin = 3 : i64, transpose_weight = true} : (tensor<4x8xbf16>, tensor<4x6xbf16>) -> tensor<6x8xf32>
    %1 = oriel.add %dw, %0 : (tensor<6x8xf32>, tensor<6x8xf32>) -> tensor<6x8xf32>
    return %1 : tensor<6x8xf32>
  }
}

// -----

// A residual, on either side of the sum. The second one is what the first one makes.
// CHECK-LABEL: func.func @residual
// CHECK-NEXT: %[[FIRST:.*]] = oriel.linear_add %arg0, %arg1, %arg2, %arg0 {oriel.cluster = 0 : i64}
// CHECK-NEXT: %[[SECOND:.*]] = oriel.linear_add %[[FIRST]], %arg1, %[[FIRST]] {oriel.cluster = 1 : i64}
// CHECK-NEXT: return %[[FIRST]], %[[SECOND]]
module {
  func.func @residual(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = oriel.linear %x, %w, %b {oriel.cluster = 0 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = oriel.add %x, %0 {oriel.cluster = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.linear %1, %w {oriel.cluster = 1 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.add %2, %1 {oriel.cluster = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %1, %3 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Of two products, the later one takes the sum: the other one is there before it.
// CHECK-LABEL: func.func @products
// CHECK-NEXT: %[[FIRST:.*]] = oriel.linear %arg0, %arg1
// CHECK-NEXT: %[[SUM:.*]] = oriel.linear_add %arg0, %arg2, %[[FIRST]]
// CHECK-NEXT: return %[[SUM]]
module {
  func.func @products(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %v: tensor<8x8xf32>) -> tensor<4x8xf32> {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.linear %x, %v : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.add %1, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}

// -----

// What stays: a product that others use, one that is added to itself, one whose addend is made
// behind it or is broadcast, and one of another cluster.
// CHECK-LABEL: func.func @stays
// CHECK-NOT: oriel.linear_add
// CHECK: return
module {
  func.func @stays(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>)
      -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.add %x, %0 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.add %2, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %4 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %5 = oriel.exp %x : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %6 = oriel.add %4, %5 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %7 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %8 = oriel.add %7, %b : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %9 = oriel.linear %x, %w {oriel.cluster = 7 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %10 = oriel.add %9, %x {oriel.cluster = 8 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %0, %1, %3, %6, %8, %10 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Rows are cut: the product is a sum over the ranks, and what is added to it is one as well.
// CHECK-LABEL: func.func @cut
// CHECK: oriel.linear_weight_grad_add
// CHECK-SAME: oriel.rule = {added = [2], factors = {{\[\[}}8, "parallel"], [6, "parallel"], [4, "sum"]], linear = {{\[\[}}0, 2], [1, 2]], operands = {{\[\[\[}}2], [0]], {{\[\[}}2], [1]], {{\[\[}}0], [1]]], results = {{\[\[\[}}0], [1]]]}
// CHECK-SAME: oriel.split = {{\[\[\]}}, [], ["a0"]]
module {
  func.func @cut(%x: tensor<2x8xf32>, %dy: tensor<2x6xf32>, %dw: tensor<8x6xf32>) -> tensor<8x6xf32> {
    %0 = oriel.linear_weight_grad %x, %dy {oriel.rule = {factors = [[8, "parallel"], [6, "parallel"], [4, "sum"]], linear = [[0], [1]], operands = [[[2], [0]], [[2], [1]]], results = [[[0], [1]]]}, oriel.split = [[], [], ["a0"]]} : (tensor<2x8xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.add %dw, %0 {oriel.rule = {factors = [[8, "parallel"], [6, "parallel"]], linear = [[0, 1]], operands = [[[0], [1]], [[0], [1]]], results = [[[0], [1]]]}, oriel.split = [[], []]} : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    return %1 : tensor<8x6xf32>
  }
}

// -----

// A norm of bf16: weights and statistics stay f32. Its input is a sum that others use, too.
// CHECK-LABEL: func.func @norm
// CHECK-NEXT: %[[NORMED:.*]], %[[INV:.*]], %[[SUM:.*]] = oriel.fused_rms_norm %arg0, %arg1, %arg2 {epsilon = {{[^}]*}}} : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<4xf32>, tensor<4x8xbf16>)
// CHECK-NEXT: return %[[SUM]], %[[NORMED]], %[[INV]]
module {
  func.func @norm(%x: tensor<4x8xbf16>, %r: tensor<4x8xbf16>, %w: tensor<8xf32>) -> (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xf32>) {
    %0 = oriel.add %x, %r : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
    %1 = oriel.cast %0 : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %2:2 = oriel.rms_norm %1, %w {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    %3 = oriel.cast %2#0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    return %0, %3, %2#1 : tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<4xf32>
  }
}

// -----

// Its derivative, with what the residual brings.
// CHECK-LABEL: func.func @norm_grad
// CHECK-NEXT: %[[DX:.*]], %[[DW:.*]], %[[DB:.*]] = oriel.fused_layer_norm_grad %arg0, %arg1, %arg2, %arg3, %arg3, %arg4 : (tensor<4x8xbf16>, tensor<4x8xbf16>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4x8xbf16>) -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>)
// CHECK-NEXT: return %[[DX]], %[[DW]], %[[DB]]
module {
  func.func @norm_grad(%dy: tensor<4x8xbf16>, %x: tensor<4x8xbf16>, %w: tensor<8xf32>, %s: tensor<4xf32>, %dr: tensor<4x8xbf16>)
      -> (tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>) {
    %0 = oriel.cast %dy : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %1 = oriel.cast %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %2:3 = oriel.layer_norm_grad %0, %1, %w, %s, %s : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<8xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8xf32>)
    %3 = oriel.cast %2#0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %4 = oriel.add %dr, %3 : (tensor<4x8xbf16>, tensor<4x8xbf16>) -> tensor<4x8xbf16>
    return %4, %2#1, %2#2 : tensor<4x8xbf16>, tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// What stays: a norm whose f32 result is wanted, and a sum that something between the two uses.
// CHECK-LABEL: func.func @norm_stays
// CHECK: oriel.cast
// CHECK: oriel.rms_norm
// CHECK: oriel.add
// CHECK: oriel.exp
// CHECK: oriel.rms_norm
module {
  func.func @norm_stays(%x: tensor<4x8xbf16>, %y: tensor<4x8xf32>, %w: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xbf16>, tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = oriel.cast %x : (tensor<4x8xbf16>) -> tensor<4x8xf32>
    %1:2 = oriel.rms_norm %0, %w {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    %2 = oriel.cast %1#0 : (tensor<4x8xf32>) -> tensor<4x8xbf16>
    %3 = oriel.add %y, %y : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %4 = oriel.exp %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %5:2 = oriel.rms_norm %3, %w {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    return %1#0, %2, %4, %5#0 : tensor<4x8xf32>, tensor<4x8xbf16>, tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Rows are cut: the sum is cut as the input is.
// CHECK-LABEL: func.func @cut_norm
// CHECK: oriel.fused_rms_norm
// CHECK-SAME: oriel.rule = {factors = {{\[\[}}8, "parallel"]], linear = [], operands = {{\[\[\[}}0], []], {{\[\[}}0], []], []], results = {{\[\[\[}}0], []], {{\[\[}}0]], {{\[\[}}0], []]]}
module {
  func.func @cut_norm(%x: tensor<4x8xf32>, %r: tensor<4x8xf32>, %w: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = oriel.add %x, %r {oriel.rule = {factors = [[8, "parallel"], [8, "parallel"]], linear = [[0, 1]], operands = [[[0], [1]], [[0], [1]]], results = [[[0], [1]]]}, oriel.split = [["a0"], []]} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %1:2 = oriel.rms_norm %0, %w {epsilon = 1.0e-6 : f64, oriel.rule = {factors = [[8, "parallel"]], linear = [], operands = [[[0], []], []], results = [[[0], []], [[0]]]}, oriel.split = [["a0"]]} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    return %0, %1#0 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// What every sample reads alike, on ranks with a sample each: its pieces are alike by chance.
// CHECK-LABEL: func.func @repeated
// CHECK: oriel.add
// CHECK: oriel.rms_norm
module {
  func.func @repeated(%position: tensor<1x8xf32>, %x: tensor<1x8xf32>, %w: tensor<8xf32>) -> (tensor<1x8xf32>, tensor<1x8xf32>) {
    %0 = oriel.add %position, %x {oriel.rule = {factors = [[2, "parallel"], [8, "parallel"]], linear = [[0, 1]], operands = [[[], [1]], [[0], [1]]], results = [[[0], [1]]]}} : (tensor<1x8xf32>, tensor<1x8xf32>) -> tensor<1x8xf32>
    %result, %inv_rms = oriel.rms_norm %0, %w {epsilon = 1.0e-6 : f64, oriel.rule = {factors = [[2, "parallel"]], linear = [], operands = [[[0], []], [[]]], results = [[[0], []], [[0]]]}} : (tensor<1x8xf32>, tensor<8xf32>) -> (tensor<1x8xf32>, tensor<1xf32>)
    return %result, %0 : tensor<1x8xf32>, tensor<1x8xf32>
  }
}
