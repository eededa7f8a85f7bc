// Attention and rotary position embedding.
#ifndef ORIEL_IR_ORIEL_ATTENTION_TD
#define ORIEL_IR_ORIEL_ATTENTION_TD

include "ir/oriel/base.td"

def AttentionOp : Oriel_Op<"attention",
    (ins Oriel_FloatTensor:$query, Oriel_FloatTensor:$key, Oriel_FloatTensor:$value,
         Optional<Oriel_Tensor>:$mask, Optional<Oriel_FloatTensor>:$sink, Oriel_FloatAttr:$scale,
         DefaultValuedAttr<BoolAttr, "false">:$causal,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$window,
         DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$softcap,
         DefaultValuedAttr<BoolAttr, "false">:$sequence_first),
    [AttrSizedOperandSegments, Differentiable, FlopsOp, InferTypes, ShardedOp, TablePreciseOp]> {
  let summary = "Scaled dot-product attention with grouped queries";
  let description = [{
    Query `[b, h, s, d]`, key `[b, g, t, d]`, value `[b, g, t, e]`, where `g` divides
    `h` and query head `i` attends to key head `i / (h/g)`. The result `[b, h, s, e]` is
    `softmax(scale * q kᵀ + mask) v` (Vaswani et al. 2017, eq. 1). `mask` has rank 4 and
    broadcasts to `[b, h, s, t]`: a boolean one keeps the true positions, a float one (of the
    query's element type, or f32) is added. With `causal`, position `i` sees keys up to `i + t - s`; with a `window` of `w > 0`,
    only those after `i + t - s - w`. With a `softcap` of `c > 0`, scores are
    `c tanh(scale * q kᵀ / c)` before the mask (Gemma Team 2024, section 2). A row that sees
    nothing gives 0. `logsumexp` `[b, h, s]`, at least f32, is kept for the backward.

    A `sink` `[h]`, of the query's element type or f32, is one more score of each row of a head,
    whose value is 0: it takes a share of the softmax and of logsumexp, and nothing is added to it
    or hides it (OpenAI 2025, gpt-oss model card, section 2.2; Miller 2023, "Attention is off by
    one", has a sink of 0).

    With `sequence_first`, query, key, value and result are `[b, s, h, d]`, `[b, t, g, d]`,
    `[b, t, g, e]` and `[b, s, h, e]`, as a projection leaves them; mask and logsumexp stay.

    Example: `%o, %lse = oriel.attention %q, %k, %v {scale = 0.25, causal = true} :
    (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) ->
    (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)`; with a mask and a sink, `%q, %k, %v, %mask sink
    %s`. Made by `raise` and by the importer; removed by `lower`.
  }];
  let assemblyFormat = [{
    $query `,` $key `,` $value (`,` $mask^)? (`sink` $sink^)? attr-dict `:`
    functional-type(operands, results)
  }];
  let results = (outs Oriel_FloatTensor:$result, Oriel_FloatTensor:$logsumexp);
}

def AttentionGradOp : Oriel_Op<"attention_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$query,
         Oriel_FloatTensor:$key, Oriel_FloatTensor:$value,
         Oriel_FloatTensor:$output, Oriel_FloatTensor:$logsumexp,
         Optional<Oriel_Tensor>:$mask, Optional<Oriel_FloatTensor>:$sink, Oriel_FloatAttr:$scale,
         DefaultValuedAttr<BoolAttr, "false">:$causal,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$window,
         DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$softcap,
         DefaultValuedAttr<BoolAttr, "false">:$sequence_first),
    [AttrSizedOperandSegments, FlopsOp, InferTypes, ShardedOp]> {
  let summary = "Cotangents of attention's query, key and value";
  let description = [{
    The probabilities are computed again from `logsumexp` (Dao et al. 2022, algorithm 4).
    Attributes and layouts as of `oriel.attention`, whose results are the output and logsumexp.
    Made by autodiff; removed by `lower`.

    Example: `%2:3 = oriel.attention_grad %do, %q, %k, %v, %o, %lse {scale = 0.25, causal
    = true} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>,
    tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>) ->
    (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)`.
  }];
  let assemblyFormat = [{
    $cotangent `,` $query `,` $key `,` $value `,` $output `,` $logsumexp (`,` $mask^)?
    (`sink` $sink^)? attr-dict `:` functional-type(operands, results)
  }];
  let results = (outs Oriel_FloatTensor:$query_grad, Oriel_FloatTensor:$key_grad,
                      Oriel_FloatTensor:$value_grad);
}

def RopeOp : Oriel_Op<"rope",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cos, Oriel_FloatTensor:$sin,
         DefaultValuedAttr<BoolAttr, "false">:$inverse,
         DefaultValuedAttr<BoolAttr, "false">:$interleaved,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$rotary_dim),
    [Differentiable, InferTypes, ShardedOp, TablePreciseOp]> {
  let summary = "Rotary position embedding";
  let description = [{
    Rotates pairs of elements of the last dimension: `(x1, x2)` becomes
    `(x1 * cos1 - x2 * sin1, x2 * cos2 + x1 * sin2)` (Su et al. 2021, eq. 34). Pairs are an
    element of the first half and one of the second, or with `interleaved` two neighbours.
    `rotary_dim` is how many leading elements are rotated, 0 for all; the others stay.

    `cos` and `sin` have the input's rank; their leading dimensions equal the input's or are 1,
    and the last one is the number of rotated elements, half of it (one angle for both of a
    pair), or 1. Their elements have the input's type, or f32. `inverse` gives the transposed map: `(x1 * cos1 + x2 * sin2, x2 * cos2 - x1 *
    sin1)`. No cotangent reaches cos and sin.

    Example: `%1 = oriel.rope %x, %cos, %sin : (tensor<2x4x8x16xf32>,
    tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xf32>`. Made by
    `raise`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

#endif
