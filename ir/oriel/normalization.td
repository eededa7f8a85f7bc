// Normalisations over the last dimension, softmax, and their derivatives.
#ifndef ORIEL_IR_ORIEL_NORMALIZATION_TD
#define ORIEL_IR_ORIEL_NORMALIZATION_TD

include "ir/oriel/base.td"

def LayerNormOp : Oriel_Op<"layer_norm",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Optional<Oriel_FloatTensor>:$bias, Oriel_FloatAttr:$epsilon),
    [Differentiable, InferTypes, PreciseOp, SameOperandsElementType, SteppedShardedOp]> {
  let summary = "Layer normalisation over the last dimension";
  let description = [{
    `result = (x - mean) * inv_std * weight + bias` with `inv_std = 1/√(var + epsilon)`
    and the biased variance (Ba et al. 2016, eq. 3-4). `mean` and `inv_std` have the
    input's shape less the last dimension, at least f32, and are kept for the backward.

    Example: `%y, %mean, %inv_std = oriel.layer_norm %x, %w, %b {epsilon = 1.0e-5} :
    (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>,
    tensor<2x8xf32>, tensor<2x8xf32>)`. Made by the importer and `raise`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result, Oriel_FloatTensor:$mean,
                      Oriel_FloatTensor:$inv_std);
}

def LayerNormGradOp : Oriel_Op<"layer_norm_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input,
         Oriel_FloatTensor:$weight, Oriel_FloatTensor:$mean, Oriel_FloatTensor:$inv_std),
    [InferWideTypes, SteppedShardedOp, WideSumOp]> {
  let summary = "Cotangents of layer normalisation";
  let description = [{
    With x̂ = (x - mean) inv_std and g = cotangent * weight:
    `input_grad = inv_std (g - avg(g) - x̂ avg(g x̂))`, `weight_grad = Σ cotangent x̂`,
    `bias_grad = Σ cotangent` (sums over all rows, which may be f32 where the operands are
    narrower). Made by autodiff; removed by `lower`.

    Example: `%2:3 = oriel.layer_norm_grad %dy, %x, %w, %mean, %inv_std :
    (tensor<2x8x64xf32>, tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>,
    tensor<2x8xf32>) -> (tensor<2x8x64xf32>, tensor<64xf32>, tensor<64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$weight_grad,
                      Oriel_FloatTensor:$bias_grad);
}

def RmsNormOp : Oriel_Op<"rms_norm",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight, Oriel_FloatAttr:$epsilon,
         DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$weight_offset),
    [Differentiable, InferTypes, PreciseOp, SameOperandsElementType, SteppedShardedOp]> {
  let summary = "Root-mean-square normalisation over the last dimension";
  let description = [{
    `result = x * inv_rms * (weight + weight_offset)`, `inv_rms = 1/√(avg(x²) + epsilon)`
    (Zhang and Sennrich 2019, eq. 4; an offset of 1 is for weights stored as their distance
    from 1). `inv_rms`, at least f32, is kept for the backward.

    Example: `%y, %inv_rms = oriel.rms_norm %x, %w {epsilon = 1.0e-6} :
    (tensor<2x8x64xf32>, tensor<64xf32>) -> (tensor<2x8x64xf32>, tensor<2x8xf32>)`.
    Made by `raise` and the importer; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result, Oriel_FloatTensor:$inv_rms);
}

def RmsNormGradOp : Oriel_Op<"rms_norm_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input,
         Oriel_FloatTensor:$weight, Oriel_FloatTensor:$inv_rms,
         DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$weight_offset),
    [InferWideTypes, SteppedShardedOp, WideSumOp]> {
  let summary = "Cotangents of root-mean-square normalisation";
  let description = [{
    With x̂ = x inv_rms and g = cotangent * (weight + weight_offset):
    `input_grad = inv_rms (g - x̂ avg(g x̂))`, `weight_grad = Σ cotangent x̂` (over all
    rows; it may be f32 where the operands are narrower). Made by autodiff; removed by `lower`.

    Example: `%4:2 = oriel.rms_norm_grad %dy, %x, %w, %inv_rms : (tensor<2x8x64xf32>,
    tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>) -> (tensor<2x8x64xf32>,
    tensor<64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$weight_grad);
}

def SoftmaxOp : Oriel_Op<"softmax", (ins Oriel_FloatTensor:$input, Oriel_IntAttr:$dim),
    [Differentiable, SameOperandsAndResultType, OverwritingOp, PreciseOp, SteppedShardedOp]> {
  let summary = "Softmax along one dimension";
  let description = [{
    `exp(x - max) / Σ exp(x - max)`; a row of -inf alone gives NaN.

    Example: `%1 = oriel.softmax %0 {dim = 1 : i64} : (tensor<4x8xf32>) -> tensor<4x8xf32>`.
    Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

def SoftmaxGradOp : Oriel_Op<"softmax_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$output, Oriel_IntAttr:$dim),
    [SameOperandsAndResultType, SteppedShardedOp]> {
  let summary = "Cotangent of softmax's input";
  let description = [{
    `output * (cotangent - Σ cotangent * output)`. Made by autodiff; removed by `lower`.

    Example: `%1 = oriel.softmax_grad %dy, %y {dim = 1 : i64} : (tensor<2x8xf32>,
    tensor<2x8xf32>) -> tensor<2x8xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

#endif
