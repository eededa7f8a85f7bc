// Random elements of a training step.
#ifndef ORIEL_IR_ORIEL_DROPOUT_TD
#define ORIEL_IR_ORIEL_DROPOUT_TD

include "ir/oriel/base.td"

// Random bits of samples [samples], or where a rank's piece of a dimension begins.
def Oriel_SamplesOrFirst : AnyTypeOf<[0DTensorOf<[I64]>, 1DTensorOf<[I64]>]>;

def DropoutOp : Oriel_Op<"dropout",
    (ins Oriel_FloatTensor:$input, Variadic<Oriel_SamplesOrFirst>:$rest, Oriel_FloatAttr:$ratio,
         Oriel_IntAttr:$site, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$whole,
         DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$cut),
    [Differentiable, OverwritingOp, PreciseOp, RebuiltShardedOp]> {
  let summary = "Zeros in random places, by sample";
  let description = [{
    `result[i] = 0` with probability `ratio`, else `input[i] / (1 - ratio)` (Srivastava et al.
    2014). The first dimension holds as many rows of each sample, one sample behind the other. What
    is random follows from the sample's bits, `site` and the element's place within the sample, and
    from nothing else (kernels/random/dropout.h): so it is the same for each number of ranks, in the
    backward, where a forward is computed again, and, if the first dimension is the batch, for each
    size of a microbatch. A sample of negative bits (one of an evaluation) is left as it is.

    Behind the input are the samples' bits, which `train` adds, and on pieces, for each dimension
    that `cut` names, where it begins in the whole of the shape `whole`.

    Example: `%1 = oriel.dropout %0, %bits {ratio = 0.1, site = 7 : i64} : (tensor<8x16x32xf32>,
    tensor<8xi64>) -> tensor<8x16x32xf32>`. Made by the importer and by autodiff, on pieces by
    `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    // Null in front of `train`.
    ::mlir::Value getSamples() { return getRest().empty() ? ::mlir::Value() : getRest().front(); }
  }];
}

#endif
