// Each message of the verifiers of attention.td.
// RUN: oriel-opt %s -split-input-file -verify-diagnostics

func.func @query_rank(%q: tensor<4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x16xf32>) {
  // expected-error@+2 {{expects a query of rank 4, got the shape [4, 8, 16]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @key_rank(%q: tensor<2x4x8x16xf32>, %k: tensor<2x6x16xf32>, %v: tensor<2x2x6x16xf32>) {
  // expected-error@+2 {{expects a key of rank 4, got the shape [2, 6, 16]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x6x16xf32>, tensor<2x2x6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @value_rank(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<6x16xf32>) {
  // expected-error@+2 {{expects a value of rank 4, got the shape [6, 16]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @key_shape(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x8xf32>, %v: tensor<2x2x6x16xf32>) {
  // expected-error@+2 {{expects a key of shape [2, 2, 6, 16], got [2, 2, 6, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x8xf32>, tensor<2x2x6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @key_element_type(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf64>, %v: tensor<2x2x6x16xf32>) {
  // expected-error@+2 {{expects a key with elements of type 'f32', got 'tensor<2x2x6x16xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf64>, tensor<2x2x6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @value_shape(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x7x16xf32>) {
  // expected-error@+2 {{expects a value of shape [2, 2, 6, 16], got [2, 2, 7, 16]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x7x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @value_element_type(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x16xf16>) {
  // expected-error@+2 {{expects a value with elements of type 'f32', got 'tensor<2x2x6x16xf16>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf16>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @heads_do_not_divide(%q: tensor<2x4x8x16xf32>, %k: tensor<2x3x6x16xf32>, %v: tensor<2x3x6x16xf32>) {
  // expected-error@+2 {{expects a number of key heads that divides the 4 query heads, got 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x3x6x16xf32>, tensor<2x3x6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @no_key_heads(%q: tensor<2x4x8x16xf32>, %k: tensor<2x0x6x16xf32>, %v: tensor<2x0x6x16xf32>) {
  // expected-error@+2 {{expects a number of key heads that divides the 4 query heads, got 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x0x6x16xf32>, tensor<2x0x6x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @mask_shape(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x16xf32>, %m: tensor<8x6xf32>) {
  // expected-error@+2 {{expects a mask of rank 4 that broadcasts to [2, 4, 8, 6], got [8, 6]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v, %m {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>, tensor<8x6xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @mask_element_type(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %v: tensor<2x2x6x16xf32>, %m: tensor<1x1x8x6xi64>) {
  // expected-error@+2 {{expects a mask with elements of type i1 or 'f32', got 'tensor<1x1x8x6xi64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %v, %m {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>, tensor<1x1x8x6xi64>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @grad_of_another_output(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %y: tensor<2x4x8x8xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+2 {{expects an output of type 'tensor<2x4x8x16xf32>', got 'tensor<2x4x8x8xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.attention_grad %q, %q, %k, %k, %y, %lse {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>, tensor<2x4x8x8xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>)
  return
}

// -----

func.func @grad_of_another_cotangent(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %y: tensor<2x4x8x8xf32>, %lse: tensor<2x4x8xf32>) {
  // expected-error@+2 {{expects a cotangent of type 'tensor<2x4x8x16xf32>', got 'tensor<2x4x8x8xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.attention_grad %y, %q, %k, %k, %q, %lse {scale = 0.25 : f64} : (tensor<2x4x8x8xf32>, tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>)
  return
}

// -----

func.func @grad_of_another_logsumexp(%q: tensor<2x4x8x16xf32>, %k: tensor<2x2x6x16xf32>, %lse: tensor<2x4xf32>) {
  // expected-error@+2 {{expects a logsumexp of type 'tensor<2x4x8xf32>', got 'tensor<2x4xf32>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:3 = oriel.attention_grad %q, %q, %k, %k, %q, %lse {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x2x6x16xf32>, tensor<2x2x6x16xf32>)
  return
}

// -----

func.func @rope_odd(%x: tensor<4x7xf32>) {
  // expected-error@+2 {{expects an even number of rotated elements up to the last dimension, got 7 of the shape [4, 7]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.rope %x, %x, %x : (tensor<4x7xf32>, tensor<4x7xf32>, tensor<4x7xf32>) -> tensor<4x7xf32>
  return
}

// -----

func.func @rope_more_than_there_is(%x: tensor<4x8xf32>, %c: tensor<4x10xf32>) {
  // expected-error@+2 {{expects an even number of rotated elements up to the last dimension, got 10 of the shape [4, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.rope %x, %c, %c {rotary_dim = 10 : i64} : (tensor<4x8xf32>, tensor<4x10xf32>, tensor<4x10xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @rope_rank_0(%x: tensor<f32>) {
  // expected-error@+2 {{expects an input of rank at least 1, got rank 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.rope %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @negative_window(%q: tensor<2x4x8x16xf32>) {
  // expected-error@+2 {{expects a window of at least 0, got -1}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %q, %q {scale = 0.25 : f64, window = -1 : i64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @negative_softcap(%q: tensor<2x4x8x16xf32>) {
  // expected-error@+2 {{expects a softcap of at least 0}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %q, %q {scale = 0.25 : f64, softcap = -1.0 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @sink_heads(%q: tensor<2x4x8x16xf32>, %s: tensor<2xf32>) {
  // expected-error@+2 {{expects a sink of shape [4], got [2]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %q, %q sink %s {scale = 0.25 : f64} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2xf32>) -> (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @sink_type(%q: tensor<2x4x8x16xbf16>, %s: tensor<4xf64>) {
  // expected-error@+2 {{expects a sink with elements of type 'bf16', got 'tensor<4xf64>'}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %q, %q sink %s {scale = 0.25 : f64} : (tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<2x4x8x16xbf16>, tensor<4xf64>) -> (tensor<2x4x8x16xbf16>, tensor<2x4x8xf32>)
  return
}

// -----

// With `sequence_first`, a query has its heads in the third dimension.
func.func @sequence_first_heads(%q: tensor<2x8x4x16xf32>, %k: tensor<2x8x3x16xf32>) {
  // expected-error@+2 {{expects a number of key heads that divides the 4 query heads, got 3}}
  // expected-error@+1 {{failed to infer returned types}}
  %0:2 = oriel.attention %q, %k, %k {scale = 0.25 : f64, sequence_first = true} : (tensor<2x8x4x16xf32>, tensor<2x8x3x16xf32>, tensor<2x8x3x16xf32>) -> (tensor<2x8x4x16xf32>, tensor<2x4x8xf32>)
  return
}

// -----

func.func @rope_cos_shape(%x: tensor<4x8xf32>, %c: tensor<8xf32>) {
  // expected-error@+2 {{expects cos of rank 2 that broadcasts to [4, 8] or has half its last dimension, got [8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.rope %x, %c, %x : (tensor<4x8xf32>, tensor<8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// -----

func.func @rope_sin_shape(%x: tensor<4x8xf32>, %c: tensor<3x8xf32>) {
  // expected-error@+2 {{expects sin of rank 2 that broadcasts to [4, 8] or has half its last dimension, got [3, 8]}}
  // expected-error@+1 {{failed to infer returned types}}
  %0 = oriel.rope %x, %x, %c : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<3x8xf32>) -> tensor<4x8xf32>
  return
}
