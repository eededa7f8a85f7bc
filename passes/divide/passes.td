// Passes that rewrite a model so that its layers divide over the ranks of a strategy.
#ifndef ORIEL_PASSES_DIVIDE_PASSES_TD
#define ORIEL_PASSES_DIVIDE_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/strategize/strategy_option.td"

def CutProducts : Pass<"oriel-cut-products", "::mlir::ModuleOp"> {
  let summary = "Makes one linear layer per part of a product that only parts are used of";
  let description = [{
    Before `train`. A weight that holds query, key and value side by side, or gate and up, can't
    be split over tensor-parallel ranks as it is: the columns of a rank are not those of one
    slice. Where reshapes and transposes of a product lead to nothing but slices of its columns,
    and these make it up, each becomes a product with its own columns of weight and bias, new
    parameters that remember where they lie in that of the files (`oriel.whole`, `oriel.start`). A
    bias may be joined of those of the slices. On tensor-parallel ranks a weight may be reshaped and
    transposed before, as einsums do (`[3, heads, depth, columns]`), if the slices are indices of its
    first dimension, say. Cut are parameters of this layer alone that the
    strategy has no rule of its own for, where the loss depends on each slice: on tensor-parallel ranks, and elsewhere where the slices would copy more
    than the products of the pieces read again. On tensor-parallel ranks, slices of what
    pointwise ops make of such products, biases and what is the same for all columns, as of a layer's
    product and its adapter's, are made of slices of the products first.

    The other way round, on tensor-parallel ranks a layer of joined columns, such as attention's and
    an MLP's side by side, becomes the sum of products of what is joined, with parts of its weight's
    rows, where some of it can be made in pieces.

    With and without tensor parallelism, a parameter of which the model itself takes nothing but slices
    that make it up, along one dimension, becomes parts too, where the loss depends on each of them and
    the strategy has no rule of its own for it.

    ```mlir
    oriel.parameter @p0 {onnx_name = "qkv.weight", type = tensor<8x24xf32>}
    %0 = oriel.linear %x, %w : .. -> tensor<4x24xf32>
    %1 = oriel.slice %0 {starts = array<i64: 0, 0>, limits = array<i64: 4, 8>, ..}
    // mesh: {tp: 2} →
    oriel.parameter @p0_0 {onnx_name = "qkv.weight", oriel.start = array<i64: 0, 0>,
                           oriel.whole = array<i64: 8, 24>, type = tensor<8x8xf32>}
    %1 = oriel.linear %x, %w0 : .. -> tensor<4x8xf32>
    ```
  }];
  let options = [
    StrategyOption,
    Option<"output", "output", "std::string", "\"logits\"", "The model's output of which the loss is">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def CutConvolutions : Pass<"oriel-cut-convolutions", "::mlir::ModuleOp"> {
  let summary = "Makes one depthwise convolution per part of the channels of one";
  let description = [{
    Before `oriel-cut-products`. In front of linear attention and state spaces, queries, keys and
    values are joined for one convolution of each channel's positions, and taken apart again. The
    channels of a tensor-parallel rank are not those of one slice then. Where all that is made of a
    depthwise convolution's channels is slices of them, behind slices of positions, activations and
    transposes, and these make it up, each becomes a convolution of its own channels: of what was
    joined, and with a slice of weight and bias, which become parts. On tensor-parallel ranks; the
    strategy has no rule of its own for the weight.

    ```mlir
    %0 = oriel.concat %q, %k {dim = 1 : i64} : .. -> tensor<2x8x16xf32>
    %1 = oriel.conv %0, %w {group = 8 : i64, ..}
    %2 = oriel.activation %1 {kind = "silu"}
    %3 = oriel.slice %2 {starts = array<i64: 0, 0, 0>, limits = array<i64: 2, 4, 16>, ..}
    // mesh: {tp: 2} →
    %0 = oriel.slice %w {starts = array<i64: 0, 0, 0>, limits = array<i64: 4, 1, 4>, ..}
    %1 = oriel.conv %q, %0 {group = 4 : i64, ..}
    %3 = oriel.activation %1 {kind = "silu"}
    ```
  }];
  let options = [
    StrategyOption,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def AddBiasesLast : Pass<"oriel-add-biases-last", "::mlir::ModuleOp"> {
  let summary = "Adds biases behind the sum of two products";
  let description = [{
    Before `train`. Where tensor-parallel ranks split a layer by rows, its product is a sum of what
    they have, and a bias is added to the whole: so the sum would be completed before the product
    of an adapter, or of a layer beside it, which is such a sum too, can join it.

    ```mlir
    %0 = oriel.linear %x, %w, %b
    %1 = oriel.linear %low, %up
    %2 = oriel.add %0, %1
    // mesh: {tp: 2} →
    %0 = oriel.linear %x, %w
    %1 = oriel.linear %low, %up
    %2 = oriel.add %0, %1
    %3 = oriel.add %2, %b
    ```
  }];
  let options = [
    StrategyOption,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def PadBlocks : Pass<"oriel-pad-blocks", "::mlir::ModuleOp"> {
  let summary = "Makes heads, and columns of MLPs, divide over tensor-parallel ranks";
  let description = [{
    Before `train`, behind the cuts, where the strategy says `padding`. Looks for blocks (see
    tensor_blocks.h) that end with linear layers, and are cut along something that tensor
    parallelism does not divide: 25 heads, 2730 columns. Their parameters get zeros behind the
    end of what is cut, up to the next number that it divides (`oriel.unpadded` remembers the shape
    in files), and the ops between them the larger shapes. The zeros stay: what is made of them
    reaches the last layer as zero, if need be by a `select` in front of it, and leaves it through
    weights that are zero. Where grouped queries share keys and values, all of a group are added;
    where these ranks share keys and values, queries behind each group (`oriel.padded_groups`).

    A root-mean-square norm over all heads has √s of its weight and s times the epsilon, for s of
    its row being true. What data alone makes has its last element again.

    Left alone are blocks with ops whose derivatives may not be finite at zero (a square root, a
    division), or that may hide all (a mask of activations), with other norms of what is cut, with
    dropout, or of which others read what is in pieces.

    ```mlir
    oriel.parameter @p0 {onnx_name = "up", type = tensor<8x6xf32>}
    oriel.parameter @p1 {onnx_name = "down", type = tensor<6x8xf32>}
    %0 = oriel.linear %x, %up
    %1 = oriel.sigmoid %0
    %2 = oriel.linear %1, %down
    // mesh: {tp: 4}, padding: true →
    oriel.parameter @p0 {.., oriel.unpadded = array<i64: 8, 6>, type = tensor<8x8xf32>}
    oriel.parameter @p1 {.., oriel.unpadded = array<i64: 6, 8>, type = tensor<8x8xf32>}
    %0 = oriel.linear %x, %up : .. -> tensor<4x8xf32>
    %1 = oriel.sigmoid %0
    %isTrue = oriel.less %iota, %six
    %2 = oriel.select %isTrue, %1, %zero
    %3 = oriel.linear %2, %down
    ```
  }];
  let options = [
    StrategyOption,
    Option<"output", "output", "std::string", "\"logits\"",
           "The model's output that is the logits of the loss">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def PadVocabulary : Pass<"oriel-pad-vocabulary", "::mlir::ModuleOp"> {
  let summary = "Makes vocabularies divide over tensor-parallel ranks";
  let description = [{
    Before `train`. Looks in @main for the parameters with a row per token: the tables of
    lookups by indices that come from an input, and the weight and bias of the linear layer
    that makes the logits of the loss (one that is both stays one). Where tensor
    parallelism does not divide their rows, and the strategy has no rule of its own for
    them, they get the next size that it divides; the attribute `oriel.unpadded` remembers the
    shape in files, and a warning says so. What is behind stays zero: lookups refuse indices beyond the
    true rows, and the bias is -inf there, so that its classes have the probability 0 and
    the gradient 0. Where other ops than reshapes stand between that layer and the logits (a
    scale, a soft cap, a slice of positions), they are wide too, and what they give is set to
    -inf. All others see slices of the true shape; `train` takes the loss of the wide logits,
    of which the slice cuts nothing but -inf.

    ```mlir
    oriel.parameter @p0 {onnx_name = "lm_head.weight", type = tensor<130x8xf32>}
    %0 = oriel.linear %x, %w {transpose_weight = true} : .. -> tensor<2x4x130xf32>
    // mesh: {tp: 4} →
    oriel.parameter @p0 {.., oriel.unpadded = array<i64: 130, 8>, type = tensor<132x8xf32>}
    %beyond = oriel.greater_equal %iota, %130 : .. -> tensor<132xi1>
    %bias = oriel.select %beyond, %minus_infinity, %zero : .. -> tensor<132xf32>
    %0 = oriel.linear %x, %w, %bias {transpose_weight = true} : .. -> tensor<2x4x132xf32>
    %1 = oriel.slice %0 {limits = array<i64: 2, 4, 130>, ..} : .. -> tensor<2x4x130xf32>
    ```
  }];
  let options = [
    StrategyOption,
    Option<"output", "output", "std::string", "\"logits\"",
           "The model's output that is the logits of the loss">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
