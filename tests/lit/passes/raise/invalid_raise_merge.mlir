// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-merge{inputs=* rows-per-sample=50}))" --split-input-file --verify-diagnostics

func.func @other_rows(%x: tensor<2x8x4xf32>, %m: tensor<2x8xi1>, %f: tensor<6x4xf32>) -> tensor<2x8x4xf32> {
  %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
  %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
  // expected-error@+1 {{the merge of image features takes 3 rows for each of the 2 samples, but the recipe's `images` declares 50 (per_sample x rows_per_image); correct `images`, or declare the images of each merge by themselves (a list)}}
  %2 = oriel.masked_scatter %x, %1, %f : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<6x4xf32>) -> tensor<2x8x4xf32>
  return %2 : tensor<2x8x4xf32>
}

// -----

func.func @no_rows(%x: tensor<16x4xf32>, %m: tensor<16x4xi1>, %f: tensor<6x4xf32>) -> tensor<16x4xf32> {
  // expected-warning@+1 {{it does not replace whole rows of an input [batch, positions, width] but elements of 'tensor<16x4xf32>'}}
  %0 = oriel.masked_scatter %x, %m, %f : (tensor<16x4xf32>, tensor<16x4xi1>, tensor<6x4xf32>) -> tensor<16x4xf32>
  return %0 : tensor<16x4xf32>
}

// -----

// Features without width have no number of rows.
func.func @no_width(%x: tensor<2x8x0xf32>, %m: tensor<2x8xi1>, %f: tensor<6x1xf32>) -> tensor<2x8x0xf32> {
  %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
  %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x0xi1>
  // expected-error@+1 {{takes a source 'tensor<6x1xf32>', but the recipe's `images` declares 50}}
  %2 = oriel.masked_scatter %x, %1, %f : (tensor<2x8x0xf32>, tensor<2x8x0xi1>, tensor<6x1xf32>) -> tensor<2x8x0xf32>
  return %2 : tensor<2x8x0xf32>
}
