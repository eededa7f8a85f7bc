// RUN: oriel-opt %s --oriel-form-generated --split-input-file | FileCheck %s
// RUN: oriel-opt %s --oriel-form-generated --oriel-lower-to-exec --split-input-file -o /dev/null

// What only the chain uses is no result; two uses of an operand are one operand.
// CHECK-LABEL: func.func @chain
// CHECK-SAME: (%[[A:.*]]: tensor<8xf32> {{.*}}, %[[B:.*]]: tensor<8xf32>
// CHECK-NEXT: %[[R:.*]] = exec.generated(%[[A]], %[[B]]) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xbf16> {
// CHECK-NEXT: ^bb0(%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>):
// CHECK-NEXT:   %[[SUM:.*]] = oriel.add %[[X]], %[[Y]] :
// CHECK-NEXT:   %[[PRODUCT:.*]] = oriel.mul %[[SUM]], %[[X]] :
// CHECK-NEXT:   %[[CAST:.*]] = oriel.cast %[[PRODUCT]] :
// CHECK-NEXT:   exec.yield %[[CAST]] : tensor<8xbf16>
// CHECK-NEXT: }
// CHECK-NEXT: return %[[R]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @chain(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"},
                   %b: tensor<8xf32> {oriel.kind = "input", oriel.ref = "b"})
      -> (tensor<8xbf16> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.add %a, %b {origin = 3 : i64} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.mul %0, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %2 = oriel.cast %1 : (tensor<8xf32>) -> tensor<8xbf16>
    return %2 : tensor<8xbf16>
  }
}

// -----

// A value that others use, too, is a result. What has no generated code (log) stays.
// CHECK-LABEL: func.func @several_results
// CHECK: %[[R:.*]]:2 = exec.generated
// CHECK: exec.yield %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32>
// CHECK: %[[E:.*]] = oriel.log %[[R]]#0
// CHECK: return %[[R]]#1, %[[E]]
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @several_results(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"})
      -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.abs %a : (tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.sqrt %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = oriel.log %0 : (tensor<8xf32>) -> tensor<8xf32>
    return %1, %2 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// What is approximated is generated alone, too: its own kernel could have other last bits than the
// copy of it that stands in a chain. f64 has no form.
// CHECK-LABEL: func.func @approximated
// CHECK: exec.generated(%{{.*}}) : (tensor<8xf32>) -> tensor<8xf32> {
// CHECK-NEXT: ^bb0
// CHECK-NEXT:   oriel.exp
// CHECK-NEXT:   exec.yield
// CHECK: oriel.log
// CHECK: exec.generated
// CHECK: oriel.activation %{{.*}} {kind = "gelu"}
// CHECK-NEXT: oriel.mul
// CHECK: oriel.exp %{{.*}} : (tensor<8xf64>)
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @approximated(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"},
                          %d: tensor<8xf64> {oriel.kind = "input", oriel.ref = "d"})
      -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8xf64> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.exp %a : (tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.log %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = oriel.activation %1 {kind = "gelu"} : (tensor<8xf32>) -> tensor<8xf32>
    %3 = oriel.mul %2, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %4 = oriel.exp %d : (tensor<8xf64>) -> tensor<8xf64>
    return %3, %4 : tensor<8xf32>, tensor<8xf64>
  }
}

// -----

// The logarithm between the two reads the sum, so the sum can't wait for the product.
// CHECK-LABEL: func.func @used_in_between
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @used_in_between(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"})
      -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.add %a, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.log %0 : (tensor<8xf32>) -> tensor<8xf32>
    %2 = oriel.mul %0, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %2 : tensor<8xf32>
  }
}

// -----

// Two operands would be held over the matmul in place of their sum.
// CHECK-LABEL: func.func @takes_more_memory
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-LABEL: func.func @takes_no_more_memory
// CHECK: oriel.matmul
// CHECK-NEXT: exec.generated
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @takes_more_memory(%a: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "a"},
                               %b: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "b"})
      -> (tensor<8x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.log %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = oriel.log %b : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = oriel.add %0, %1 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = oriel.matmul %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = oriel.add %2, %3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }
  func.func @takes_no_more_memory(%a: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "a"},
                                  %b: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "b"})
      -> (tensor<8x8xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.log %a : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %2 = oriel.neg %0 : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %3 = oriel.matmul %a, %b : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %4 = oriel.add %2, %3 : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    return %4 : tensor<8x8xf32>
  }
}

// -----

// Other shapes, whole numbers that may be divided by zero, and f16 stay what they are.
// CHECK-LABEL: func.func @left_alone
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @left_alone(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"},
                        %b: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "b"},
                        %i: tensor<8xi64> {oriel.kind = "input", oriel.ref = "i"},
                        %h: tensor<8xf16> {oriel.kind = "input", oriel.ref = "h"})
      -> (tensor<2x8xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<8xi64> {oriel.kind = "output", oriel.ref = "z"},
          tensor<8xf16> {oriel.kind = "output", oriel.ref = "w"}) {
    %0 = oriel.neg %a : (tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.add %0, %b : (tensor<8xf32>, tensor<2x8xf32>) -> tensor<2x8xf32>
    %2 = oriel.neg %i : (tensor<8xi64>) -> tensor<8xi64>
    %3 = oriel.div %2, %i : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi64>
    %4 = oriel.neg %h : (tensor<8xf16>) -> tensor<8xf16>
    %5 = oriel.abs %4 : (tensor<8xf16>) -> tensor<8xf16>
    return %1, %3, %5 : tensor<2x8xf32>, tensor<8xi64>, tensor<8xf16>
  }
}

// -----

// Cut alike, ops join under one rule: sums of three are linear in the three together.
// CHECK-LABEL: func.func @cut
// CHECK: exec.generated
// CHECK-SAME: oriel.rule = {factors = {{\[\[}}8, "parallel"]], linear = {{\[\[}}0, 1, 2]], operands = {{\[\[\[}}0]], {{\[\[}}0]], {{\[\[}}0]]], results = {{\[\[\[}}0]]]}
// CHECK-SAME: oriel.shardings = [#oriel.sharding<[{a0}]>]
// CHECK-SAME: oriel.split = {{\[\[}}"a0"]]
// CHECK-LABEL: func.func @cut_otherwise
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
#rule = {factors = [[8, "parallel"]], linear = [[0, 1]], operands = [[[0]], [[0]]], results = [[[0]]]}
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @cut(%a: tensor<4xf32> {oriel.kind = "input", oriel.ref = "a", oriel.sharding = #oriel.sharding<[{a0}]>},
                 %b: tensor<4xf32> {oriel.kind = "input", oriel.ref = "b", oriel.sharding = #oriel.sharding<[{a0}]>},
                 %c: tensor<4xf32> {oriel.kind = "input", oriel.ref = "c", oriel.sharding = #oriel.sharding<[{a0}]>})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.add %a, %b {oriel.rule = #rule, oriel.split = [["a0"]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.add %0, %c {oriel.rule = #rule, oriel.split = [["a0"]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
  func.func @cut_otherwise(%a: tensor<4xf32> {oriel.kind = "input", oriel.ref = "a", oriel.sharding = #oriel.sharding<[{a0}]>},
                           %b: tensor<4xf32> {oriel.kind = "input", oriel.ref = "b", oriel.sharding = #oriel.sharding<[{a0}]>})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.add %a, %b {oriel.rule = #rule, oriel.split = [["a0"]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.add %0, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

// A product is linear in each factor, not in both; what adds one of them to it in neither.
// CHECK-LABEL: func.func @not_linear
// CHECK: exec.generated
// CHECK-SAME: linear = {{\[\[}}0]]
#sum = {factors = [[8, "parallel"]], linear = [[0, 1]], operands = [[[0]], [[0]]], results = [[[0]]]}
#product = {factors = [[8, "parallel"]], linear = [[0], [1]], operands = [[[0]], [[0]]], results = [[[0]]]}
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @not_linear(%a: tensor<4xf32> {oriel.kind = "input", oriel.ref = "a", oriel.sharding = #oriel.sharding<[{a0}]>},
                        %b: tensor<4xf32> {oriel.kind = "input", oriel.ref = "b", oriel.sharding = #oriel.sharding<[{a0}]>})
      -> (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.mul %a, %b {oriel.rule = #product, oriel.split = [["a0"]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    %1 = oriel.add %0, %a {oriel.rule = #sum, oriel.split = [["a0"]], oriel.shardings = [#oriel.sharding<[{a0}]>]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    return %1 : tensor<4xf32>
  }
}

// -----

// What goes before and after a reduction of rows joins it. Cut along rows, ops that reduce and ops that
// don't have one rule, which leaves out what is not cut.
// CHECK-LABEL: func.func @rows
// CHECK: %[[R:.*]]:2 = exec.generated
// CHECK-SAME: oriel.rule = {factors = {{\[\[}}8, "parallel"]], linear = [], operands = {{\[\[\[}}0], []]], results = {{\[\[\[}}0], []], {{\[\[}}0], []]]}
// CHECK-SAME: oriel.split = {{\[\[}}"a0"]]
// CHECK: oriel.mul
// CHECK-NEXT: oriel.reduce_mean
// CHECK-NEXT: oriel.rsqrt
// CHECK-NEXT: oriel.mul
// CHECK: return %[[R]]#{{.}}, %[[R]]#{{.}}
#whole = {factors = [[8, "parallel"], [4, "parallel"]], linear = [[0], [1]], operands = [[[0], [1]], [[0], [1]]], results = [[[0], [1]]]}
#reduced = {factors = [[8, "parallel"], [4, "sum"]], linear = [[0]], operands = [[[0], [1]]], results = [[[0], []]]}
#unary = {factors = [[8, "parallel"]], linear = [], operands = [[[0], []]], results = [[[0], []]]}
#repeated = {factors = [[8, "parallel"], [4, "parallel"]], linear = [[0], [1]], operands = [[[0], [1]], [[0], []]], results = [[[0], [1]]]}
#sharding = #oriel.sharding<[{a0}, {}]>
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
  func.func @rows(%a: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "a", oriel.sharding = #sharding})
      -> (tensor<4x4xf32> {oriel.kind = "output", oriel.ref = "y"}, tensor<4x1xf32> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.mul %a, %a {oriel.rule = #whole, oriel.split = [["a0"], []], oriel.shardings = [#sharding]} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %1 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true, oriel.rule = #reduced, oriel.split = [["a0"], []], oriel.shardings = [#sharding]} : (tensor<4x4xf32>) -> tensor<4x1xf32>
    %2 = oriel.rsqrt %1 {oriel.rule = #unary, oriel.split = [["a0"]], oriel.shardings = [#sharding]} : (tensor<4x1xf32>) -> tensor<4x1xf32>
    %3 = oriel.mul %a, %2 {oriel.rule = #repeated, oriel.split = [["a0"], []], oriel.shardings = [#sharding]} : (tensor<4x4xf32>, tensor<4x1xf32>) -> tensor<4x4xf32>
    return %3, %2 : tensor<4x4xf32>, tensor<4x1xf32>
  }
}

// -----

// Rows that are too long for a block of CUDA, other dimensions and whole numbers stay what they are;
// a value without the rows' dimensions goes along no rows.
// CHECK-LABEL: func.func @no_rows
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK-LABEL: func.func @dropped
// CHECK: exec.generated
// CHECK-NEXT: ^bb0
// CHECK-NEXT: oriel.reduce_max
// CHECK-NEXT: exec.yield
// CHECK: oriel.neg
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @no_rows(%a: tensor<2x20000xf32> {oriel.kind = "input", oriel.ref = "a"},
                     %b: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "b"},
                     %c: tensor<4x8xi64> {oriel.kind = "input", oriel.ref = "c"})
      -> (tensor<2xf32> {oriel.kind = "output", oriel.ref = "x"}, tensor<8xf32> {oriel.kind = "output", oriel.ref = "y"},
          tensor<4xi64> {oriel.kind = "output", oriel.ref = "z"}) {
    %0 = oriel.reduce_sum %a {dims = array<i64: 1>} : (tensor<2x20000xf32>) -> tensor<2xf32>
    %1 = oriel.reduce_sum %b {dims = array<i64: 0>} : (tensor<4x8xf32>) -> tensor<8xf32>
    %2 = oriel.reduce_sum %c {dims = array<i64: 1>} : (tensor<4x8xi64>) -> tensor<4xi64>
    return %0, %1, %2 : tensor<2xf32>, tensor<8xf32>, tensor<4xi64>
  }
  func.func @dropped(%a: tensor<8x8xf32> {oriel.kind = "input", oriel.ref = "a2"})
      -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "w"}) {
    %0 = oriel.reduce_max %a {dims = array<i64: 1>} : (tensor<8x8xf32>) -> tensor<8xf32>
    %1 = oriel.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
    return %1 : tensor<8xf32>
  }
}

// -----

// A product with a pending sum is pending, its neighbour is not: one launch of both could not say
// so. Each goes alone.
// CHECK-LABEL: func.func @pending_and_whole
// CHECK-NOT: exec.generated{{.*}}: (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
// CHECK: return
#rule = {factors = [[8, "parallel"]], linear = [[0], [1]], operands = [[[0]], [[0]]], results = [[[0]]]}
module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {tp = ["a0"]}} {
  func.func @pending_and_whole(
      %a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a", oriel.sharding = #oriel.sharding<[{}]>},
      %b: tensor<8xf32> {oriel.kind = "input", oriel.ref = "b", oriel.sharding = #oriel.sharding<[{}] sum {a0}>})
      -> (tensor<8xf32> {oriel.kind = "output", oriel.ref = "y", oriel.sharding = #oriel.sharding<[{}] sum {a0}>},
          tensor<8xf32> {oriel.kind = "output", oriel.ref = "z", oriel.sharding = #oriel.sharding<[{}]>}) {
    %0 = oriel.mul %a, %a {oriel.rule = #rule, oriel.shardings = [#oriel.sharding<[{}]>], oriel.split = [[]]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.mul %0, %b {oriel.rule = #rule, oriel.shardings = [#oriel.sharding<[{}] sum {a0}>], oriel.split = [[]]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %2 = oriel.mul %0, %a {oriel.rule = #rule, oriel.shardings = [#oriel.sharding<[{}]>], oriel.split = [[]]} : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %1, %2 : tensor<8xf32>, tensor<8xf32>
  }
}

// -----

// What nobody reads is no kernel: it would have no result to go along.
// CHECK-LABEL: func.func @unread
// CHECK-NOT: exec.generated
// CHECK: return
module attributes {oriel.grid = {}, oriel.mesh = {}} {
  func.func @unread(%a: tensor<8xf32> {oriel.kind = "input", oriel.ref = "a"}) {
    %0 = oriel.add %a, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    %1 = oriel.mul %0, %a : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return
  }
}
