// Activations that `raise` recognises, and their derivatives.
#ifndef ORIEL_IR_ORIEL_ACTIVATION_TD
#define ORIEL_IR_ORIEL_ACTIVATION_TD

include "ir/oriel/base.td"

// kind: "gelu" (erf), "gelu_tanh", "gelu_quick" (x sigmoid(1.702 x)), "silu".
def ActivationOp : Oriel_Op<"activation",
    (ins Oriel_FloatTensor:$input, StrAttr:$kind),
    [Differentiable, SameOperandsAndResultType, OverwritingOp, Pointwise]> {
  let summary = "A named smooth activation";
  let description = [{
    `kind` is one of
    `gelu`: x/2 (1 + erf(x/√2)) (Hendrycks and Gimpel 2016, eq. 2 exact),
    `gelu_tanh`: x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))),
    `gelu_quick`: x sigmoid(1.702 x),
    `silu`: x sigmoid(x).

    Example: `%1 = oriel.activation %0 {kind = "gelu"} : (tensor<4xf32>) ->
    tensor<4xf32>`. Made by `raise` and by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDefinition = Oriel_Pointwise.definition;
}

def ActivationGradOp : Oriel_Op<"activation_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input, StrAttr:$kind),
    [SameOperandsAndResultType, OverwritingOp, Pointwise, ShardedOp]> {
  let summary = "Cotangent of an activation's input";
  let description = [{
    `result = cotangent * f'(input)` for `f` named by `kind` as in
    `oriel.activation`. Made by autodiff; removed by `lower`.

    Example: `%1 = oriel.activation_grad %g, %x {kind = "gelu"} : (tensor<4xf32>,
    tensor<4xf32>) -> tensor<4xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDefinition = Oriel_Pointwise.definition;
}

def GatedActivationOp : Oriel_Op<"gated_activation",
    (ins Oriel_FloatTensor:$gate, Oriel_FloatTensor:$up, StrAttr:$kind),
    [Differentiable, SameOperandsAndResultType, OverwritingOp, Pointwise, ShardedOp]> {
  let summary = "Gated activation: f(gate) * up";
  let description = [{
    `result = f(gate) * up` for `f` named by `kind` as in `oriel.activation`
    (SwiGLU for `silu`: Shazeer 2020, eq. 5). Made by `raise`; removed by `lower`.

    Example: `%2 = oriel.gated_activation %g, %u {kind = "silu"} :
    (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
  let extraClassDefinition = Oriel_Pointwise.definition;
}

def GatedActivationGradOp : Oriel_Op<"gated_activation_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$gate,
         Oriel_FloatTensor:$up, StrAttr:$kind),
    [InferTypes, Pointwise, ShardedOp]> {
  let summary = "Cotangents of a gated activation's operands";
  let description = [{
    `gate_grad = cotangent * up * f'(gate)`, `up_grad = cotangent * f(gate)`.
    Made by autodiff; removed by `lower`.

    Example: `%3:2 = oriel.gated_activation_grad %dy, %gate, %up {kind = "silu"} :
    (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$gate_grad, Oriel_FloatTensor:$up_grad);
}

#endif
