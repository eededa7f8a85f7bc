// RUN: oriel-opt %s --oriel-check-images="inputs=* per-sample=2 rows-per-image=3" --verify-diagnostics

module {
  // expected-warning@+1 {{the recipe declares `images`, but the model puts no features of images into its text}}
  func.func @main(%x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"})
      -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %y = oriel.exp %x : (tensor<2x8x4xf32>) -> tensor<2x8x4xf32>
    return %y : tensor<2x8x4xf32>
  }
}
