// Ops that move or repeat elements without arithmetic, and their transposes.
#ifndef ORIEL_IR_ORIEL_SHAPE_TD
#define ORIEL_IR_ORIEL_SHAPE_TD

include "ir/oriel/base.td"

def ConstantOp : Oriel_Op<"constant", (ins ElementsAttr:$value),
    [ConstantLike, InferTypes, RebuiltShardedOp]> {
  let summary = "A tensor known at compile time";
  let description = [{
    Its bytes are placed in the plan. Weights are not constants but parameters.

    Example: `%0 = oriel.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>`.
    Made by the importer and by folding; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
}

def IotaOp : Oriel_Op<"iota", (ins Oriel_IntAttr:$dim), [RebuiltShardedOp]> {
  let summary = "Index along one dimension";
  let description = [{
    Element at `(i0, .., in)` is `i_dim`.

    Example: `%0 = oriel.iota {dim = 1 : i64} : () -> tensor<2x3xi64>`. Made by the
    importer; folded by `specialize` where it is small, removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def ReshapeOp : Oriel_Op<"reshape", (ins Oriel_Tensor:$input),
    [Differentiable, ViewOp, ShardedOp]> {
  let summary = "Same elements in row-major order under another shape";
  let description = [{
    Example: `%1 = oriel.reshape %0 : (tensor<4x8xf32>) -> tensor<2x2x8xf32>`.
    Costs nothing at run time. Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
  let extraClassDefinition = "bool $cppClass::isView() { return true; }";
}

def TransposeOp : Oriel_Op<"transpose",
    (ins Oriel_Tensor:$input, DenseI64ArrayAttr:$permutation),
    [Differentiable, InferTypes, PreciseOp, ShardedOp]> {
  let summary = "Permutation of dimensions";
  let description = [{
    Dimension `i` of the result is dimension `permutation[i]` of the input.

    Example: `%1 = oriel.transpose %0 {permutation = array<i64: 1, 0>} :
    (tensor<4x8xf32>) -> tensor<8x4xf32>`. Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
}

def BroadcastOp : Oriel_Op<"broadcast", (ins Oriel_Tensor:$input),
    [Differentiable, PreciseOp, ShardedOp]> {
  let summary = "Repetition of size-1 dimensions up to the result's shape";
  let description = [{
    Shapes are aligned at the last dimension as NumPy does.

    Example: `%1 = oriel.broadcast %0 : (tensor<1x8xf32>) -> tensor<4x8xf32>`. Made
    by the importer (`Expand`, `Tile`) and by autodiff; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def SliceOp : Oriel_Op<"slice",
    (ins Oriel_Tensor:$input, DenseI64ArrayAttr:$starts, DenseI64ArrayAttr:$limits,
         DenseI64ArrayAttr:$strides),
    [Differentiable, InferTypes, PreciseOp, RebuiltShardedOp]> {
  let summary = "A strided box of a tensor";
  let description = [{
    For each dimension the elements `start, start+stride, ..` below `limit`;
    `0 <= start <= limit <= size`, `stride >= 1`.

    Example: `%1 = oriel.slice %0 {starts = array<i64: 0, 1>, limits = array<i64: 4, 8>,
    strides = array<i64: 1, 1>} : (tensor<4x8xf32>) -> tensor<4x7xf32>`. Made by the
    importer; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
}

def PadOp : Oriel_Op<"pad",
    (ins Oriel_Tensor:$input, DenseI64ArrayAttr:$low, DenseI64ArrayAttr:$high,
         DenseI64ArrayAttr:$interior, DefaultValuedAttr<Oriel_FloatAttr, "0.0">:$value),
    [Differentiable, InferTypes, PreciseOp, ShardedOp]> {
  let summary = "A tensor surrounded by a constant";
  let description = [{
    Puts `low` elements of `value` before, `high` after, and `interior` between any
    two elements of each dimension; all are at least 0. The transpose of `slice`.

    Example: `%1 = oriel.pad %0 {low = array<i64: 1>, high = array<i64: 0>,
    interior = array<i64: 0>} : (tensor<7xf32>) -> tensor<8xf32>`. Made by the
    importer and by autodiff; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
}

def ConcatOp : Oriel_Op<"concat", (ins Variadic<Oriel_Tensor>:$inputs, Oriel_IntAttr:$dim),
    [Differentiable, InferTypes, PreciseOp, ShardedOp]> {
  let summary = "Tensors joined along a dimension";
  let description = [{
    Example: `%2 = oriel.concat %0, %1 {dim = 0 : i64} : (tensor<1x8xf32>,
    tensor<4x8xf32>) -> tensor<5x8xf32>`. Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
}

def GatherOp : Oriel_Op<"gather",
    (ins Oriel_Tensor:$input, Oriel_IndexTensor:$indices, Oriel_IntAttr:$dim,
         Optional<Oriel_First>:$first, DefaultValuedAttr<Oriel_IntAttr, "0">:$rows,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$batch_dims),
    [Differentiable, InferTypes, PreciseOp, RebuiltShardedOp]> {
  let summary = "Rows picked by index along a dimension";
  let description = [{
    `result[a.., i.., b..] = input[a.., indices[i..], b..]`, the index in dimension
    `dim`: ONNX `Gather`, and an embedding for `dim = 0`. A negative index counts
    from the end; one out of range is a runtime error.

    With `batch_dims`, which is then `dim`, as many leading dimensions are those of both operands:
    `result[c.., i.., b..] = input[c.., indices[c.., i..], b..]`, ONNX `GatherElements` along the
    last dimension.

    With `first` and `rows` the input is a piece of a table of `rows` rows, which begins
    at row `first`: indices are those of the whole table, and one of another piece gives
    zeros. No derivative: autodiff comes before the partition.

    Example: `%2 = oriel.gather %table, %ids {dim = 0 : i64} : (tensor<128x64xf32>,
    tensor<2x8xi64>) -> tensor<2x8x64xf32>`. Made by the importer, on pieces by
    `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
  let hasFolder = 1;
}

def ScatterAddOp : Oriel_Op<"scatter_add",
    (ins Oriel_IndexTensor:$indices, Oriel_FloatTensor:$updates, Oriel_IntAttr:$dim,
         Optional<Oriel_First>:$first, DefaultValuedAttr<Oriel_IntAttr, "0">:$rows,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$batch_dims),
    [Differentiable, RebuiltShardedOp, WideSumOp]> {
  let summary = "Rows added up by index: the transpose of gather";
  let description = [{
    The result starts at zero; each row of `updates` is added to the row that the
    index names, in row-major order of the indices (deterministic). The result may be f32
    where the updates are narrower. `batch_dims` as in `gather`. With `first` and
    `rows` the result is the piece of a table of `rows` rows that begins at row `first`,
    and updates of other pieces' rows are left out.

    Example: `%2 = oriel.scatter_add %ids, %g {dim = 0 : i64} : (tensor<2x8xi64>,
    tensor<2x8x64xf32>) -> tensor<128x64xf32>`. Made by autodiff and by the importer
    (`ScatterND`), on pieces by `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_FloatTensor:$result);
  let hasVerifier = 1;
}

class Oriel_ReduceOp<string mnemonic, string what, list<Trait> traits = [],
                     Trait infer = InferTypes>
    : Oriel_Op<mnemonic,
        (ins Oriel_ArithmeticTensor:$input, DenseI64ArrayAttr:$dims,
             DefaultValuedAttr<BoolAttr, "false">:$keep_dims),
        !listconcat(traits, [FlopsOp, infer])> {
  let summary = what # " over dimensions";
  let description = what # " over `dims` (sorted, distinct), which disappear or "
      "stay with size 1 (`keep_dims`).\n\nExample: `%1 = oriel." # mnemonic #
      " %0 {dims = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4xf32>`. Made by the "
      "importer and by autodiff; removed by `lower`.";
  let results = (outs Oriel_ArithmeticTensor:$result);
  let hasFolder = 1;
}
// Of floats narrower than f32 the sum may be f32.
def ReduceSumOp : Oriel_ReduceOp<"reduce_sum", "Sum", [Differentiable, ShardedOp, WideSumOp],
                                 InferWideTypes>;
def ReduceMeanOp : Oriel_ReduceOp<"reduce_mean", "Mean", [Differentiable, SteppedShardedOp]>;
def ReduceMaxOp : Oriel_ReduceOp<"reduce_max",
    "Maximum (the cotangent is shared evenly by equal maxima)", [Differentiable, PreciseOp, ShardedOp]>;
def ReduceMinOp : Oriel_ReduceOp<"reduce_min",
    "Minimum (the cotangent is shared evenly by equal minima)", [Differentiable, PreciseOp, ShardedOp]>;
def ReduceProdOp : Oriel_ReduceOp<"reduce_prod", "Product", [Differentiable, ShardedOp]>;

def CumsumOp : Oriel_Op<"cumsum",
    (ins Oriel_ArithmeticTensor:$input, Oriel_IntAttr:$dim,
         DefaultValuedAttr<BoolAttr, "false">:$exclusive,
         DefaultValuedAttr<BoolAttr, "false">:$reverse),
    [Differentiable, SameOperandsAndResultType, ShardedOp]> {
  let summary = "Running sum along a dimension";
  let description = [{
    Element `i` is the sum of elements up to `i` (before `i` if `exclusive`; from the
    end if `reverse`). Made by the importer; removed by `lower`.

    Example: `%1 = oriel.cumsum %0 {dim = 1 : i64} : (tensor<2x8xi64>) -> tensor<2x8xi64>`.
  }];
  let results = (outs Oriel_ArithmeticTensor:$result);
  let hasFolder = 1;
  let hasVerifier = 1;
}

def ArgmaxOp : Oriel_Op<"argmax", (ins Oriel_ArithmeticTensor:$input, Oriel_IntAttr:$dim,
    DefaultValuedAttr<BoolAttr, "false">:$keep_dims),
    [InferTypes, PreciseOp, SteppedShardedOp]> {
  let summary = "Index of the first largest element along a dimension";
  let description = [{
    Example: `%1 = oriel.argmax %0 {dim = 2 : i64} : (tensor<2x8x128xf32>) ->
    tensor<2x8xi64>`. Made by the importer and by `train` (evaluation); removed by `lower`.
  }];
  let results = (outs Oriel_IndexTensor:$result);
}

def RemainingFromOp : Oriel_Op<"remaining_from",
    (ins Oriel_FloatTensor:$input, Oriel_FloatTensor:$value, Optional<Oriel_First>:$first,
         DefaultValuedAttr<Oriel_IntAttr, "0">:$size),
    [InferTypes, RebuiltShardedOp]> {
  let summary = "How many elements of a row lie from the first one that is equal to a value on";
  let description = [{
    `result[n..] = size - i` for the least `i` with `input[n.., i] = value[n..]` (NaN is equal
    to NaN), 0 where there is none; `size` is the row's. With `first` and `size` the rows are a
    piece, which begins at element `first`, of rows of `size` elements: the greatest result of
    all pieces is that of the row.

    Example: `%1 = oriel.remaining_from %0, %max : (tensor<2x8x128xf32>, tensor<2x8xf32>) ->
    tensor<2x8xi64>`. Made by `propagate`; removed by `lower`.
  }];
  let results = (outs Oriel_IndexTensor:$result);
}

def TopkOp : Oriel_Op<"topk", (ins Oriel_ArithmeticTensor:$input, Oriel_IntAttr:$k,
    Oriel_IntAttr:$dim, DefaultValuedAttr<BoolAttr, "true">:$largest),
    [InferTypes, PreciseOp, ShardedOp]> {
  let summary = "Indices of the largest or smallest elements along a dimension";
  let description = [{
    The `k` largest (or smallest) in descending (ascending) order, equal ones by
    ascending index; NaN is larger than any number. 0 <= k <= the dimension's size. The
    elements themselves are a gather by these indices, through which the derivative goes.

    Example: `%1 = oriel.topk %0 {k = 2 : i64, dim = 1 : i64} : (tensor<4x8xf32>) ->
    tensor<4x2xi64>`. Made by the importer; removed by `lower`.
  }];
  let results = (outs Oriel_IndexTensor:$indices);
  let hasFolder = 1;
}

#endif
