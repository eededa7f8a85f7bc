// Mixtures of experts: products of each row with the matrices that it chooses.
#ifndef ORIEL_IR_ORIEL_EXPERTS_TD
#define ORIEL_IR_ORIEL_EXPERTS_TD

include "ir/oriel/base.td"

def ExpertLinearOp : Oriel_Op<"expert_linear",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight, Oriel_IndexTensor:$choice,
         Optional<Oriel_First>:$first,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$experts),
    [Differentiable, FlopsOp, InferTypes, PreciseOp, RebuiltShardedOp]> {
  let summary = "Linear layers of the experts that each row chooses";
  let description = [{
    `result[r.., c, n] = Σ_k input[r.., c, k] weight[choice[r.., c], k, n]`: a row has as many
    results as it has choices. The input is `[r.., c, k]`, a row for each choice, or `[r.., k]`,
    the same for all. With `transpose_weight` the weight is stored as `[e, n, k]`. A choice that
    names no expert is a runtime error (a negative one counts from the end). An expert may be
    chosen by no row, or by all.

    With `first` and `experts` the weight is of the experts from `first` on, of `experts` in all:
    choices are among all, and one of another piece gives zeros. No derivative: autodiff comes
    before the partition.

    Example: `%3 = oriel.expert_linear %x, %w, %choice {transpose_weight = true} :
    (tensor<2x8x64xf32>, tensor<16x256x64xf32>, tensor<2x8x4xi64>) -> tensor<2x8x4x256xf32>`.
    Made by `raise` of products with all experts' matrices of which the gates leave few, and by
    autodiff, on pieces by `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def ExpertLinearWeightGradOp : Oriel_Op<"expert_linear_weight_grad",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cotangent, Oriel_IndexTensor:$choice,
         Optional<Oriel_First>:$first,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$experts),
    [FlopsOp, RebuiltShardedOp, WideSumOp]> {
  let summary = "Cotangent of the weights of experts";
  let description = [{
    `result[e, k, n] = Σ input[r.., c, k] cotangent[r.., c, n]` over all `r.., c` of which
    `choice[r.., c] = e`, stored as `[e, n, k]` with `transpose_weight`; 0 for an expert that no
    row chooses. The input is that of `expert_linear`, as are `first` and `experts`. The result
    may be f32 where the operands are narrower. Made by autodiff, on pieces by `partition`; removed
    by `lower`.

    Example: `%3 = oriel.expert_linear_weight_grad %x, %dy, %choice : (tensor<2x8x64xf32>,
    tensor<2x8x4x256xf32>, tensor<2x8x4xi64>) -> tensor<16x64x256xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

#endif
