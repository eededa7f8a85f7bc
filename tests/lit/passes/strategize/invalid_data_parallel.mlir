// RUN: oriel-opt %s --oriel-data-parallel="world=2" --verify-diagnostics

func.func @couples_samples(%x: tensor<2x4xf32>, %m: tensor<2x4xi1>, %s: tensor<8xf32>) -> tensor<2x4xf32> {
  // expected-error@+1 {{couples the samples of a batch and can't be split over 2 ranks}}
  %0 = oriel.masked_scatter %x, %m, %s : (tensor<2x4xf32>, tensor<2x4xi1>, tensor<8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}
