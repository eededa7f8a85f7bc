// Recurrences over positions, chunk by chunk.
#ifndef ORIEL_IR_ORIEL_RECURRENCE_TD
#define ORIEL_IR_ORIEL_RECURRENCE_TD

include "ir/oriel/base.td"

def DeltaScanOp : Oriel_Op<"delta_scan",
    (ins Oriel_FloatTensor:$values, Oriel_FloatTensor:$read_keys, Oriel_FloatTensor:$write_keys,
         Oriel_FloatTensor:$decays, Oriel_FloatTensor:$initial,
         Optional<Oriel_FloatTensor>:$added, DefaultValuedAttr<BoolAttr, "false">:$reverse),
    [Differentiable, FlopsOp, InferTypes, ShardedOp, TablePreciseOp]> {
  let summary = "States of linear attention by the delta rule, chunk by chunk";
  let description = [{
    For each of the leading dimensions `b..`, over `n` chunks of `c` positions, from the state
    `S = initial` `[k, v]` on; with `reverse` from the last chunk to the first:

        states[i]  = S
        written[i] = values[i] + read_keys[i] S               values [b.., n, c, v], keys [b.., n, c, k]
        S          = decays[i] ⊙ S + write_keys[i]ᵀ written[i] + added[i]
        last       = S                                        behind the last chunk

    `decays` `[b.., n, d, 1]` has a factor for each row of the state (d = k) or one for all (d = 1);
    they and `initial` may be f32 where the other operands are narrower; `last` is of the type of
    `initial`. `written` has the shape of `values`, `states` and `added` are `[b.., n, k, v]`. A
    state is kept in f32 at least. (Yang et al. 2024, "Gated Delta Networks", section 3.3, with
    `read_keys` negative and `values` the updates that the chunk makes by itself.)

    Example: `%x, %s, %e = oriel.delta_scan %u, %w, %k, %d, %s0 : (tensor<2x8x64x32xf32>,
    tensor<2x8x64x16xf32>, tensor<2x8x64x16xf32>, tensor<2x8x1x1xf32>, tensor<2x16x32xf32>) ->
    (tensor<2x8x64x32xf32>, tensor<2x8x16x32xf32>, tensor<2x16x32xf32>)`.
    Made by `raise` of loops over chunks that exporters unroll, and by autodiff, of which the
    backward is such a scan in the other direction; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$written, Oriel_FloatTensor:$states,
                      Oriel_FloatTensor:$last);
}

#endif
