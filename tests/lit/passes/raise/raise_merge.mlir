// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-merge{inputs=* rows-per-sample=3},canonicalize))" | FileCheck %s
// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-merge))" --verify-diagnostics | FileCheck %s --check-prefix=UNDECLARED

// CHECK-LABEL: func.func @merge
// CHECK-SAME: (%[[X:.*]]: tensor<2x8x4xf32>, %[[M:.*]]: tensor<2x8xi1>, %[[F:.*]]: tensor<6x4xf32>)
// CHECK-NEXT: %[[ROWS:.*]] = oriel.reshape %[[F]] : (tensor<6x4xf32>) -> tensor<2x3x4xf32>
// CHECK-NEXT: %[[Y:.*]] = oriel.merge_features %[[X]], %[[M]], %[[ROWS]]
// CHECK-NEXT: return %[[Y]]

// UNDECLARED: oriel.masked_scatter
func.func @merge(%x: tensor<2x8x4xf32>, %m: tensor<2x8xi1>, %f: tensor<6x4xf32>) -> tensor<2x8x4xf32> {
  %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
  %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
  // expected-warning@+1 {{the merge of image features is not split over the batch: declare `images: {per_sample, rows_per_image}` in the recipe}}
  %2 = oriel.masked_scatter %x, %1, %f : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<6x4xf32>) -> tensor<2x8x4xf32>
  return %2 : tensor<2x8x4xf32>
}
