// RUN: oriel-opt %s --pass-pipeline="builtin.module(func.func(oriel-raise-merge{inputs=pixels,sound rows-per-sample=4,2},canonicalize),oriel-check-images{inputs=pixels,sound per-sample=2,1 rows-per-image=2,2})" --split-input-file --verify-diagnostics | FileCheck %s

// Images and sounds are counted by themselves; what feeds neither (`x`) holds none.

// CHECK: module attributes {oriel.images = [
// CHECK-SAME: {count = "pixels_count", per_sample = 2 : i64, rows = {pixels = 2 : i64}},
// CHECK-SAME: {count = "sound_count", per_sample = 1 : i64, rows = {sound = 2 : i64}}]}
module {
  // CHECK-LABEL: func.func @main
  // CHECK-SAME: %[[PIXELS:[a-z0-9]+]]: tensor<2xi64> {oriel.kind = "input", oriel.ref = "pixels_count"}
  // CHECK-SAME: %[[SOUNDS:[a-z0-9]+]]: tensor<2xi64> {oriel.kind = "input", oriel.ref = "sound_count"}
  func.func @main(%a: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "a"},
      %b: tensor<2x8xi1> {oriel.kind = "input", oriel.ref = "b"},
      %pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "sound"},
      %x: tensor<2x8x4xf32> {oriel.kind = "input", oriel.ref = "x"}) -> (tensor<2x8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    %0 = oriel.reshape %a : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
    %1 = oriel.broadcast %0 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
    // CHECK: %[[A:.*]] = oriel.check_image_slots %{{.*}}, %[[PIXELS]] {rows_per_image = 2 : i64}
    // CHECK: %[[Y:.*]] = oriel.merge_features %{{.*}}, %[[A]], %{{.*}} tensor<2x4x4xf32>
    %2 = oriel.masked_scatter %x, %1, %pixels : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<8x4xf32>) -> tensor<2x8x4xf32>
    %3 = oriel.reshape %b : (tensor<2x8xi1>) -> tensor<2x8x1xi1>
    %4 = oriel.broadcast %3 : (tensor<2x8x1xi1>) -> tensor<2x8x4xi1>
    // CHECK: %[[B:.*]] = oriel.check_image_slots %{{.*}}, %[[SOUNDS]] {rows_per_image = 2 : i64}
    // CHECK: oriel.merge_features %[[Y]], %[[B]], %{{.*}} tensor<2x2x4xf32>
    %5 = oriel.masked_scatter %2, %4, %sound : (tensor<2x8x4xf32>, tensor<2x8x4xi1>, tensor<4x4xf32>) -> tensor<2x8x4xf32>
    return %5 : tensor<2x8x4xf32>
  }
}

// -----

// Declared kinds that no merge takes.
module {
  // expected-warning@+2 {{the recipe declares `images` of the input 'pixels', but the model puts no features of images}}
  // expected-warning@+1 {{the recipe declares `images` of the input 'sound', but the model puts no features of images}}
  func.func @main(%pixels: tensor<8x4xf32> {oriel.kind = "input", oriel.ref = "pixels"},
      %sound: tensor<4x4xf32> {oriel.kind = "input", oriel.ref = "sound"}) -> (tensor<8x4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
    return %pixels : tensor<8x4xf32>
  }
}
