// RUN: oriel-opt %s --oriel-mixed-precision=recipe=%S/Inputs/bf16.yaml --split-input-file | FileCheck %s

// Narrow ops take casts of their operands, the ops behind follow, outputs are f32 again. A
// parameter that is used narrow is narrow.
// CHECK: oriel.parameter @w {onnx_name = "w", type = tensor<8x8xbf16>}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32> {{.*}}, %[[W:[a-z0-9]+]]: tensor<8x8xbf16> {{.*}} -> (tensor<4x8xf32>
// CHECK-NEXT: %[[NARROW:.*]] = oriel.cast %[[X]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT: %[[L:.*]] = oriel.linear %[[NARROW]], %[[W]] {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[A:.*]] = oriel.activation %[[L]] {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[S:.*]] = oriel.add %[[A]], %[[NARROW]] {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = oriel.cast %[[S]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: return %[[WIDE]]
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.activation %0 {kind = "gelu"} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.add %1, %x : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}

// -----

// A wide op widens its operands, once for all wide users; what narrow ops read of it is cast. A
// value that was only widened is read as it was.
// CHECK-LABEL: func.func @main(
// CHECK: %[[L:.*]] = oriel.linear {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = oriel.cast %[[L]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[E:.*]] = oriel.exp %[[WIDE]] : (tensor<4x8xf32>)
// CHECK-NEXT: %[[E16:.*]] = oriel.cast %[[E]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT: %[[M:.*]] = oriel.reduce_mean %[[WIDE]] {{.*}} -> tensor<4x1xf32>
// CHECK-NEXT: %[[M16:.*]] = oriel.cast %[[M]] : (tensor<4x1xf32>) -> tensor<4x1xbf16>
// CHECK-NEXT: oriel.sub %[[L]], %[[M16]] {{.*}} -> tensor<4x8xbf16>
// CHECK: oriel.linear %[[E16]]
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}, tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "centred"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.exp %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.reduce_mean %0 {dims = array<i64: 1>, keep_dims = true} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    %3 = oriel.sub %0, %2 : (tensor<4x8xf32>, tensor<4x1xf32>) -> tensor<4x8xf32>
    %4 = oriel.linear %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    return %4, %3 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Angles of positions are no activations: the product with the frequencies is f32, and so are the
// tables that the rotation reads. The frequencies stay an f32 parameter.
// CHECK-DAG: oriel.parameter @f {onnx_name = "inv_freq", type = tensor<1x4xf32>}
// CHECK-DAG: oriel.parameter @t {onnx_name = "table", type = tensor<16x8xbf16>}
// CHECK-LABEL: func.func @main(
// CHECK: %[[P:.*]] = oriel.cast %{{.*}} : (tensor<2x6x1xi64>) -> tensor<2x6x1xf32>
// CHECK-NEXT: %[[ANGLES:.*]] = oriel.linear %[[P]], %{{.*}} -> tensor<2x6x4xf32>
// CHECK-NEXT: %[[COS:.*]] = oriel.cos %[[ANGLES]]
// CHECK-NEXT: %[[SIN:.*]] = oriel.sin %[[ANGLES]]
// CHECK-NEXT: %[[ROWS:.*]] = oriel.gather %{{.*}} -> tensor<2x6x8xbf16>
// CHECK-NEXT: oriel.rope %[[ROWS]], %[[COS]], %[[SIN]] : (tensor<2x6x8xbf16>, tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x8xbf16>
module {
  oriel.parameter @f {onnx_name = "inv_freq", type = tensor<1x4xf32>}
  oriel.parameter @t {onnx_name = "table", type = tensor<16x8xf32>}
  func.func @main(%ids: tensor<2x6xi64> {oriel.kind = "input", oriel.ref = "ids"},
      %positions: tensor<2x6x1xi64> {oriel.kind = "input", oriel.ref = "positions"},
      %f: tensor<1x4xf32> {oriel.kind = "parameter", oriel.ref = "f"},
      %t: tensor<16x8xf32> {oriel.kind = "parameter", oriel.ref = "t"})
      -> (tensor<2x6x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.cast %positions : (tensor<2x6x1xi64>) -> tensor<2x6x1xf32>
    %1 = oriel.linear %0, %f : (tensor<2x6x1xf32>, tensor<1x4xf32>) -> tensor<2x6x4xf32>
    %2 = oriel.cos %1 : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
    %3 = oriel.sin %1 : (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
    %4 = oriel.gather %t, %ids {dim = 0 : i64} : (tensor<16x8xf32>, tensor<2x6xi64>) -> tensor<2x6x8xf32>
    %5 = oriel.rope %4, %2, %3 : (tensor<2x6x8xf32>, tensor<2x6x4xf32>, tensor<2x6x4xf32>) -> tensor<2x6x8xf32>
    return %5 : tensor<2x6x8xf32>
  }
}

// -----

// What moves a weight moves the narrow one; a parameter with f32 users too is widened for them,
// one with such users only stays f32.
// CHECK-DAG: oriel.parameter @w {onnx_name = "w", type = tensor<8x8xbf16>}
// CHECK-DAG: oriel.parameter @s {onnx_name = "scale", type = tensor<f32>}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<8x8xbf16>
// CHECK: %[[WIDE:.*]] = oriel.cast %[[W]] : (tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK: %[[T:.*]] = oriel.transpose %[[W]] {{.*}} -> tensor<8x8xbf16>
// CHECK: %[[M:.*]] = oriel.matmul %{{.*}}, %[[T]]
// CHECK: %[[E:.*]] = oriel.exp %{{.*}} : (tensor<f32>) -> tensor<f32>
// CHECK: %[[E16:.*]] = oriel.cast %[[E]] : (tensor<f32>) -> tensor<bf16>
// CHECK: oriel.mul %[[M]], %[[E16]]
// CHECK: oriel.reduce_sum %[[WIDE]]
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  oriel.parameter @s {onnx_name = "scale", type = tensor<f32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %s: tensor<f32> {oriel.kind = "parameter", oriel.ref = "s"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}, tensor<8xf32> {oriel.kind = "output", oriel.ref = "sums"}) {
    %0 = oriel.transpose %w {permutation = array<i64: 1, 0>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
    %1 = oriel.matmul %x, %0 : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.exp %s : (tensor<f32>) -> tensor<f32>
    %3 = oriel.mul %1, %2 : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
    %4 = oriel.reduce_sum %w {dims = array<i64: 0>} : (tensor<8x8xf32>) -> tensor<8xf32>
    return %3, %4 : tensor<4x8xf32>, tensor<8xf32>
  }
}

// -----

// The lowest f32 in a mask stays finite: a constant is converted so, a computed one is kept above.
// A mask of an attention stays f32.
// CHECK-LABEL: func.func @main(
// CHECK: oriel.constant {value = dense<[-3.389530e+38, 0.000000e+00]> : tensor<2xbf16>}
// CHECK: %[[MASK:.*]] = oriel.mul {{.*}} -> tensor<2x2xf32>
// CHECK: %[[BOUND:.*]] = oriel.constant {value = dense<-3.38953139E+38> : tensor<f32>}
// CHECK: %[[ABOVE:.*]] = oriel.max %[[MASK]], %[[BOUND]]
// CHECK: %[[MASK16:.*]] = oriel.cast %[[ABOVE]] : (tensor<2x2xf32>) -> tensor<2x2xbf16>
// CHECK: oriel.add %{{.*}}, %[[MASK16]] {{.*}} -> tensor<2x2xbf16>
// CHECK: oriel.softmax {{.*}} -> tensor<2x2xbf16>
// CHECK: %[[MASK4:.*]] = oriel.reshape %[[MASK]] : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
// CHECK: oriel.attention %{{.*}}, %[[MASK4]] {{.*}} -> (tensor<1x1x2x2xbf16>, tensor<1x1x2xf32>)
module {
  func.func @main(%x: tensor<2x2xf32> {oriel.kind = "input", oriel.ref = "x"},
      %keep: tensor<2x2xi64> {oriel.kind = "input", oriel.ref = "keep"})
      -> (tensor<2x2xf32> {oriel.kind = "output", oriel.ref = "logits"}, tensor<1x1x2x2xf32> {oriel.kind = "output", oriel.ref = "heads"}) {
    %fixed = oriel.constant {value = dense<[-3.40282347E+38, 0.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %lowest = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
    %0 = oriel.cast %keep : (tensor<2x2xi64>) -> tensor<2x2xf32>
    %1 = oriel.mul %0, %lowest : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
    %2 = oriel.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %3 = oriel.add %2, %fixed : (tensor<2x2xf32>, tensor<2xf32>) -> tensor<2x2xf32>
    %4 = oriel.add %3, %1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %5 = oriel.softmax %4 {dim = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    %6 = oriel.reshape %1 : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %7 = oriel.reshape %2 : (tensor<2x2xf32>) -> tensor<1x1x2x2xf32>
    %8, %lse = oriel.attention %7, %7, %7, %6 {scale = 1.0 : f64} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2xf32>)
    return %5, %8 : tensor<2x2xf32>, tensor<1x1x2x2xf32>
  }
}

// -----

// A mask of an input of floats is finite in bf16 too.
// CHECK-LABEL: func.func @main(
// CHECK: %[[MASK:.*]] = oriel.mul %{{.*}}, %{{.*}} : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
// CHECK: %[[FINITE:.*]] = oriel.max %[[MASK]], %{{.*}} -> tensor<2x2xf32>
// CHECK: %[[NARROW:.*]] = oriel.cast %[[FINITE]] : (tensor<2x2xf32>) -> tensor<2x2xbf16>
// CHECK: oriel.add %{{.*}}, %[[NARROW]] {{.*}} -> tensor<2x2xbf16>
module {
  func.func @main(%x: tensor<2x2xf32> {oriel.kind = "input", oriel.ref = "x"},
      %keep: tensor<2x2xf32> {oriel.kind = "input", oriel.ref = "keep"})
      -> (tensor<2x2xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %lowest = oriel.constant {value = dense<-3.40282347E+38> : tensor<f32>} : () -> tensor<f32>
    %1 = oriel.mul %keep, %lowest : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
    %2 = oriel.matmul %x, %x : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %4 = oriel.add %2, %1 : (tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
    %5 = oriel.softmax %4 {dim = 1 : i64} : (tensor<2x2xf32>) -> tensor<2x2xf32>
    return %5 : tensor<2x2xf32>
  }
}

// -----

// A norm is f32, and so are its weights; the residual stream around it is bf16.
// CHECK-DAG: oriel.parameter @g {onnx_name = "norm.weight", type = tensor<8xf32>}
// CHECK-LABEL: func.func @main(
// CHECK: %[[X:.*]] = oriel.linear {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = oriel.cast %[[X]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[NORM:.*]], %{{.*}} = oriel.rms_norm %[[WIDE]], %{{.*}} -> (tensor<4x8xf32>, tensor<4xf32>)
// CHECK-NEXT: %[[NARROW:.*]] = oriel.cast %[[NORM]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT: %[[Y:.*]] = oriel.linear %[[NARROW]]
// CHECK-NEXT: oriel.add %[[X]], %[[Y]] {{.*}} -> tensor<4x8xbf16>
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  oriel.parameter @g {onnx_name = "norm.weight", type = tensor<8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %g: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "g"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1, %r = oriel.rms_norm %0, %g {epsilon = 1.0e-6 : f64} : (tensor<4x8xf32>, tensor<8xf32>) -> (tensor<4x8xf32>, tensor<4xf32>)
    %2 = oriel.linear %1, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.add %0, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %3 : tensor<4x8xf32>
  }
}

// -----

// Parts of one tensor have one type: the query of a learned probe is no activation, so that its
// part is used in f32 (the attention pooling of SigLIP, Zhai et al. 2023).
// CHECK: oriel.parameter @q {{{.*}}type = tensor<8x8xbf16>}
// CHECK: oriel.parameter @k {{{.*}}type = tensor<8x8xbf16>}
// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[PROBE:[a-z0-9]+]]: tensor<4x8xf32> {{[^,]*}}, oriel.ref = "probe"}, %[[Q:[a-z0-9]+]]: tensor<8x8xbf16>
// CHECK: %[[WIDE:.*]] = oriel.cast %[[Q]] : (tensor<8x8xbf16>) -> tensor<8x8xf32>
// CHECK: oriel.linear %[[PROBE]], %[[WIDE]] {{.*}} -> tensor<4x8xf32>
module {
  oriel.parameter @probe {onnx_name = "probe", type = tensor<4x8xf32>}
  oriel.parameter @q {onnx_name = "in_proj", oriel.start = array<i64: 0, 0>, oriel.whole = array<i64: 16, 8>, type = tensor<8x8xf32>}
  oriel.parameter @k {onnx_name = "in_proj", oriel.start = array<i64: 8, 0>, oriel.whole = array<i64: 16, 8>, type = tensor<8x8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %probe: tensor<4x8xf32> {oriel.kind = "parameter", oriel.ref = "probe"},
      %q: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "q"},
      %k: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "k"})
      -> (tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %probe, %q : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.linear %x, %k : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.add %0, %1 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %2 : tensor<4x8xf32>
  }
}

// -----

// Positions (deformable attention, Zhu et al. 2021): the offsets are bf16, as what gives them, and
// what is added to them is f32 up to the whole number and the rest.
// CHECK-LABEL: func.func @main(
// CHECK: %[[OFFSETS:.*]] = oriel.linear {{.*}} -> tensor<4x8xbf16>
// CHECK-NEXT: %[[WIDE:.*]] = oriel.cast %[[OFFSETS]] : (tensor<4x8xbf16>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[AT:.*]] = oriel.add %[[WIDE]], %arg2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK-NEXT: %[[BELOW:.*]] = oriel.floor %[[AT]] : (tensor<4x8xf32>)
// CHECK-NEXT: oriel.cast %[[BELOW]] : (tensor<4x8xf32>) -> tensor<4x8xi64>
// CHECK-NEXT: %[[REST:.*]] = oriel.sub %[[AT]], %[[BELOW]] {{.*}} -> tensor<4x8xf32>
// CHECK-NEXT: %[[REST16:.*]] = oriel.cast %[[REST]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
// CHECK-NEXT: oriel.mul %[[OFFSETS]], %[[REST16]] {{.*}} -> tensor<4x8xbf16>
module {
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  func.func @main(%x: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"},
      %points: tensor<4x8xf32> {oriel.kind = "input", oriel.ref = "points"})
      -> (tensor<4x8xi64> {oriel.kind = "output", oriel.ref = "place"}, tensor<4x8xf32> {oriel.kind = "output", oriel.ref = "logits"}) {
    %0 = oriel.linear %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
    %1 = oriel.add %0, %points : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %2 = oriel.floor %1 : (tensor<4x8xf32>) -> tensor<4x8xf32>
    %3 = oriel.cast %2 : (tensor<4x8xf32>) -> tensor<4x8xi64>
    %4 = oriel.sub %1, %2 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    %5 = oriel.mul %0, %4 : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
    return %3, %5 : tensor<4x8xi64>, tensor<4x8xf32>
  }
}

// -----

// A norm's result is rounded once: what moves or rotates it is bf16, what is wide reads it as it was.
// CHECK-LABEL: func.func @main(
// CHECK: %[[NORM:.*]], %[[INV:.*]] = oriel.rms_norm {{.*}} -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
// CHECK-NEXT: %[[NARROW:.*]] = oriel.cast %[[NORM]] : (tensor<2x4x8xf32>) -> tensor<2x4x8xbf16>
// CHECK-NEXT: %[[MOVED:.*]] = oriel.transpose %[[NARROW]] {{.*}} -> tensor<4x2x8xbf16>
// CHECK-NEXT: oriel.linear %[[MOVED]]
// CHECK: oriel.exp %[[NORM]] : (tensor<2x4x8xf32>)
// CHECK-NEXT: oriel.cast %[[NORM]] : (tensor<2x4x8xf32>) -> tensor<2x4x8xi64>
module {
  oriel.parameter @g {onnx_name = "g", type = tensor<8xf32>}
  oriel.parameter @w {onnx_name = "w", type = tensor<8x8xf32>}
  func.func @main(%x: tensor<2x4x8xf32> {oriel.kind = "input", oriel.ref = "x"},
      %g: tensor<8xf32> {oriel.kind = "parameter", oriel.ref = "g"},
      %w: tensor<8x8xf32> {oriel.kind = "parameter", oriel.ref = "w"})
      -> (tensor<4x2x8xf32> {oriel.kind = "output", oriel.ref = "logits"}, tensor<2x4x8xf32> {oriel.kind = "output", oriel.ref = "e"}, tensor<2x4x8xi64> {oriel.kind = "output", oriel.ref = "places"}) {
    %0, %r = oriel.rms_norm %x, %g {epsilon = 1.0e-6 : f64} : (tensor<2x4x8xf32>, tensor<8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4xf32>)
    %1 = oriel.transpose %0 {permutation = array<i64: 1, 0, 2>} : (tensor<2x4x8xf32>) -> tensor<4x2x8xf32>
    %2 = oriel.linear %1, %w : (tensor<4x2x8xf32>, tensor<8x8xf32>) -> tensor<4x2x8xf32>
    %3 = oriel.exp %0 : (tensor<2x4x8xf32>) -> tensor<2x4x8xf32>
    %4 = oriel.cast %0 : (tensor<2x4x8xf32>) -> tensor<2x4x8xi64>
    return %2, %3, %4 : tensor<4x2x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xi64>
  }
}
