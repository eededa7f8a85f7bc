// Ops that passes make of others, for kernels that do more at once.
//
// They are declared in fused.h, not in oriel.h, so that what does not make them is not compiled
// anew with them.
#ifndef ORIEL_IR_ORIEL_FUSED_TD
#define ORIEL_IR_ORIEL_FUSED_TD

include "ir/interfaces/fusion.td"
include "ir/interfaces/list.td"
include "ir/oriel/base.td"

// Operands behind the others that may be absent: a bias, and where the rank's piece begins.
def Oriel_BiasOrFirst : AnyTypeOf<[Oriel_FloatTensor, Oriel_First]>;

def LinearCrossEntropyOp : Oriel_Op<"linear_cross_entropy",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight, Oriel_IndexTensor:$labels,
         Optional<Oriel_FloatTensor>:$bias,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index),
    [Differentiable, FlopsOp, InferTypes, SteppedShardedOp]> {
  let summary = "The cross entropy of a linear layer's result, which is never whole in memory";
  let description = [{
    As `cross_entropy` of the logits `linear(input, weight, bias)`, computed for some rows at a
    time. Input `[n.., k]`, labels `[n..]`; the logits are in the operands' type. Made by `train`
    where nothing else reads the logits; removed by `lower`.

    Example: `%sum, %count, %lse = oriel.linear_cross_entropy %x, %w, %labels {transpose_weight =
    true} : (tensor<2x64x32xf32>, tensor<128x32xf32>, tensor<2x64xi64>) -> (tensor<f32>,
    tensor<f32>, tensor<2x64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$loss_sum, Oriel_FloatTensor:$token_count,
                      Oriel_FloatTensor:$logsumexp);
}

def LinearTokenLossesOp : Oriel_Op<"linear_token_losses",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight, Oriel_IndexTensor:$labels,
         Optional<Oriel_FloatTensor>:$bias,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index),
    [Differentiable, FlopsOp, InferTypes, SteppedShardedOp]> {
  let summary = "The loss of each token of a linear layer's result, which is never whole in memory";
  let description = [{
    As `token_losses` of the logits `linear(input, weight, bias)`, with the operands of
    `linear_cross_entropy`. Made by `train` where nothing else reads the logits; removed by `lower`.

    Example: `%losses, %lse = oriel.linear_token_losses %x, %w, %labels {transpose_weight = true} :
    (tensor<2x64x32xf32>, tensor<128x32xf32>, tensor<2x64xi64>) -> (tensor<2x64xf32>,
    tensor<2x64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$losses, Oriel_FloatTensor:$logsumexp);
}

def LinearLogsumexpOp : Oriel_Op<"linear_logsumexp",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight, Oriel_IndexTensor:$labels,
         Variadic<Oriel_BiasOrFirst>:$rest,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index, Oriel_IntAttr:$blocks,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$all_blocks),
    [FlopsOp, InferTypes, RebuiltShardedOp]> {
  let summary = "Logsumexp of a linear layer's result by blocks of classes, and the labels' logits";
  let description = [{
    Of the logits of `linear_cross_entropy`: `logsumexp[n.., b]` of the `b`-th of `blocks` equal
    parts of a row, -inf for one of -inf alone; `label_logit[n..]` as `label_logits` gives it.
    Behind the labels stand the bias, if there is one, and, with `all_blocks`, the number of the
    first block of the piece. Made by `propagate`, of `linear_cross_entropy` or
    `linear_token_losses` whose classes are split; removed by `lower`.

    Example: `%0:2 = oriel.linear_logsumexp %x, %w, %labels {blocks = 4 : i64} :
    (tensor<2x8x32xf32>, tensor<32x64xf32>, tensor<2x8xi64>) -> (tensor<2x8x4xf32>,
    tensor<2x8xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$logsumexp, Oriel_FloatTensor:$label_logit);
  let extraClassDeclaration = [{
    ::mlir::Value getBias();
    ::mlir::Value getFirst();
  }];
}

def LinearCrossEntropyGradOp : Oriel_Op<"linear_cross_entropy_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Oriel_IndexTensor:$labels, Oriel_FloatTensor:$logsumexp,
         Variadic<Oriel_BiasOrFirst>:$rest,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "-100">:$ignore_index,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$classes),
    [FlopsOp, RebuiltShardedOp, WideSumOp]> {
  let summary = "Cotangents of input, weight and bias of the loss of a linear layer's result";
  let description = [{
    Computes the logits again, for some rows at a time, and their cotangent `g` as
    `cross_entropy_grad` does, of the cotangent of all or of each row; the results are those of the input, `g weightᵀ`, and, where they
    are wanted, of the weight, `inputᵀ g`, and of the bias, the sum of `g` over the rows. The
    last two are sums over all rows, and may be f32 where the operands are narrower. Behind
    `logsumexp` stand the bias, if there is one, and where the first class of the piece is (with
    `classes`), if it is one. Made by autodiff, on pieces by `partition`; removed by `lower`.

    Example: `%1:2 = oriel.linear_cross_entropy_grad %g, %x, %w, %labels, %lse : (tensor<f32>,
    tensor<2x8x32xf32>, tensor<32x64xf32>, tensor<2x8xi64>, tensor<2x8xf32>) ->
    (tensor<2x8x32xf32>, tensor<32x64xf32>)`.
  }];
  let results = (outs Variadic<Oriel_FloatTensor>:$cotangents);
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    ::mlir::Value getBias();
    ::mlir::Value getFirst();
  }];
}

// An op that `lower` makes of local ones: it is differentiated and cut no more. Their rule is an
// attribute.
class Oriel_LoweredOp<string mnemonic, dag args, list<Trait> traits>
    : Op<OrielDialect, mnemonic,
         !listconcat(traits, [Pure, DeclareOpInterfaceMethods<
                                        KernelOpInterface, ["getKernelName", "mayOverwrite"]>])> {
  let arguments = !con(args, (ins DefaultValuedAttr<Oriel_IntAttr, "-1">:$origin));
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

// Another op plus an operand, `addend`, in whose place the sum may lie.
class Oriel_SumOp<string mnemonic, dag args>
    : Oriel_LoweredOp<mnemonic, args,
                      [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>]>;

def LinearAddOp : Oriel_SumOp<"linear_add",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Optional<Oriel_FloatTensor>:$bias, Oriel_FloatTensor:$addend,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight)> {
  let summary = "`linear` plus an addend";
  let description = [{
    The addend has the result's type. It is added before the sum is rounded. Made and removed by
    `lower`.

    Example: `%3 = oriel.linear_add %x, %w, %b, %residual {transpose_weight = true} :
    (tensor<2x8x64xf32>, tensor<256x64xf32>, tensor<256xf32>, tensor<2x8x256xf32>) ->
    tensor<2x8x256xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def LinearWeightGradAddOp : Oriel_SumOp<"linear_weight_grad_add",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$addend,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight)> {
  let summary = "`linear_weight_grad` plus what is there of the gradient";
  let description = [{
    A launch of the kernel `linear_weight_grad`. Made and removed by `lower`.

    Example: `%3 = oriel.linear_weight_grad_add %x, %dy, %dw {transpose_weight = true} :
    (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<16x8xf32>) -> tensor<16x8xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def ExpertLinearWeightGradAddOp : Oriel_SumOp<"expert_linear_weight_grad_add",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cotangent, Oriel_IndexTensor:$choice,
         Optional<Oriel_First>:$first, Oriel_FloatTensor:$addend,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$experts)> {
  let summary = "`expert_linear_weight_grad` plus what is there of the gradient";
  let description = [{
    Experts that no row chooses are left alone. Not of gradients narrower than f32. Made and removed
    by `lower`.

    Example: `%3 = oriel.expert_linear_weight_grad_add %x, %dy, %choice, %dw : (tensor<8x64xbf16>,
    tensor<8x4x256xbf16>, tensor<8x4xi64>, tensor<16x64x256xf32>) -> tensor<16x64x256xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

// A product with more than a sum behind it.
class Oriel_EpilogueOp<string mnemonic, dag args, list<Trait> traits = []>
    : Oriel_LoweredOp<mnemonic, args,
                      !listconcat(traits, [DeclareOpInterfaceMethods<CostOpInterface, ["getFlops"]>])>;

def LinearActivationOp : Oriel_EpilogueOp<"linear_activation",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Optional<Oriel_FloatTensor>:$bias, StrAttr:$kind,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight)> {
  let summary = "`activation` of a `linear`, whose result is another result where it is wanted";
  let description = [{
    The activation is of the sum as it is rounded, or before. `kind` is that of `activation`. Made
    and removed by `lower`.

    Example: `%3:2 = oriel.linear_activation %x, %w, %b {kind = "gelu_tanh", transpose_weight =
    true} : (tensor<2x8x64xf32>, tensor<256x64xf32>, tensor<256xf32>) -> (tensor<2x8x256xf32>,
    tensor<2x8x256xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$result, Optional<Oriel_FloatTensor>:$preactivation);
}

def LinearActivationGradOp : Oriel_EpilogueOp<"linear_activation_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$weight,
         Oriel_FloatTensor:$preactivation, StrAttr:$kind,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight)> {
  let summary = "`activation_grad` of a `linear` of the cotangent";
  let description = [{
    The cotangent of the activation, `linear(cotangent, weight)`, times the derivative of the
    activation `kind` at `preactivation`, which has the result's type. Made and removed by `lower`.

    Example: `%3 = oriel.linear_activation_grad %dy, %w, %x {kind = "gelu_tanh"} :
    (tensor<2x8x64xf32>, tensor<64x256xf32>, tensor<2x8x256xf32>) -> tensor<2x8x256xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def LinearGradsOp : Oriel_EpilogueOp<"linear_grads",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cotangent,
         Optional<Oriel_FloatTensor>:$addend,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight),
    [DeclareOpInterfaceMethods<EpilogueOpInterface>]> {
  let summary = "The gradients of a `linear`'s weight and of its bias";
  let description = [{
    `linear_weight_grad`, plus what is there of that gradient, and the sums of the cotangent over
    all rows, `[n]`. Made and removed by `lower`.

    Example: `%3:2 = oriel.linear_grads %x, %dy, %dw {transpose_weight = true} :
    (tensor<2x4x8xbf16>, tensor<2x4x16xbf16>, tensor<16x8xf32>) -> (tensor<16x8xf32>,
    tensor<16xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$weight_grad, Oriel_FloatTensor:$bias_grad);
}

// A normalisation as its kernel has it: tensors may be narrower than weights and statistics.
class Oriel_FusedNormOp<string mnemonic, dag args, list<Trait> traits>
    : Oriel_LoweredOp<mnemonic, args,
                      !listconcat(traits, [DeclareOpInterfaceMethods<CostOpInterface>])>;

def FusedLayerNormOp : Oriel_FusedNormOp<"fused_layer_norm",
    (ins Oriel_FloatTensor:$input, Optional<Oriel_FloatTensor>:$addend, Oriel_FloatTensor:$weight,
         Optional<Oriel_FloatTensor>:$bias, Oriel_FloatAttr:$epsilon),
    [AttrSizedOperandSegments, DeclareOpInterfaceMethods<PrologueOpInterface>]> {
  let summary = "`layer_norm` of a tensor, or of the sum of two, which is a result then";
  let description = [{
    Input, addend, result and sum have one type, narrower than f32 beside a weight, a bias and
    statistics of f32, or theirs. What is normed is the sum as it is rounded. A launch of the kernel
    `layer_norm` or, with an addend, `add_layer_norm`. Made and removed by `lower`.

    Example: `%y, %mean, %inv_std, %sum = oriel.fused_layer_norm %x, %r, %w, %b {epsilon = 1.0e-5 :
    f64, operandSegmentSizes = array<i32: 1, 1, 1, 1>} : (tensor<2x8x64xbf16>, tensor<2x8x64xbf16>,
    tensor<64xf32>, tensor<64xf32>) -> (tensor<2x8x64xbf16>, tensor<2x8xf32>, tensor<2x8xf32>,
    tensor<2x8x64xbf16>)`.
  }];
  let results = (outs Oriel_FloatTensor:$result, Oriel_FloatTensor:$mean,
                      Oriel_FloatTensor:$inv_std, Optional<Oriel_FloatTensor>:$sum);
}

def FusedRmsNormOp : Oriel_FusedNormOp<"fused_rms_norm",
    (ins Oriel_FloatTensor:$input, Optional<Oriel_FloatTensor>:$addend, Oriel_FloatTensor:$weight,
         Oriel_FloatAttr:$epsilon, DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$weight_offset),
    [DeclareOpInterfaceMethods<PrologueOpInterface>]> {
  let summary = "`rms_norm` of a tensor, or of the sum of two, which is a result then";
  let description = [{
    Types as those of `fused_layer_norm`. A launch of the kernel `rms_norm` or, with an addend,
    `add_rms_norm`. Made and removed by `lower`.

    Example: `%y, %inv_rms, %sum = oriel.fused_rms_norm %x, %r, %w {epsilon = 1.0e-6 : f64} :
    (tensor<2x8x64xbf16>, tensor<2x8x64xbf16>, tensor<64xf32>) -> (tensor<2x8x64xbf16>,
    tensor<2x8xf32>, tensor<2x8x64xbf16>)`.
  }];
  let results = (outs Oriel_FloatTensor:$result, Oriel_FloatTensor:$inv_rms,
                      Optional<Oriel_FloatTensor>:$sum);
}

def FusedLayerNormGradOp : Oriel_FusedNormOp<"fused_layer_norm_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Oriel_FloatTensor:$mean, Oriel_FloatTensor:$inv_std, Optional<Oriel_FloatTensor>:$addend),
    [DeclareOpInterfaceMethods<EpilogueOpInterface>]> {
  let summary = "`layer_norm_grad`, and the cotangent that a residual brings";
  let description = [{
    Cotangent, input, addend and `input_grad` have one type, narrower than f32 beside others of f32,
    or theirs. The addend is added to `input_grad` before it is rounded. A launch of the kernel
    `layer_norm_grad`. Made and removed by `lower`.

    Example: `%2:3 = oriel.fused_layer_norm_grad %dy, %x, %w, %mean, %inv_std, %dr :
    (tensor<2x8x64xbf16>, tensor<2x8x64xbf16>, tensor<64xf32>, tensor<2x8xf32>,
    tensor<2x8xf32>, tensor<2x8x64xbf16>) -> (tensor<2x8x64xbf16>, tensor<64xf32>,
    tensor<64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$weight_grad,
                      Oriel_FloatTensor:$bias_grad);
}

def FusedRmsNormGradOp : Oriel_FusedNormOp<"fused_rms_norm_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Oriel_FloatTensor:$inv_rms, Optional<Oriel_FloatTensor>:$addend,
         DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$weight_offset),
    [DeclareOpInterfaceMethods<EpilogueOpInterface>]> {
  let summary = "`rms_norm_grad`, and the cotangent that a residual brings";
  let description = [{
    Types and addend as those of `fused_layer_norm_grad`. A launch of the kernel `rms_norm_grad`.
    Made and removed by `lower`.

    Example: `%4:2 = oriel.fused_rms_norm_grad %dy, %x, %w, %inv_rms, %dr : (tensor<2x8x64xf32>,
    tensor<2x8x64xf32>, tensor<64xf32>, tensor<2x8xf32>, tensor<2x8x64xf32>) ->
    (tensor<2x8x64xf32>, tensor<64xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$weight_grad);
}

class Oriel_ListOp<string mnemonic, dag args, dag outs>
    : Op<OrielDialect, mnemonic, [
          Pure, DeclareOpInterfaceMethods<CostOpInterface, ["getBytesRead"]>,
          DeclareOpInterfaceMethods<KernelOpInterface, ["getKernelName", "mayOverwrite"]>,
          AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let arguments = !con(args, (ins DefaultValuedAttr<Oriel_IntAttr, "-1">:$origin));
  let results = outs;
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def SgdListOp : Oriel_ListOp<"sgd_list",
    (ins Variadic<Oriel_FloatTensor>:$parameters, Variadic<Oriel_FloatTensor>:$gradients,
         Variadic<Oriel_RemainderTensor>:$remainders, Oriel_FloatTensor:$gradient_scale,
         Oriel_FloatTensor:$learning_rate, Oriel_FloatAttr:$weight_decay),
    (outs Variadic<Oriel_FloatTensor>:$new_parameters,
          Variadic<Oriel_RemainderTensor>:$new_remainders,
          Variadic<Oriel_FloatTensor>:$rounded)> {
  let summary = "The step `sgd` of several parameters, by one launch";
  let description = [{
    First all parameters, then all gradients; the results likewise. All of them have a remainder, or
    none. `rounded` are the new parameters once more, in a narrower type, of all of them or of none.
    A launch of the kernel `sgd`. Made and removed by `lower`.

    Example: `%1:2 = oriel.sgd_list %p, %q, %g, %h, %scale, %lr {weight_decay = 0.0 : f64,
    operandSegmentSizes = array<i32: 2, 2, 0, 1, 1>, resultSegmentSizes = array<i32: 2, 0, 0>} : (tensor<8xf32>, tensor<4xf32>, tensor<8xf32>,
    tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<4xf32>)`.
  }];
}

def SgdMomentumListOp : Oriel_ListOp<"sgd_momentum_list",
    (ins Variadic<Oriel_FloatTensor>:$parameters, Variadic<Oriel_FloatTensor>:$gradients,
         Variadic<Oriel_FloatTensor>:$momentum_buffers, Variadic<Oriel_RemainderTensor>:$remainders,
         Oriel_FloatTensor:$gradient_scale, Oriel_FloatTensor:$learning_rate,
         Oriel_FloatAttr:$momentum, DefaultValuedAttr<BoolAttr, "false">:$nesterov,
         Oriel_FloatAttr:$weight_decay),
    (outs Variadic<Oriel_FloatTensor>:$new_parameters,
          Variadic<Oriel_FloatTensor>:$new_momentum_buffers,
          Variadic<Oriel_RemainderTensor>:$new_remainders,
          Variadic<Oriel_FloatTensor>:$rounded)> {
  let summary = "The step `sgd_momentum` of several parameters, by one launch";
  let description = [{
    First all parameters, then all gradients, and so on; the results likewise. Remainders and
    `rounded` as in `sgd_list`. A launch of the kernel `sgd_momentum`. Made and removed by `lower`.

    Example: `%1:2 = oriel.sgd_momentum_list %p, %g, %b, %scale, %lr {momentum = 0.9 : f64,
    weight_decay = 0.0 : f64, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1>,
    resultSegmentSizes = array<i32: 1, 1, 0, 0>} : (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>,
    tensor<f32>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>)`.
  }];
}

def AdamWListOp : Oriel_ListOp<"adamw_list",
    (ins Variadic<Oriel_FloatTensor>:$parameters, Variadic<Oriel_FloatTensor>:$gradients,
         Variadic<Oriel_FloatTensor>:$exp_avgs, Variadic<Oriel_FloatTensor>:$exp_avg_sqs,
         Variadic<Oriel_RemainderTensor>:$remainders, Oriel_FloatTensor:$gradient_scale,
         Oriel_FloatTensor:$learning_rate, Oriel_FloatTensor:$step, Oriel_FloatAttr:$beta1, Oriel_FloatAttr:$beta2,
         Oriel_FloatAttr:$epsilon, Oriel_FloatAttr:$weight_decay),
    (outs Variadic<Oriel_FloatTensor>:$new_parameters, Variadic<Oriel_FloatTensor>:$new_exp_avgs,
          Variadic<Oriel_FloatTensor>:$new_exp_avg_sqs,
          Variadic<Oriel_RemainderTensor>:$new_remainders,
          Variadic<Oriel_FloatTensor>:$rounded)> {
  let summary = "The step `adamw` of several parameters, by one launch";
  let description = [{
    First all parameters, then all gradients, and so on; the results likewise. Remainders and
    `rounded` as in `sgd_list`. A launch of the kernel `adamw`. Made and removed by `lower`.

    Example: `%1:4 = oriel.adamw_list %p, %g, %m, %v, %scale, %lr, %step {beta1 = 0.9 : f64, beta2
    = 0.999 : f64, epsilon = 1.0e-8 : f64, weight_decay = 0.1 : f64, operandSegmentSizes =
    array<i32: 1, 1, 1, 1, 0, 1, 1, 1>, resultSegmentSizes = array<i32: 1, 1, 1, 0, 1>} :
    (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<f32>, tensor<f32>,
    tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xbf16>)`.
  }];
}

#endif
