// RUN: oriel-opt %s --oriel-check-images="inputs=* per-sample=2 rows-per-image=3" --verify-diagnostics
// RUN: not oriel-opt %s --oriel-check-images="inputs=* per-sample=2" 2>&1 | FileCheck %s

// CHECK: error: images of 1 inputs need as many numbers, of at least 1

module {
  // expected-error@+1 {{the input 'pixels' holds images, but 'tensor<3x16xf32>' can't be divided into 2 for each of 2 samples; correct `images.per_sample` or `model.bind` in the recipe}}
  func.func @main(%m: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "m"},
      %pixels: tensor<3x16xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %features = oriel.reshape %pixels : (tensor<3x16xf32>) -> tensor<2x6x4xf32>
    %y = oriel.merge_features %x, %m, %features : (tensor<2x8x4xf32>, tensor<2x8xi1>, tensor<2x6x4xf32>) -> tensor<2x8x4xf32>
    return %y : tensor<2x8x4xf32>
  }
}
