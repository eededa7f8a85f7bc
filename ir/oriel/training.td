// Parameters, loss and optimizers.
#ifndef ORIEL_IR_ORIEL_TRAINING_TD
#define ORIEL_IR_ORIEL_TRAINING_TD

include "ir/oriel/attributes.td"
include "ir/oriel/base.td"

def ParameterOp : Op<OrielDialect, "parameter", [Symbol]> {
  let summary = "A weight of the model: metadata of a module symbol";
  let description = [{
    Segment functions take a parameter as an argument with the role of `segment.h`
    (`oriel.kind = "parameter"`, `oriel.ref` its symbol); only `update` returns a new value. `onnx_name` is the
    initializer's name and the key in checkpoints; parameters that are parts of one
    (`oriel.whole`, `oriel.start`: oriel-cut-products) share it. The initial value stays in the model
    file and is read by that name. `trainable` is set by the train phase from the recipe.
    `module` is the strategy's, "" for the default one; `use` is the sharding that the math
    wants, `storage`, `gradient` and `state` those in which value, gradient and optimizer
    state are kept: all set by `strategize`, replicated where absent.

    Example: `oriel.parameter @p3 {onnx_name = "lm_head.weight", type = tensor<128x64xf32>,
    trainable = true}`. Made by the importer and by oriel-cut-products; read by `emit`.
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, StrAttr:$onnx_name, TypeAttr:$type,
                       DefaultValuedAttr<BoolAttr, "false">:$trainable,
                       DefaultValuedStrAttr<StrAttr, "">:$module,
                       OptionalAttr<Oriel_ShardingAttr>:$use,
                       OptionalAttr<Oriel_ShardingAttr>:$storage,
                       OptionalAttr<Oriel_ShardingAttr>:$gradient,
                       OptionalAttr<Oriel_ShardingAttr>:$state);
  let builders = [OpBuilder<(ins "::llvm::StringRef":$sym_name, "::llvm::StringRef":$onnx_name,
                                 "::mlir::Type":$type), [{
    build($_builder, $_state, sym_name, onnx_name, type, /*trainable=*/false, /*module=*/"",
          /*use=*/{}, /*storage=*/{}, /*gradient=*/{}, /*state=*/{});
  }]>];
  let extraClassDeclaration = [{
    ::mlir::RankedTensorType getTensorType() {
      return ::llvm::cast<::mlir::RankedTensorType>(getType());
    }
  }];
  let assemblyFormat = "$sym_name attr-dict";
  let hasVerifier = 1;
}

def CrossEntropyOp : Oriel_Op<"cross_entropy",
    (ins Oriel_FloatTensor:$logits, Oriel_IndexTensor:$labels,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index),
    [Differentiable, InferTypes, SteppedShardedOp]> {
  let summary = "Sum of token losses and number of valid tokens";
  let description = [{
    Logits `[n.., v]`, labels `[n..]`. `loss_sum = Σ (logsumexp(logits) - logits[label])`
    over the labels other than `ignore_index`, `token_count` how many those are (both rank
    0), `logsumexp` `[n..]` is kept for the backward. They are f32 where logits are narrower. A label
    outside `[0, v)` is a runtime error.

    Example: `%sum, %count, %lse = oriel.cross_entropy %logits, %labels :
    (tensor<2x64x128xf32>, tensor<2x64xi64>) -> (tensor<f32>, tensor<f32>,
    tensor<2x64xf32>)`. Made by `train`, and by the importer where the model has it; removed by
    `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$loss_sum, Oriel_FloatTensor:$token_count,
                      Oriel_FloatTensor:$logsumexp);
}

def TokenLossesOp : Oriel_Op<"token_losses",
    (ins Oriel_FloatTensor:$logits, Oriel_IndexTensor:$labels,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index),
    [Differentiable, InferTypes, SteppedShardedOp]> {
  let summary = "The loss of each token";
  let description = [{
    `cross_entropy` before its sum: `losses[n..] = logsumexp(logits) - logits[label]`, 0 for ignored
    labels. Less than nothing, it is the logarithm of the label's probability, as preferences and
    policies take it.

    Example: `%losses, %lse = oriel.token_losses %logits, %labels : (tensor<2x64x128xf32>,
    tensor<2x64xi64>) -> (tensor<2x64xf32>, tensor<2x64xf32>)`. Made by `raise`, and by the importer;
    removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$losses, Oriel_FloatTensor:$logsumexp);
}

def CrossEntropyGradOp : Oriel_Op<"cross_entropy_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$logits,
         Oriel_IndexTensor:$labels, Oriel_FloatTensor:$logsumexp,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index,
         Optional<Oriel_First>:$first, DefaultValuedAttr<Oriel_IntAttr, "0">:$classes),
    [InferTypes, OverwritingOp, RebuiltShardedOp]> {
  let summary = "Cotangent of the logits";
  let description = [{
    `result = cotangent * (softmax(logits) - onehot(label))`, 0 for ignored labels;
    `cotangent` is that of `loss_sum` (rank 0) or of each token's loss (`[n..]`). With `first` and `classes` the logits are
    those of a piece of `classes` classes, which begins at class `first`; the `logsumexp`
    is that of all. Made by autodiff, on pieces by `partition`; removed by `lower`.

    Example: `%1 = oriel.cross_entropy_grad %g, %logits, %labels, %lse : (tensor<f32>,
    tensor<2x8x32xf32>, tensor<2x8xi64>, tensor<2x8xf32>) -> tensor<2x8x32xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def SumExpOp : Oriel_Op<"sum_exp", (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$shift),
    [FlopsOp, InferTypes, ShardedOp]> {
  let summary = "Sum of exponentials over the last dimension";
  let description = [{
    `result[n..] = Σ_v exp(input[n.., v] - shift[n..])`, summed in double precision; shift and
    result are f32 where the input is narrower. With the row's maximum as `shift` it is the part of a cross entropy that adds up over
    pieces of the classes.

    Example: `%1 = oriel.sum_exp %logits, %max : (tensor<2x8x32xf32>, tensor<2x8xf32>) ->
    tensor<2x8xf32>`. Made by `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def LabelLogitsOp : Oriel_Op<"label_logits",
    (ins Oriel_FloatTensor:$logits, Oriel_IndexTensor:$labels,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index,
         Optional<Oriel_First>:$first, DefaultValuedAttr<Oriel_IntAttr, "0">:$classes),
    [InferTypes, RebuiltShardedOp, SparseReadOp]> {
  let summary = "The logit of each row's label";
  let description = [{
    `result[n..] = logits[n.., labels[n..]]`, 0 for ignored labels. With `first` and
    `classes` the logits are those of a piece of `classes` classes, which begins at class
    `first`: a label of another piece gives 0. A label outside `[0, classes)` is a runtime
    error.

    Example: `%1 = oriel.label_logits %logits, %labels : (tensor<2x8x32xf32>,
    tensor<2x8xi64>) -> tensor<2x8xf32>`. Made by `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def SumSquaresOp : Oriel_Op<"sum_squares", (ins Variadic<Oriel_FloatTensor>:$inputs),
    [SteppedShardedOp]> {
  let summary = "Sum of the squares of all elements of all operands";
  let description = [{
    Rank 0; summed in double precision, operand by operand. The global gradient norm is its
    square root. Made by `train`; removed by `lower`.

    Example: `%1 = oriel.sum_squares %a, %b : (tensor<8xf32>, tensor<2x4xf32>) ->
    tensor<f32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

def SgdOp : Oriel_Op<"sgd",
    (ins Oriel_FloatTensor:$parameter, Oriel_FloatTensor:$gradient,
         Optional<Oriel_RemainderTensor>:$remainder, Oriel_FloatTensor:$gradient_scale, Oriel_FloatTensor:$learning_rate,
         Oriel_FloatAttr:$weight_decay),
    [InferTypes, OverwritingOp, Pointwise]> {
  let summary = "One step of stochastic gradient descent";
  let description = [{
    `p - lr (gradient_scale * g + weight_decay * p)`; scale and rate have rank 0. With `remainder`,
    the parameter is bf16, and what is stepped is the f32 that the two make together. Made by
    `train`, without a remainder; removed by `lower`.

    Example: `%1 = oriel.sgd %p, %g, %scale, %lr {weight_decay = 0.0} : (tensor<8xf32>,
    tensor<8xf32>, tensor<f32>, tensor<f32>) -> tensor<8xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$new_parameter,
                      Optional<Oriel_RemainderTensor>:$new_remainder);
}

def SgdMomentumOp : Oriel_Op<"sgd_momentum",
    (ins Oriel_FloatTensor:$parameter, Oriel_FloatTensor:$gradient,
         Oriel_FloatTensor:$momentum_buffer, Optional<Oriel_RemainderTensor>:$remainder,
         Oriel_FloatTensor:$gradient_scale, Oriel_FloatTensor:$learning_rate,
         Oriel_FloatAttr:$momentum, DefaultValuedAttr<BoolAttr, "false">:$nesterov,
         Oriel_FloatAttr:$weight_decay),
    [InferTypes, OverwritingOp, Pointwise]> {
  let summary = "One step of stochastic gradient descent with momentum";
  let description = [{
    Polyak 1964, in PyTorch's form: with `d = gradient_scale * g + weight_decay * p` and
    `b = momentum * momentum_buffer + d`, `p - lr b`; with `nesterov`, `p - lr (d + momentum * b)`
    (Sutskever et al. 2013). Scale and rate have rank 0. A remainder as for `sgd`. Made by
    `train`, without a remainder; removed by `lower`.

    Example: `%1:2 = oriel.sgd_momentum %p, %g, %b, %scale, %lr {momentum = 0.9, weight_decay = 0.0}
    : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>,
    tensor<8xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$new_parameter, Oriel_FloatTensor:$new_momentum_buffer,
                      Optional<Oriel_RemainderTensor>:$new_remainder);
}

def AdamWOp : Oriel_Op<"adamw",
    (ins Oriel_FloatTensor:$parameter, Oriel_FloatTensor:$gradient,
         Oriel_FloatTensor:$exp_avg, Oriel_FloatTensor:$exp_avg_sq,
         Optional<Oriel_RemainderTensor>:$remainder, Oriel_FloatTensor:$gradient_scale,
         Oriel_FloatTensor:$learning_rate, Oriel_FloatTensor:$step, Oriel_FloatAttr:$beta1, Oriel_FloatAttr:$beta2,
         Oriel_FloatAttr:$epsilon, Oriel_FloatAttr:$weight_decay),
    [InferTypes, OverwritingOp, Pointwise]> {
  let summary = "One step of AdamW";
  let description = [{
    Loshchilov and Hutter 2019, algorithm 2, in PyTorch's order: with
    `g = gradient_scale * gradient`, `p = p (1 - lr weight_decay)`,
    `m = β1 m + (1-β1) g`, `v = β2 v + (1-β2) g²`,
    `p - lr (m / (1-β1^step)) / (√(v / (1-β2^step)) + epsilon)`. `step` counts from 1.
    Scale, rate and step have rank 0. A remainder as for `sgd`. Made by `train`, without a
    remainder; removed by `lower`.

    Example: `%1:3 = oriel.adamw %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9, beta2 =
    0.999, epsilon = 1.0e-8, weight_decay = 0.1} : (tensor<8xf32>, tensor<8xf32>,
    tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>, tensor<f32>) ->
    (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$new_parameter, Oriel_FloatTensor:$new_exp_avg,
                      Oriel_FloatTensor:$new_exp_avg_sq,
                      Optional<Oriel_RemainderTensor>:$new_remainder);
}

#endif
