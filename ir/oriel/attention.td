// Attention and rotary position embedding.
#ifndef ORIEL_IR_ORIEL_ATTENTION_TD
#define ORIEL_IR_ORIEL_ATTENTION_TD

include "ir/oriel/base.td"

def AttentionOp : Oriel_Op<"attention",
    (ins Oriel_FloatTensor:$query, Oriel_FloatTensor:$key, Oriel_FloatTensor:$value,
         Optional<Oriel_Tensor>:$mask, Oriel_FloatAttr:$scale,
         DefaultValuedAttr<BoolAttr, "false">:$causal),
    [Differentiable, FlopsOp, InferTypes]> {
  let summary = "Scaled dot-product attention with grouped queries";
  let description = [{
    Query `[b, h, s, d]`, key `[b, g, t, d]`, value `[b, g, t, e]`, where `g` divides
    `h` and query head `i` attends to key head `i / (h/g)`. The result `[b, h, s, e]` is
    `softmax(scale * q kᵀ + mask) v` (Vaswani et al. 2017, eq. 1). `mask` has rank 4 and
    broadcasts to `[b, h, s, t]`: a boolean one keeps the true positions, a float one is
    added. With `causal`, position `i` sees keys up to `i + t - s`. A row that sees
    nothing gives 0. `logsumexp` `[b, h, s]` is kept for the backward.

    Example: `%o, %lse = oriel.attention %q, %k, %v {scale = 0.25, causal = true} :
    (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>) ->
    (tensor<2x4x8x16xf32>, tensor<2x4x8xf32>)`. Made by `raise` and by the importer;
    removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result, Oriel_FloatTensor:$logsumexp);
}

def AttentionGradOp : Oriel_Op<"attention_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$query,
         Oriel_FloatTensor:$key, Oriel_FloatTensor:$value,
         Oriel_FloatTensor:$output, Oriel_FloatTensor:$logsumexp,
         Optional<Oriel_Tensor>:$mask, Oriel_FloatAttr:$scale,
         DefaultValuedAttr<BoolAttr, "false">:$causal),
    [FlopsOp, InferTypes]> {
  let summary = "Cotangents of attention's query, key and value";
  let description = [{
    The probabilities are computed again from `logsumexp` (Dao et al. 2022, algorithm 4).
    Made by autodiff; removed by `lower`.

    Example: `%2:3 = oriel.attention_grad %do, %q, %k, %v, %o, %lse {scale = 0.25, causal
    = true} : (tensor<2x4x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>,
    tensor<2x2x8x16xf32>, tensor<2x4x8x16xf32>, tensor<2x4x8xf32>) ->
    (tensor<2x4x8x16xf32>, tensor<2x2x8x16xf32>, tensor<2x2x8x16xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$query_grad, Oriel_FloatTensor:$key_grad,
                      Oriel_FloatTensor:$value_grad);
}

def RopeOp : Oriel_Op<"rope",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cos, Oriel_FloatTensor:$sin,
         DefaultValuedAttr<BoolAttr, "false">:$inverse),
    [Differentiable, SameOperandsElementType, InferTypes]> {
  let summary = "Rotary position embedding on halves";
  let description = [{
    With `x = [x1, x2]` split in halves of the last dimension and likewise cos and sin:
    `result = x * cos + [-x2, x1] * sin` (Su et al. 2021, eq. 34, in the half-split
    layout). `cos` and `sin` have the input's rank, and each of their dimensions equals the
    input's or is 1. `inverse` gives the transposed map: `x * cos + [x2 * sin2, -x1 * sin1]`.
    No cotangent reaches cos and sin.

    Example: `%1 = oriel.rope %x, %cos, %sin : (tensor<2x4x8x16xf32>,
    tensor<1x1x8x16xf32>, tensor<1x1x8x16xf32>) -> tensor<2x4x8x16xf32>`. Made by
    `raise`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

#endif
