// Contractions: batched matrix products, linear layers, convolution.
#ifndef ORIEL_IR_ORIEL_LINEAR_TD
#define ORIEL_IR_ORIEL_LINEAR_TD

include "ir/oriel/base.td"

def MatmulOp : Oriel_Op<"matmul",
    (ins Oriel_FloatTensor:$lhs, Oriel_FloatTensor:$rhs,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_lhs,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_rhs,
         DefaultValuedAttr<Oriel_IntAttr, "1">:$row_dims,
         DefaultValuedAttr<Oriel_IntAttr, "1">:$sum_dims,
         DefaultValuedAttr<Oriel_IntAttr, "1">:$column_dims),
    [Differentiable, FlopsOp, InferTypes, PreciseOp, SameOperandsElementType, ShardedOp]> {
  let summary = "Batched matrix product";
  let description = [{
    `result[b.., m.., n..] = Σ_k lhs[b.., m.., k..] rhs[b.., k.., n..]`. Both operands have
    the same leading (batch) dimensions: the importer makes any broadcast explicit. Rows `m`,
    columns `n` and what is summed over, `k`, are one dimension each, or as many as `row_dims`,
    `column_dims` and `sum_dims` say: so one of several can be sharded. A `transpose_` flag says
    that the operand is stored `[b.., k.., m..]` or `[b.., n.., k..]`.

    Example: `%2 = oriel.matmul %0, %1 {transpose_rhs = true} : (tensor<2x4x8xf32>,
    tensor<2x6x8xf32>) -> tensor<2x4x6xf32>`; with rows of 2 x 4, `oriel.matmul %0, %1
    {row_dims = 2 : i64} : (tensor<3x2x4x8xf32>, tensor<3x8x6xf32>) -> tensor<3x2x4x6xf32>`.
    Made by the importer, by `raise` and by autodiff;
    removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def LinearOp : Oriel_Op<"linear",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Optional<Oriel_FloatTensor>:$bias,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight),
    [Differentiable, FlopsOp, InferTypes, PreciseOp, SameOperandsElementType, SteppedShardedOp]> {
  let summary = "Linear layer on the last dimension";
  let description = [{
    `result[b.., n] = Σ_k input[b.., k] weight[k, n] + bias[n]`; with
    `transpose_weight` the weight is stored as `[n, k]`. The weight has rank 2, the
    bias rank 1, the input any rank >= 1.

    Example: `%3 = oriel.linear %x, %w, %b {transpose_weight = true} :
    (tensor<2x8x64xf32>, tensor<256x64xf32>, tensor<256xf32>) -> tensor<2x8x256xf32>`.
    Made by the importer (`Gemm`, `MatMul` with a matrix) and by `raise`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def LinearWeightGradOp : Oriel_Op<"linear_weight_grad",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$cotangent,
         DefaultValuedAttr<BoolAttr, "false">:$transpose_weight),
    [FlopsOp, InferWideTypes, SameOperandsElementType, ShardedOp, WideSumOp]> {
  let summary = "Cotangent of a linear layer's weight";
  let description = [{
    `result[k, n] = Σ_b input[b.., k] cotangent[b.., n]`, stored as `[n, k]` with
    `transpose_weight`; f32 or the operands' element type. Made by autodiff; removed by `lower`.

    Example: `%3 = oriel.linear_weight_grad %x, %dy {transpose_weight = true} :
    (tensor<2x4x8xf32>, tensor<2x4x16xf32>) -> tensor<16x8xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def TriangularSolveOp : Oriel_Op<"triangular_solve",
    (ins Oriel_FloatTensor:$matrix, Oriel_FloatTensor:$rhs,
         DefaultValuedAttr<BoolAttr, "false">:$upper,
         DefaultValuedAttr<BoolAttr, "false">:$transpose,
         DefaultValuedAttr<BoolAttr, "false">:$unit_diagonal),
    [Differentiable, FlopsOp, InferTypes, SameOperandsElementType, ShardedOp]> {
  let summary = "Solution of triangular systems of equations";
  let description = [{
    The `X` with `op(T) X = rhs` for each matrix `[.., n, n]` and right-hand side `[.., n, m]`. `T` is
    the matrix's lower triangle, with `upper` its upper one; with `unit_diagonal` its diagonal is 1,
    whatever the matrix holds. What lies beyond is not read. `op` transposes with `transpose`. A
    zero on the diagonal gives an infinity or NaN.

    Example: `%2 = oriel.triangular_solve %t, %b {unit_diagonal = true} : (tensor<2x8x8xf32>,
    tensor<2x8x4xf32>) -> tensor<2x8x4xf32>`.
    Made by `raise` of loops row by row, such as the inverse in chunks of a gated delta rule (Yang
    et al. 2024, "Gated Delta Networks"), and by autodiff; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

class Oriel_ConvOp<string mnemonic, dag args, list<Trait> traits>
    : Oriel_Op<mnemonic, !con(args, (ins
        DenseI64ArrayAttr:$strides, DenseI64ArrayAttr:$pads,
        DenseI64ArrayAttr:$dilations, DefaultValuedAttr<Oriel_IntAttr, "1">:$group)),
        !listconcat(traits, [FlopsOp])>;

def ConvOp : Oriel_ConvOp<"conv",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$weight,
         Optional<Oriel_FloatTensor>:$bias),
    [Differentiable, InferTypes, PreciseOp, RebuiltSteppedShardedOp]> {
  let summary = "N-dimensional convolution (cross-correlation)";
  let description = [{
    ONNX `Conv`: input `[b, c, d..]`, weight `[o, c/group, k..]`, bias `[o]`, result
    `[b, o, e..]`. `strides` and `dilations` have one entry per spatial dimension,
    `pads` two: all lows, then all highs.

    Example: `%2 = oriel.conv %x, %w {strides = array<i64: 4, 4>, pads =
    array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x3x28x28xf32>,
    tensor<64x3x4x4xf32>) -> tensor<2x64x7x7xf32>`. Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
}

def ConvInputGradOp : Oriel_ConvOp<"conv_input_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$weight),
    [Differentiable, PreciseOp, RebuiltShardedOp]> {
  let summary = "Cotangent of a convolution's input";
  let description = [{
    The result has the input's type: ONNX `ConvTranspose`. Made by autodiff and by the
    importer; removed by `lower`.

    Example: `%1 = oriel.conv_input_grad %dy, %w {strides = array<i64: 4, 4>, pads =
    array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x64x7x7xf32>,
    tensor<64x3x4x4xf32>) -> tensor<2x3x28x28xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

def ConvWeightGradOp : Oriel_ConvOp<"conv_weight_grad",
    (ins Oriel_FloatTensor:$cotangent, Oriel_FloatTensor:$input),
    [RebuiltShardedOp, WideSumOp]> {
  let summary = "Cotangent of a convolution's weight";
  let description = [{
    The result has the weight's type, or f32 elements. Made by autodiff; removed by `lower`.

    Example: `%2 = oriel.conv_weight_grad %dy, %x {strides = array<i64: 4, 4>, pads =
    array<i64: 0, 0, 0, 0>, dilations = array<i64: 1, 1>} : (tensor<2x64x7x7xf32>,
    tensor<2x3x28x28xf32>) -> tensor<64x3x4x4xf32>`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

#endif
