// Functions that vjp_test differentiates: see tests/vjp/vjp_test.cc.

func.func @attention_plain(%q: tensor<2x2x3x4xf64>, %k: tensor<2x2x5x4xf64>, %v: tensor<2x2x5x4xf64>) -> tensor<2x2x3x4xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7} : (tensor<2x2x3x4xf64>, tensor<2x2x5x4xf64>, tensor<2x2x5x4xf64>) -> (tensor<2x2x3x4xf64>, tensor<2x2x3xf64>)
  return %0 : tensor<2x2x3x4xf64>
}

func.func @attention_causal(%q: tensor<1x2x4x3xf64>, %k: tensor<1x2x4x3xf64>, %v: tensor<1x2x4x3xf64>) -> tensor<1x2x4x3xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7, causal = true} : (tensor<1x2x4x3xf64>, tensor<1x2x4x3xf64>, tensor<1x2x4x3xf64>) -> (tensor<1x2x4x3xf64>, tensor<1x2x4xf64>)
  return %0 : tensor<1x2x4x3xf64>
}

// Position i sees keys up to i + t - s.
func.func @attention_causal_longer_keys(%q: tensor<1x1x2x3xf64>, %k: tensor<1x1x5x3xf64>, %v: tensor<1x1x5x3xf64>) -> tensor<1x1x2x3xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7, causal = true} : (tensor<1x1x2x3xf64>, tensor<1x1x5x3xf64>, tensor<1x1x5x3xf64>) -> (tensor<1x1x2x3xf64>, tensor<1x1x2xf64>)
  return %0 : tensor<1x1x2x3xf64>
}

// Two query heads to a key head.
func.func @attention_grouped(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x3x2xf64>, %v: tensor<2x2x3x2xf64>) -> tensor<2x4x3x2xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7} : (tensor<2x4x3x2xf64>, tensor<2x2x3x2xf64>, tensor<2x2x3x2xf64>) -> (tensor<2x4x3x2xf64>, tensor<2x4x3xf64>)
  return %0 : tensor<2x4x3x2xf64>
}

// Values wider than keys.
func.func @attention_grouped_causal(%q: tensor<1x6x3x2xf64>, %k: tensor<1x2x4x2xf64>, %v: tensor<1x2x4x5xf64>) -> tensor<1x6x3x5xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7, causal = true} : (tensor<1x6x3x2xf64>, tensor<1x2x4x2xf64>, tensor<1x2x4x5xf64>) -> (tensor<1x6x3x5xf64>, tensor<1x6x3xf64>)
  return %0 : tensor<1x6x3x5xf64>
}

// The mask repeats over the heads.
func.func @attention_boolean_mask(%q: tensor<2x2x2x2xf64>, %k: tensor<2x1x3x2xf64>, %v: tensor<2x1x3x2xf64>) -> tensor<2x2x2x2xf64> {
  %m = oriel.constant {value = dense<[[[[true, false, true], [true, true, false]]], [[[false, true, false], [true, true, true]]]]> : tensor<2x1x2x3xi1>} : () -> tensor<2x1x2x3xi1>
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7} : (tensor<2x2x2x2xf64>, tensor<2x1x3x2xf64>, tensor<2x1x3x2xf64>, tensor<2x1x2x3xi1>) -> (tensor<2x2x2x2xf64>, tensor<2x2x2xf64>)
  return %0 : tensor<2x2x2x2xf64>
}

func.func @attention_boolean_key_mask(%q: tensor<2x1x2x2xf64>, %k: tensor<2x1x3x2xf64>, %v: tensor<2x1x3x2xf64>) -> tensor<2x1x2x2xf64> {
  %m = oriel.constant {value = dense<[[[[true, true, false]]], [[[true, true, true]]]]> : tensor<2x1x1x3xi1>} : () -> tensor<2x1x1x3xi1>
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7, causal = true} : (tensor<2x1x2x2xf64>, tensor<2x1x3x2xf64>, tensor<2x1x3x2xf64>, tensor<2x1x1x3xi1>) -> (tensor<2x1x2x2xf64>, tensor<2x1x2xf64>)
  return %0 : tensor<2x1x2x2xf64>
}

// Its result is 0, whatever the operands.
func.func @attention_row_without_keys(%q: tensor<1x1x2x2xf64>, %k: tensor<1x1x3x2xf64>, %v: tensor<1x1x3x2xf64>) -> tensor<1x1x2x2xf64> {
  %m = oriel.constant {value = dense<[[[[false, false, false], [true, true, false]]]]> : tensor<1x1x2x3xi1>} : () -> tensor<1x1x2x3xi1>
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7} : (tensor<1x1x2x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x2x3xi1>) -> (tensor<1x1x2x2xf64>, tensor<1x1x2xf64>)
  return %0 : tensor<1x1x2x2xf64>
}

// Added to the scores.
func.func @attention_float_mask(%q: tensor<1x2x2x2xf64>, %k: tensor<1x2x3x2xf64>, %v: tensor<1x2x3x2xf64>) -> tensor<1x2x2x2xf64> {
  %m = oriel.constant {value = dense<[[[[0.5, -1.0, 0.25], [0.0, -2.0, 1.0]]]]> : tensor<1x1x2x3xf64>} : () -> tensor<1x1x2x3xf64>
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7} : (tensor<1x2x2x2xf64>, tensor<1x2x3x2xf64>, tensor<1x2x3x2xf64>, tensor<1x1x2x3xf64>) -> (tensor<1x2x2x2xf64>, tensor<1x2x2xf64>)
  return %0 : tensor<1x2x2x2xf64>
}

// Position i sees the two keys up to its own.
func.func @attention_window(%q: tensor<1x2x4x3xf64>, %k: tensor<1x2x4x3xf64>, %v: tensor<1x2x4x3xf64>) -> tensor<1x2x4x3xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7, causal = true, window = 2 : i64} : (tensor<1x2x4x3xf64>, tensor<1x2x4x3xf64>, tensor<1x2x4x3xf64>) -> (tensor<1x2x4x3xf64>, tensor<1x2x4xf64>)
  return %0 : tensor<1x2x4x3xf64>
}

func.func @attention_capped(%q: tensor<1x2x3x3xf64>, %k: tensor<1x2x4x3xf64>, %v: tensor<1x2x4x3xf64>) -> tensor<1x2x3x3xf64> {
  %m = oriel.constant {value = dense<[[[[0.5, -1.0, 0.25, 0.0]]]]> : tensor<1x1x1x4xf64>} : () -> tensor<1x1x1x4xf64>
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7, softcap = 1.5} : (tensor<1x2x3x3xf64>, tensor<1x2x4x3xf64>, tensor<1x2x4x3xf64>, tensor<1x1x1x4xf64>) -> (tensor<1x2x3x3xf64>, tensor<1x2x3xf64>)
  return %0 : tensor<1x2x3x3xf64>
}

// Heads after positions, two query heads to a key head.
func.func @attention_sequence_first(%q: tensor<2x3x4x2xf64>, %k: tensor<2x5x2x2xf64>, %v: tensor<2x5x2x3xf64>) -> tensor<2x3x4x3xf64> {
  %0, %1 = oriel.attention %q, %k, %v {scale = 0.7, causal = true, sequence_first = true} : (tensor<2x3x4x2xf64>, tensor<2x5x2x2xf64>, tensor<2x5x2x3xf64>) -> (tensor<2x3x4x3xf64>, tensor<2x4x3xf64>)
  return %0 : tensor<2x3x4x3xf64>
}

func.func @rope(%x: tensor<2x2x3x4xf64>) -> tensor<2x2x3x4xf64> {
  %a = oriel.constant {value = dense<[[[[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2]]]]> : tensor<1x1x3x4xf64>} : () -> tensor<1x1x3x4xf64>
  %c = oriel.cos %a : (tensor<1x1x3x4xf64>) -> tensor<1x1x3x4xf64>
  %s = oriel.sin %a : (tensor<1x1x3x4xf64>) -> tensor<1x1x3x4xf64>
  %0 = oriel.rope %x, %c, %s : (tensor<2x2x3x4xf64>, tensor<1x1x3x4xf64>, tensor<1x1x3x4xf64>) -> tensor<2x2x3x4xf64>
  return %0 : tensor<2x2x3x4xf64>
}

func.func @rope_inverse(%x: tensor<2x2x3x4xf64>) -> tensor<2x2x3x4xf64> {
  %a = oriel.constant {value = dense<[[[[0.1, 0.2, 0.3, 0.4]]], [[[0.5, 0.6, 0.7, 0.8]]]]> : tensor<2x1x1x4xf64>} : () -> tensor<2x1x1x4xf64>
  %c = oriel.cos %a : (tensor<2x1x1x4xf64>) -> tensor<2x1x1x4xf64>
  %s = oriel.sin %a : (tensor<2x1x1x4xf64>) -> tensor<2x1x1x4xf64>
  %0 = oriel.rope %x, %c, %s {inverse = true} : (tensor<2x2x3x4xf64>, tensor<2x1x1x4xf64>, tensor<2x1x1x4xf64>) -> tensor<2x2x3x4xf64>
  return %0 : tensor<2x2x3x4xf64>
}

// Neighbours are pairs, with one angle for both.
func.func @rope_interleaved(%x: tensor<2x3x4xf64>) -> tensor<2x3x4xf64> {
  %a = oriel.constant {value = dense<[[[0.1, 0.2], [0.5, 0.6], [0.9, 1.0]]]> : tensor<1x3x2xf64>} : () -> tensor<1x3x2xf64>
  %c = oriel.cos %a : (tensor<1x3x2xf64>) -> tensor<1x3x2xf64>
  %s = oriel.sin %a : (tensor<1x3x2xf64>) -> tensor<1x3x2xf64>
  %0 = oriel.rope %x, %c, %s {interleaved = true} : (tensor<2x3x4xf64>, tensor<1x3x2xf64>, tensor<1x3x2xf64>) -> tensor<2x3x4xf64>
  return %0 : tensor<2x3x4xf64>
}

// The last two of six elements stay.
func.func @rope_partial(%x: tensor<2x3x6xf64>) -> tensor<2x3x6xf64> {
  %a = oriel.constant {value = dense<[[[0.1, 0.2, 0.3, 0.4], [0.5, 0.6, 0.7, 0.8], [0.9, 1.0, 1.1, 1.2]]]> : tensor<1x3x4xf64>} : () -> tensor<1x3x4xf64>
  %c = oriel.cos %a : (tensor<1x3x4xf64>) -> tensor<1x3x4xf64>
  %s = oriel.sin %a : (tensor<1x3x4xf64>) -> tensor<1x3x4xf64>
  %0 = oriel.rope %x, %c, %s {rotary_dim = 4 : i64} : (tensor<2x3x6xf64>, tensor<1x3x4xf64>, tensor<1x3x4xf64>) -> tensor<2x3x6xf64>
  return %0 : tensor<2x3x6xf64>
}

// Learned, for each head; of keys that a window hides too.
func.func @attention_bias(%q: tensor<2x4x3x2xf64>, %k: tensor<2x2x4x2xf64>, %v: tensor<2x2x4x3xf64>, %m: tensor<1x4x3x4xf64>) -> tensor<2x4x3x3xf64> {
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7} : (tensor<2x4x3x2xf64>, tensor<2x2x4x2xf64>, tensor<2x2x4x3xf64>, tensor<1x4x3x4xf64>) -> (tensor<2x4x3x3xf64>, tensor<2x4x3xf64>)
  return %0 : tensor<2x4x3x3xf64>
}

func.func @attention_bias_in_reach(%q: tensor<1x4x2x2xf64>, %k: tensor<1x5x2x2xf64>, %v: tensor<1x5x2x2xf64>, %m: tensor<1x1x4x5xf64>) -> tensor<1x4x2x2xf64> {
  %0, %1 = oriel.attention %q, %k, %v, %m {scale = 0.7, causal = true, window = 2 : i64, softcap = 1.5, sequence_first = true} : (tensor<1x4x2x2xf64>, tensor<1x5x2x2xf64>, tensor<1x5x2x2xf64>, tensor<1x1x4x5xf64>) -> (tensor<1x4x2x2xf64>, tensor<1x2x4xf64>)
  return %0 : tensor<1x4x2x2xf64>
}

// Some keys are hidden beside what is learned, and one query sees none.
func.func @attention_bias_and_hidden_keys(%q: tensor<1x1x3x2xf64>, %k: tensor<1x1x3x2xf64>, %v: tensor<1x1x3x2xf64>, %m: tensor<1x1x3x3xf64>) -> tensor<1x1x3x2xf64> {
  %hidden = oriel.constant {value = dense<[[[[0.0, 0xFFF0000000000000, 0.0], [0xFFF0000000000000, 0xFFF0000000000000, 0xFFF0000000000000], [0.0, 0.0, 0.0]]]]> : tensor<1x1x3x3xf64>} : () -> tensor<1x1x3x3xf64>
  %mask = oriel.add %m, %hidden : (tensor<1x1x3x3xf64>, tensor<1x1x3x3xf64>) -> tensor<1x1x3x3xf64>
  %0, %1 = oriel.attention %q, %k, %v, %mask {scale = 0.7} : (tensor<1x1x3x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x3x3xf64>) -> (tensor<1x1x3x2xf64>, tensor<1x1x3xf64>)
  return %0 : tensor<1x1x3x2xf64>
}

// A score of each head whose value is 0.
func.func @attention_sink(%q: tensor<2x2x3x4xf64>, %k: tensor<2x2x5x4xf64>, %v: tensor<2x2x5x4xf64>, %s: tensor<2xf64>) -> tensor<2x2x3x4xf64> {
  %0, %1 = oriel.attention %q, %k, %v sink %s {scale = 0.7} : (tensor<2x2x3x4xf64>, tensor<2x2x5x4xf64>, tensor<2x2x5x4xf64>, tensor<2xf64>) -> (tensor<2x2x3x4xf64>, tensor<2x2x3xf64>)
  return %0 : tensor<2x2x3x4xf64>
}

// The cotangents of a learned mask and of sinks; with the heads behind positions.
func.func @attention_mask_and_sink(%q: tensor<2x3x4x2xf64>, %k: tensor<2x4x2x2xf64>, %v: tensor<2x4x2x3xf64>, %m: tensor<1x4x3x4xf64>, %s: tensor<4xf64>) -> tensor<2x3x4x3xf64> {
  %0, %1 = oriel.attention %q, %k, %v, %m sink %s {scale = 0.7, causal = true, window = 2 : i64, softcap = 1.5, sequence_first = true} : (tensor<2x3x4x2xf64>, tensor<2x4x2x2xf64>, tensor<2x4x2x3xf64>, tensor<1x4x3x4xf64>, tensor<4xf64>) -> (tensor<2x3x4x3xf64>, tensor<2x4x3xf64>)
  return %0 : tensor<2x3x4x3xf64>
}

// A row that sees nothing but its sink.
func.func @attention_sink_alone(%q: tensor<1x1x2x2xf64>, %k: tensor<1x1x3x2xf64>, %v: tensor<1x1x3x2xf64>, %s: tensor<1xf64>) -> tensor<1x1x2x2xf64> {
  %m = oriel.constant {value = dense<[[[[false, false, false], [true, true, false]]]]> : tensor<1x1x2x3xi1>} : () -> tensor<1x1x2x3xi1>
  %0, %1 = oriel.attention %q, %k, %v, %m sink %s {scale = 0.7} : (tensor<1x1x2x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x3x2xf64>, tensor<1x1x2x3xi1>, tensor<1xf64>) -> (tensor<1x1x2x2xf64>, tensor<1x1x2xf64>)
  return %0 : tensor<1x1x2x2xf64>
}
