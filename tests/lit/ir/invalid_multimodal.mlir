// Each message of the verifiers of multimodal.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @masked_scatter_mask(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>, %f: tensor<2x4x64xf32>) {
  // expected-error@+2 {{expects a mask of shape [2, 8, 64], got [2, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.masked_scatter %x, %m, %f : (tensor<2x8x64xf32>, tensor<2x8xi1>, tensor<2x4x64xf32>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @masked_scatter_source(%x: tensor<2x8x64xf32>, %m: tensor<2x8x64xi1>, %f: tensor<2x4x64xf64>) {
  // expected-error@+2 {{expects a source with elements of type 'f32', got 'tensor<2x4x64xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.masked_scatter %x, %m, %f : (tensor<2x8x64xf32>, tensor<2x8x64xi1>, tensor<2x4x64xf64>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @masked_scatter_grad_mask(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>) {
  // expected-error@+1 {{expects a mask of shape [2, 8, 64], got [2, 8]}}
  %0:2 = oriel.masked_scatter_grad %x, %m : (tensor<2x8x64xf32>, tensor<2x8xi1>) -> (tensor<2x8x64xf32>, tensor<2x4x64xf32>)
  return
}

// -----

func.func @masked_scatter_grad_input(%x: tensor<2x8x64xf32>, %m: tensor<2x8x64xi1>) {
  // expected-error@+1 {{expects an input_grad of type 'tensor<2x8x64xf32>', got 'tensor<2x4x64xf32>'}}
  %0:2 = oriel.masked_scatter_grad %x, %m : (tensor<2x8x64xf32>, tensor<2x8x64xi1>) -> (tensor<2x4x64xf32>, tensor<2x4x64xf32>)
  return
}

// -----

func.func @masked_scatter_grad_source(%x: tensor<2x8x64xf32>, %m: tensor<2x8x64xi1>) {
  // expected-error@+1 {{expects a source_grad with elements of type 'f32', got 'tensor<4xf64>'}}
  %0:2 = oriel.masked_scatter_grad %x, %m : (tensor<2x8x64xf32>, tensor<2x8x64xi1>) -> (tensor<2x8x64xf32>, tensor<4xf64>)
  return
}

// -----

func.func @merge_input_rank(%x: tensor<2x8xf32>, %m: tensor<2x8xi1>, %f: tensor<2x4x64xf32>) {
  // expected-error@+2 {{expects an input of rank 3, got the shape [2, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x8xf32>, tensor<2x8xi1>, tensor<2x4x64xf32>) -> tensor<2x8xf32>
  return
}

// -----

func.func @merge_mask(%x: tensor<2x8x64xf32>, %m: tensor<2x7xi1>, %f: tensor<2x4x64xf32>) {
  // expected-error@+2 {{expects a mask of shape [2, 8], got [2, 7]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x8x64xf32>, tensor<2x7xi1>, tensor<2x4x64xf32>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @merge_features_rank(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>, %f: tensor<8x64xf32>) {
  // expected-error@+2 {{expects features of rank 3, got the shape [8, 64]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x8x64xf32>, tensor<2x8xi1>, tensor<8x64xf32>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @merge_features_shape(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>, %f: tensor<1x8x64xf32>) {
  // expected-error@+2 {{expects features of shape [2, 8, 64], got [1, 8, 64]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x8x64xf32>, tensor<2x8xi1>, tensor<1x8x64xf32>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @merge_features_element_type(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>, %f: tensor<2x4x64xf64>) {
  // expected-error@+2 {{expects features with elements of type 'f32', got 'tensor<2x4x64xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.merge_features %x, %m, %f : (tensor<2x8x64xf32>, tensor<2x8xi1>, tensor<2x4x64xf64>) -> tensor<2x8x64xf32>
  return
}

// -----

func.func @merge_grad_input(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>) {
  // expected-error@+1 {{expects an input_grad of type 'tensor<2x8x64xf32>', got 'tensor<2x4x64xf32>'}}
  %0:2 = oriel.merge_features_grad %x, %m : (tensor<2x8x64xf32>, tensor<2x8xi1>) -> (tensor<2x4x64xf32>, tensor<2x4x64xf32>)
  return
}

// -----

func.func @merge_grad_features(%x: tensor<2x8x64xf32>, %m: tensor<2x8xi1>) {
  // expected-error@+1 {{expects a features_grad of shape [2, 4, 64], got [2, 4, 32]}}
  %0:2 = oriel.merge_features_grad %x, %m : (tensor<2x8x64xf32>, tensor<2x8xi1>) -> (tensor<2x8x64xf32>, tensor<2x4x32xf32>)
  return
}

// -----

func.func @slots_mask_rank(%m: tensor<8xi1>, %n: tensor<2xi64>) {
  // expected-error@+2 {{expects a mask of rank 2, got the shape [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.check_image_slots %m, %n {rows_per_image = 4 : i64} : (tensor<8xi1>, tensor<2xi64>) -> tensor<8xi1>
  return
}

// -----

func.func @slots_images_shape(%m: tensor<2x8xi1>, %n: tensor<3xi64>) {
  // expected-error@+2 {{expects images of shape [2], got [3]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.check_image_slots %m, %n {rows_per_image = 4 : i64} : (tensor<2x8xi1>, tensor<3xi64>) -> tensor<2x8xi1>
  return
}

// -----

func.func @slots_images_type(%m: tensor<2x8xi1>, %n: tensor<2xi32>) {
  // expected-error@+2 {{i64}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.check_image_slots %m, %n {rows_per_image = 4 : i64} : (tensor<2x8xi1>, tensor<2xi32>) -> tensor<2x8xi1>
  return
}

// -----

func.func @slots_rows(%m: tensor<2x8xi1>, %n: tensor<2xi64>) {
  // expected-error@+2 {{expects rows_per_image of at least 1, got 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.check_image_slots %m, %n {rows_per_image = 0 : i64} : (tensor<2x8xi1>, tensor<2xi64>) -> tensor<2x8xi1>
  return
}
