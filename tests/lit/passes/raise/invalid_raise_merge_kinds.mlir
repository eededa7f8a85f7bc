// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-merge{inputs=pixels,sound rows-per-sample=4,4}),oriel-check-images{inputs=pixels,sound per-sample=2,1 rows-per-image=2,4})" --split-input-file --verify-diagnostics

module @features_of_both {
  func.func @main(%m: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "m"},
      %pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "sound"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
    %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
    %2 = oriel.add %pixels, %sound : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    // expected-error@+1 {{come from 'pixels' and from 'sound', which the recipe's `images` declares to hold images of different kinds; declare one of them only}}
    %3 = oriel.masked_scatter %x, %1, %2 : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
    return %3 : tensor<2x8x4xf32>
  }
}

// -----

module @no_such_input {
  // expected-error@+1 {{the recipe's `images` names the input 'sound', which the model doesn't have; did you mean 'sounds'?}}
  func.func @main(%pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "sounds"}) -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return %pixels : tensor<8x4xf32>
  }
}

// -----

module @merge_of_neither {
  func.func @main(%m: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "m"},
      %pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "sound"},
      %other: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "other"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
    %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
    // expected-warning@+1 {{is not split over the batch: none of the inputs that the recipe's `images` declares is behind it; declare one that is}}
    %2 = oriel.masked_scatter %x, %1, %other : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
    return %2 : tensor<2x8x4xf32>
  }
}

// -----

module @input_behind_both {
  // expected-error@+1 {{the input 'table' is behind the features of images of several kinds}}
  func.func @main(%m: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "m"},
      %pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "sound"},
      %table: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "table"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
    %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
    %2 = oriel.add %pixels, %table : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %3 = oriel.masked_scatter %x, %1, %2 : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
    %4 = oriel.add %sound, %table : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
    %5 = oriel.masked_scatter %3, %1, %4 : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
    return %5 : tensor<2x8x4xf32>
  }
}

// -----

module @by_another_way {
  // expected-warning@+2 {{the input 'pixels', of which the recipe declares `images`, reaches the text by another way}}
  // expected-warning@+1 {{of the input 'sound', but the model puts no features of images into its text}}
  func.func @main(%m: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "m"},
      %pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "sound"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.reshape %m : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
    %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
    %sum = oriel.reduce_sum %pixels {dims = array<i64: 0, 1>} : (tensor<8x4xf32>) -> tensor<f32>
    %2 = oriel.add %x, %sum : (tensor<2x8x4xf32>, tensor<f32>) -> tensor<2x8x4xf32>
    %3 = oriel.masked_scatter %2, %1, %pixels : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
    return %3 : tensor<2x8x4xf32>
  }
}
