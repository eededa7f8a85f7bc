// The acme dialect: snake, an activation with a learned frequency per channel.
#ifndef ACME_SNAKE_TD
#define ACME_SNAKE_TD

include "ir/oriel/base.td"

def AcmeDialect : Dialect {
  let name = "acme";
  let cppNamespace = "::acme";
  let summary = "Ops of Acme, an example";
}

// A kernel launch, a cost, and the attribute `origin`, as every op of the oriel dialect has them.
class Acme_Op<string mnemonic, dag args, list<Trait> traits = []>
    : Oriel_ComputeOp<AcmeDialect, mnemonic, args, traits>;

def SnakeOp : Acme_Op<"snake",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$alpha),
    [Pointwise, Differentiable, FlopsOp, OverwritingOp, InferTypes]> {
  let summary = "x + sin²(αx)/α, with an α for each channel";
  let description = [{
    Ziyin, Hartwig and Ueda 2020, eq. 3. `input` is [.., C] and `alpha` [C]. Where
    an α is 0, the limit: x itself.

    Example: `%2 = acme.snake %0, %1 : (tensor<2x8xf32>, tensor<8xf32>) ->
    tensor<2x8xf32>`. Made by the importer from com.acme::Snake and by
    `acme-raise-snake`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def SnakeGradOp : Acme_Op<"snake_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input, Oriel_FloatTensor:$alpha),
    [InferTypes, ShardedOp]> {
  let summary = "Cotangents of snake's operands";
  let description = [{
    `input_grad = cotangent * (1 + sin(2αx))`;
    `alpha_grad = Σ cotangent * (x sin(2αx)/α - sin²(αx)/α²)` over all dimensions
    but the last. Made by autodiff; removed by `lower`.

    Example: `%3:2 = acme.snake_grad %dy, %0, %1 : (tensor<2x8xf32>, tensor<2x8xf32>,
    tensor<8xf32>) -> (tensor<2x8xf32>, tensor<8xf32>)`.
  }];
  let results = (outs Oriel_FloatTensor:$input_grad, Oriel_FloatTensor:$alpha_grad);
}

#endif
