// RUN: oriel-opt %s --oriel-seed-dropout="samples=4" --split-input-file | FileCheck %s
// RUN: not oriel-opt %s --oriel-seed-dropout="samples=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=NONE

// NONE: a microbatch of 0 samples: needs at least one

// CHECK: module attributes {oriel.sample_bits = "sample_bits"}
module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[BITS:[a-z0-9]+]]: tensor<4xi64> {oriel.kind = "input", oriel.ref = "sample_bits"}
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "x"}, %odd: tensor<6xf32> {oriel.kind = "input", oriel.ref = "odd"})
      -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    // CHECK: oriel.dropout %{{.*}}, %[[BITS]] {ratio = 1.000000e-01 : f64, site = 7 : i64}
    %0 = oriel.dropout %x {ratio = 0.1, site = 7 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    // No rows of four samples.
    // CHECK: %[[FIRST:.*]] = oriel.slice %[[BITS]] {limits = array<i64: 1>
    // CHECK: oriel.dropout %{{.*}}, %[[FIRST]]
    %1 = oriel.dropout %odd {ratio = 0.1, site = 8 : i64} : (tensor<6xf32>) -> tensor<6xf32>
    %2 = oriel.add %0, %1 : (tensor<8x6xf32>, tensor<6xf32>) -> tensor<8x6xf32>
    return %2 : tensor<8x6xf32>
  }
}

// -----

// A name that an input has already.
// CHECK: module attributes {oriel.sample_bits = "sample_bits_"}
module {
  func.func @main(%x: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "sample_bits"}) -> (tensor<8x6xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.dropout %x {ratio = 0.1, site = 7 : i64} : (tensor<8x6xf32>) -> tensor<8x6xf32>
    return %0 : tensor<8x6xf32>
  }
}

// -----

// A model without dropout is left alone.
// CHECK-NOT: oriel.sample_bits
module {
  // CHECK: func.func @main(%{{.*}}: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"})
  func.func @main(%x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return %x : tensor<2x8xf32>
  }
}
