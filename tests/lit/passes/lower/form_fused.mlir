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

// The same of experts, whose piece begins at a value.
// CHECK-LABEL: func.func @accumulate_experts
// CHECK: oriel.expert_linear_weight_grad_add %arg0, %arg1, %arg2, %arg3, %arg4 {experts = 9 : i64} : (tensor<4x8xbf16>, tensor<4x2x6xbf16>, tensor<4x2xi64>, tensor<i64>, tensor<3x8x6xf32>) -> tensor<3x8x6xf32>
module {
  func.func @accumulate_experts(%x: tensor<4x8xbf16>, %dy: tensor<4x2x6xbf16>, %c: tensor<4x2xi64>, %first: tensor<i64>, %dw: tensor<3x8x6xf32>) -> tensor<3x8x6xf32> {
    %0 = oriel.expert_linear_weight_grad %x, %dy, %c, %first {experts = 9 : i64} : (tensor<4x8xbf16>, tensor<4x2x6xbf16>, tensor<4x2xi64>, tensor<i64>) -> tensor<3x8x6xf32>
    %1 = oriel.add %dw, %0 : (tensor<3x8x6xf32>, tensor<3x8x6xf32>) -> tensor<3x8x6xf32>
    return %1 : tensor<3x8x6xf32>
  }
}

// -----

// Gradients narrower than f32 are not summed up so.
// CHECK-LABEL: func.func @narrow_experts
// CHECK: oriel.add
module {
  func.func @narrow_experts(%x: tensor<4x8xbf16>, %dy: tensor<4x2x6xbf16>, %c: tensor<4x2xi64>, %dw: tensor<3x8x6xbf16>) -> tensor<3x8x6xbf16> {
    %0 = oriel.expert_linear_weight_grad %x, %dy, %c : (tensor<4x8xbf16>, tensor<4x2x6xbf16>, tensor<4x2xi64>) -> tensor<3x8x6xbf16>
    %1 = oriel.add %dw, %0 : (tensor<3x8x6xbf16>, tensor<3x8x6xbf16>) -> tensor<3x8x6xbf16>
    return %1 : tensor<3x8x6xbf16>
  }
}

// -----

// A residual, on either side of the sum. The second one is what the first one makes.
// CHECK-LABEL: func.func @residual
// CHECK-NEXT: %[[FIRST:.*]] = oriel.linear_add %arg0, %arg1, %arg2, %arg0 {oriel.fusion_cluster = 0 : i64}
// CHECK-NEXT: %[[SECOND:.*]] = oriel.linear_add %[[FIRST]], %arg1, %[[FIRST]] {oriel.fusion_cluster = 1 : i64}
// CHECK-NEXT: return %[[FIRST]], %[[SECOND]]
module {
  func.func @residual(%x: tensor<4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
    %0 = oriel.linear %x, %w, %b {oriel.fusion_cluster = 0 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>, tensor<8xf32>) -> tensor<4x8xf32>
    %1 = oriel.add %x, %0 {oriel.fusion_cluster = 0 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.linear %1, %w {oriel.fusion_cluster = 1 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.add %2, %1 {oriel.fusion_cluster = 1 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
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
    %9 = oriel.linear %x, %w {oriel.fusion_cluster = 7 : i64} : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %10 = oriel.add %9, %x {oriel.fusion_cluster = 8 : i64} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
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

// -----

// The activation of a layer: with what it is of, where that is wanted, and alone.
// CHECK-LABEL: func.func @activation
// CHECK-NEXT: %[[Y:.*]], %[[PRE:.*]] = oriel.linear_activation %arg0, %arg1, %arg2 {kind = "gelu_tanh", oriel.fusion_cluster = 1 : i64, oriel.shardings = [#oriel.sharding<[{}, {a}]>, #oriel.sharding<[{}, {a}]>], origin = 3 : i64, transpose_weight = true}
// CHECK-NEXT: %[[Z:.*]] = oriel.linear_activation %arg0, %arg1 {kind = "gelu_tanh", origin = 5 : i64, transpose_weight = true} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
// CHECK-NEXT: return %[[PRE]], %[[Y]], %[[Z]]
module {
  func.func @activation(%x: tensor<4x8xf32>, %w: tensor<16x8xf32>, %b: tensor<16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
    %0 = oriel.linear %x, %w, %b {oriel.fusion_cluster = 1 : i64, oriel.shardings = [#oriel.sharding<[{}, {a}]>], origin = 3 : i64, transpose_weight = true} : (tensor<4x8xf32>, tensor<16x8xf32>, tensor<16xf32>) -> tensor<4x16xf32>
    %1 = oriel.activation %0 {kind = "gelu_tanh", oriel.fusion_cluster = 2 : i64, oriel.shardings = [#oriel.sharding<[{}, {a}]>], origin = 4 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.linear %x, %w {origin = 5 : i64, transpose_weight = true} : (tensor<4x8xf32>, tensor<16x8xf32>) -> tensor<4x16xf32>
    %3 = oriel.activation %2 {kind = "gelu_tanh", origin = 6 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %0, %1, %3 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
}

// -----

// The backward computes the first activation again, but not its layer, and the second one with it.
// CHECK-LABEL: func.func @forward
// CHECK: oriel.linear %{{.*}}origin = 3
// CHECK: oriel.activation %{{.*}}origin = 4
// CHECK: oriel.linear_activation %{{.*}}origin = 5
// CHECK-LABEL: func.func @backward
// CHECK: oriel.activation %{{.*}}origin = 4
// CHECK: oriel.linear_activation %{{.*}}oriel.recomputed, origin = 5
module {
  func.func @forward(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
    %0 = oriel.linear %x, %w {origin = 3 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.activation %0 {kind = "gelu_tanh", origin = 4 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.linear %x, %w {origin = 5 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %3 = oriel.activation %2 {kind = "gelu_tanh", origin = 6 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %0, %1, %3 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
  func.func @backward(%x: tensor<4x8xf32>, %w: tensor<8x16xf32>, %kept: tensor<4x16xf32>) -> (tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>) {
    %0 = oriel.activation %kept {kind = "gelu_tanh", oriel.recomputed, origin = 4 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    %1 = oriel.linear %x, %w {oriel.recomputed, origin = 5 : i64} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %2 = oriel.activation %1 {kind = "gelu_tanh", oriel.recomputed, origin = 6 : i64} : (tensor<4x16xf32>) -> tensor<4x16xf32>
    return %0, %1, %2 : tensor<4x16xf32>, tensor<4x16xf32>, tensor<4x16xf32>
  }
}

// -----

// Behind the product with the cotangent, the derivative; beside the gradient of a weight, that of
// the bias.
// CHECK-LABEL: func.func @gradients
// CHECK-NEXT: %[[DX:.*]] = oriel.linear_activation_grad %arg0, %arg1, %arg2 {kind = "gelu_tanh"}
// CHECK-NEXT: %[[DW:.*]], %[[DB:.*]] = oriel.linear_grads %arg3, %[[DX]], %arg4 {oriel.shardings = [#oriel.sharding<[{}, {a}]>, #oriel.sharding<[{a}]>]} : (tensor<2x4x6xf32>, tensor<2x4x16xf32>, tensor<6x16xf32>) -> (tensor<6x16xf32>, tensor<16xf32>)
// CHECK-NEXT: %[[SUM:.*]] = oriel.add %arg5, %[[DB]]
// CHECK-NEXT: return %[[DW]], %[[SUM]]
module {
  func.func @gradients(%dy: tensor<2x4x8xf32>, %w: tensor<8x16xf32>, %pre: tensor<2x4x16xf32>, %x: tensor<2x4x6xf32>, %dw: tensor<6x16xf32>, %db: tensor<16xf32>) -> (tensor<6x16xf32>, tensor<16xf32>) {
    %0 = oriel.linear %dy, %w : (tensor<2x4x8xf32>, tensor<8x16xf32>) -> tensor<2x4x16xf32>
    %1 = oriel.activation_grad %0, %pre {kind = "gelu_tanh"} : (tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x16xf32>
    %2 = oriel.linear_weight_grad %x, %1 {oriel.shardings = [#oriel.sharding<[{}, {a}]>]} : (tensor<2x4x6xf32>, tensor<2x4x16xf32>) -> tensor<6x16xf32>
    %3 = oriel.add %dw, %2 {oriel.shardings = [#oriel.sharding<[{}, {a}]>]} : (tensor<6x16xf32>, tensor<6x16xf32>) -> tensor<6x16xf32>
    %4 = oriel.reduce_sum %1 {dims = array<i64: 0, 1>, oriel.shardings = [#oriel.sharding<[{a}]>]} : (tensor<2x4x16xf32>) -> tensor<16xf32>
    %5 = oriel.add %db, %4 : (tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
    return %3, %5 : tensor<6x16xf32>, tensor<16xf32>
  }
}

// -----

// Rows and columns are cut: both gradients are sums over the ranks of one axis, and pieces along
// the other.
// CHECK-LABEL: func.func @cut_gradients
// CHECK: oriel.linear_grads
// CHECK-SAME: oriel.rule = {factors = {{\[\[}}8, "parallel"], [6, "parallel"], [4, "sum"]], linear = {{\[\[}}1]], operands = {{\[\[\[}}2], [0]], {{\[\[}}2], [1]]], results = {{\[\[\[}}0], [1]], {{\[\[}}1]]]}
// CHECK-SAME: oriel.split = {{\[\[\]}}, ["a1"], ["a0"]]
// CHECK-NOT: reduce_sum
module {
  func.func @cut_gradients(%x: tensor<2x8xf32>, %dy: tensor<2x3xf32>) -> (tensor<8x3xf32>, tensor<3xf32>) {
    %0 = oriel.linear_weight_grad %x, %dy {oriel.rule = {factors = [[8, "parallel"], [6, "parallel"], [4, "sum"]], linear = [[0], [1]], operands = [[[2], [0]], [[2], [1]]], results = [[[0], [1]]]}, oriel.split = [[], ["a1"], ["a0"]]} : (tensor<2x8xf32>, tensor<2x3xf32>) -> tensor<8x3xf32>
    %1 = oriel.reduce_sum %dy {dims = array<i64: 0>, oriel.rule = {factors = [[6, "parallel"], [4, "sum"]], linear = [[0]], operands = [[[1], [0]]], results = [[[0]]]}, oriel.split = [["a1"], ["a0"]]} : (tensor<2x3xf32>) -> tensor<3xf32>
    return %0, %1 : tensor<8x3xf32>, tensor<3xf32>
  }
}

// -----

// What the product reads is a pending sum over ranks: then so is the gradient of the weight, and not
// that of the bias.
// CHECK-LABEL: func.func @pending
// CHECK-NOT: oriel.linear_grads
// CHECK: return
module {
  func.func @pending(%x: tensor<2x8xf32>, %dy: tensor<2x6xf32>) -> (tensor<8x6xf32>, tensor<6xf32>) {
    %0 = oriel.neg %x {oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>]} : (tensor<2x8xf32>) -> tensor<2x8xf32>
    %1 = oriel.linear_weight_grad %0, %dy {oriel.rule = {factors = [[8, "parallel"], [6, "parallel"], [2, "sum"]], linear = [[0], [1]], operands = [[[2], [0]], [[2], [1]]], results = [[[0], [1]]]}, oriel.shardings = [#oriel.sharding<[{}, {}] sum {a0}>], oriel.split = [[], [], []]} : (tensor<2x8xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
    %2 = oriel.reduce_sum %dy {dims = array<i64: 0>} : (tensor<2x6xf32>) -> tensor<6xf32>
    return %1, %2 : tensor<8x6xf32>, tensor<6xf32>
  }
}

// -----

// What stays: sums of other dimensions, and one that is read before the gradient of the weight is
// made; an activation that no library applies; a derivative of a product that others read.
// CHECK-LABEL: func.func @others
// CHECK-NOT: oriel.linear_grads
// CHECK-NOT: oriel.linear_activation
// CHECK: return
module {
  func.func @others(%x: tensor<2x4x8xf32>, %dy: tensor<2x4x8xf32>, %w: tensor<8x8xf32>, %b: tensor<8xf32>)
      -> (tensor<4x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
    %0 = oriel.reduce_sum %dy {dims = array<i64: 0>} : (tensor<2x4x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.reduce_sum %dy {dims = array<i64: 0, 1>} : (tensor<2x4x8xf32>) -> tensor<8xf32>
    %2 = oriel.add %1, %b : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %3 = oriel.linear_weight_grad %x, %dy : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<8x8xf32>
    %4 = oriel.linear %x, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %5 = oriel.activation %4 {kind = "silu"} : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %6 = oriel.linear %dy, %w : (tensor<2x4x8xf32>, tensor<8x8xf32>) -> tensor<2x4x8xf32>
    %7 = oriel.activation_grad %6, %x {kind = "gelu_tanh"} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    return %0, %2, %3, %5, %6, %7 : tensor<4x8xf32>, tensor<8xf32>, tensor<8x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>
  }
}
