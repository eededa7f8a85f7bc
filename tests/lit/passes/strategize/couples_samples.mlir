// RUN: oriel-opt %s --oriel-annotate=strategy=%S/Inputs/dp2.yaml --verify-diagnostics

// A merge without declared images is not split over the batch.
module {
  func.func @forward(%x: tensor<4x3xf32> {oriel.kind = "input", oriel.ref = "x"},
                     %mask: tensor<4x3xi1> {oriel.kind = "input", oriel.ref = "mask"},
                     %rows: tensor<2x3xf32> {oriel.kind = "input", oriel.ref = "rows"})
      -> (tensor<4x3xf32> {oriel.kind = "stash", oriel.ref = "v0"}) {
    // expected-warning@+1 {{couples the samples of a batch, so each of the 2 data-parallel ranks gathers the batch}}
    %0 = oriel.masked_scatter %x, %mask, %rows : (tensor<4x3xf32>, tensor<4x3xi1>, tensor<2x3xf32>) -> tensor<4x3xf32>
    return %0 : tensor<4x3xf32>
  }
}
