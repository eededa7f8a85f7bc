// The merge of image features into a sequence of text embeddings.
#ifndef ORIEL_IR_ORIEL_MULTIMODAL_TD
#define ORIEL_IR_ORIEL_MULTIMODAL_TD

include "ir/oriel/base.td"

def MaskedScatterOp : Oriel_Op<"masked_scatter",
    (ins Oriel_Tensor:$input, Oriel_BoolTensor:$mask, Oriel_Tensor:$source),
    [CouplesSamples, Differentiable, InferTypes, PreciseOp]> {
  let summary = "The k-th true position takes the k-th element of the source";
  let description = [{
    Positions count in row-major order over the whole tensor, batch included, so this
    op does not split over the batch. `mask` has the input's shape; `source` any shape
    with enough elements (too few is a runtime error).

    Example: `%3 = oriel.masked_scatter %x, %mask, %source : (tensor<2x8x64xf32>,
    tensor<2x8x64xi1>, tensor<2x4x64xf32>) -> tensor<2x8x64xf32>`. Made by the importer
    from `NonZero`/`ScatterND` clusters; `raise` turns it into `merge_features` where the
    recipe declares the images per sample; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
}

def MaskedScatterGradOp : Oriel_Op<"masked_scatter_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_BoolTensor:$mask)> {
  let summary = "Cotangents of masked_scatter";
  let description = [{
    `input_grad` is the cotangent, zero where the mask is true; `source_grad` gathers the
    masked elements in order, zero beyond them. Made by autodiff; removed by `lower`.

    Example: `%1:2 = oriel.masked_scatter_grad %dy, %mask : (tensor<2x8x64xf32>,
    tensor<2x8x64xi1>) -> (tensor<2x8x64xf32>, tensor<2x4x64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$source_grad);
  let hasVerifier = 1;
}

def MergeFeaturesOp : Oriel_Op<"merge_features",
    (ins Oriel_FloatTensor:$input, Oriel_BoolTensor:$mask, Oriel_FloatTensor:$features),
    [Differentiable, InferTypes, PreciseOp, ShardedOp]> {
  let summary = "Per sample, the k-th masked position takes the k-th feature row";
  let description = [{
    Input `[b, s, d]`, mask `[b, s]`, features `[b, n, d]`:
    `result[i, j] = mask[i, j] ? features[i, r] : input[i, j]`, `r` the number of true
    positions of sample `i` before `j`. A sample has at
    most `n` true positions (more is a runtime error that names it); features beyond them are
    dummies, and get no cotangent.

    Example: `%3 = oriel.merge_features %x, %mask, %f : (tensor<2x64x64xf32>,
    tensor<2x64xi1>, tensor<2x49x64xf32>) -> tensor<2x64x64xf32>`. Made by `raise`;
    removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def CheckImageSlotsOp : Oriel_Op<"check_image_slots",
    (ins Oriel_BoolTensor:$mask, Oriel_IndexTensor:$images, Oriel_IntAttr:$rows_per_image),
    [InferTypes, ShardedOp]> {
  let summary = "The mask, if each sample has as many image positions as its images take";
  let description = [{
    Mask `[b, s]`, images `[b]` (i64): how many images each sample brought. The result is the
    mask; a sample whose true positions are not `images[i] * rows_per_image` is a runtime
    error that names it: its text and its images don't belong together.

    Example: `%1 = oriel.check_image_slots %mask, %images {rows_per_image = 49 : i64} :
    (tensor<2x64xi1>, tensor<2xi64>) -> tensor<2x64xi1>`. Made by `raise`; removed by `lower`.
  }];
  let results = (outs Oriel_BoolTensor:$result);
}

def MergeFeaturesGradOp : Oriel_Op<"merge_features_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_BoolTensor:$mask), [ShardedOp]> {
  let summary = "Cotangents of merge_features";
  let description = [{
    `input_grad` `[b, s, d]` is the cotangent, zero at masked positions; `features_grad`
    `[b, n, d]` the masked rows in order, zero beyond them. Made by autodiff; removed by
    `lower`.

    Example: `%1:2 = oriel.merge_features_grad %dy, %mask : (tensor<2x8x64xf32>,
    tensor<2x8xi1>) -> (tensor<2x8x64xf32>, tensor<2x4x64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$features_grad);
  let hasVerifier = 1;
}

#endif
