// RUN: oriel-opt %s --oriel-check-images="inputs=* per-sample=2 rows-per-image=3" --split-input-file | FileCheck %s

// The images' inputs are what the features come from and the text does not; two rows of them are an image.

// CHECK: module attributes {oriel.images = [{count = "image_count", per_sample = 2 : i64, rows = {pixels = 2 : i64}}]}
module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[COUNT:[a-z0-9]+]]: tensor<2xi64> {oriel.kind = "input", oriel.ref = "image_count"}
  func.func @main(%ids: tensor<2x8xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %pixels: tensor<8x6xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %image = oriel.constant {value = dense<7> : tensor<2x8xi64>} : () -> tensor<2x8xi64>
    %mask = oriel.equal %ids, %image : (tensor<2x8xi64>, tensor<2x8xi64>) -> tensor<2x8xi1>
    %features = oriel.reshape %pixels : (tensor<8x6xf32>) -> tensor<2x6x4xf32>
    // CHECK: %[[MASK:.*]] = oriel.check_image_slots %{{.*}}, %[[COUNT]] {rows_per_image = 3 : i64}
    // CHECK: oriel.merge_features %{{.*}}, %[[MASK]], %{{.*}}
    %y = oriel.merge_features %x, %mask, %features : (tensor<2x8x4xf32>, tensor<2x8xi1>, tensor<2x6x4xf32>) -> tensor<2x8x4xf32>
    return %y : tensor<2x8x4xf32>
  }
}

// -----

// A model without images is left alone.
// CHECK-NOT: oriel.images
module {
  // CHECK: func.func @main(%{{.*}}: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"})
  func.func @main(%x: tensor<2x8xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return %x : tensor<2x8xf32>
  }
}
