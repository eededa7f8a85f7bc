// RUN: oriel-opt %s --oriel-check-images="inputs=* per-sample=2 rows-per-image=3" --verify-diagnostics

module {
  // expected-error@+1 {{argument 0}}
  func.func @main(%m: tensor<2x8xi1>, %features: tensor<2x6x4xf32> {oriel.kind = "input", oriel.ref = "f"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %y = oriel.merge_features %x, %m, %features : (tensor<2x8x4xf32>, tensor<2x8xi1>, tensor<2x6x4xf32>) -> tensor<2x8x4xf32>
    return %y : tensor<2x8x4xf32>
  }
}
