// Passes that make a training program of a model.
#ifndef ORIEL_PASSES_TRAIN_PASSES_TD
#define ORIEL_PASSES_TRAIN_PASSES_TD

include "mlir/Pass/PassBase.td"

def MixedPrecision : Pass<"oriel-mixed-precision", "::mlir::ModuleOp"> {
  let summary = "Computes @main in bf16 where that loses little, as a recipe says";
  let description = [{
    Does nothing unless the recipe's `precision` says so. Each op says of which class it is
    (`PrecisionOpInterface`; the recipe's `precision.ops` overrides that; docs/precision.md has
    the table): narrow ops compute in bf16 as soon as an operand is an activation, wide ones in
    f32, and the rest follows its operands. One cast stands behind each value
    that is used in the other type, constants are converted (finite ones stay finite), and what
    moves a weight moves the narrow one. A parameter that is used in bf16 becomes a bf16
    parameter, one that only f32 ops use stays f32. Inputs and outputs keep their types.
    Statistics that ops keep for the backward stay f32.

    ```mlir
    oriel.parameter @w {onnx_name = "w", type = tensor<8x4xf32>}
    func.func @main(%x: tensor<2x8xf32>, %w: tensor<8x4xf32>) -> tensor<2x4xf32> {
      %0 = oriel.linear %x, %w
      %1 = oriel.exp %0
      return %1
    }
    // →
    oriel.parameter @w {onnx_name = "w", type = tensor<8x4xbf16>}
    func.func @main(%x: tensor<2x8xf32>, %w: tensor<8x4xbf16>) -> tensor<2x4xf32> {
      %0 = oriel.cast %x : (tensor<2x8xf32>) -> tensor<2x8xbf16>
      %1 = oriel.linear %0, %w
      %2 = oriel.cast %1 : (tensor<2x4xbf16>) -> tensor<2x4xf32>
      %3 = oriel.exp %2
      return %3
    }
    ```
  }];
  let options = [Option<"recipe", "recipe", "std::string", "\"\"", "Path of the recipe (YAML)">];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def Train : Pass<"oriel-train", "::mlir::ModuleOp"> {
  let summary = "Makes @forward, @backward, @update and @eval of @main, as a recipe says";
  let description = [{
    Adds the recipe's loss to the model, differentiates it, and adds the optimizer. The
    segments' arguments and results bear the roles of `ir/oriel/segment.h`; the stash is an
    explicit result of `@forward` and argument of `@backward`. Forward ops are numbered
    (`origin`), and each backward op bears the number of the forward op that it came from.
    Nothing below the first trainable parameter has a backward. A trainable parameter that
    does not reach the loss is frozen, and one that the loss's output does not depend on is
    left out, with a warning. `@main` is erased.

    With `fuse-loss`, a cross entropy of what a linear layer makes and nothing else in `@forward`
    reads, or each that the model itself computes, is one op with that layer, `linear_cross_entropy`: the logits, which are large where the
    vocabulary is, are computed for some rows at a time, in the backward once more. `@eval` then
    makes layer, loss and predictions of some positions after the other, and gives no logits.

    A bf16 parameter (`oriel-mixed-precision`) has an f32 copy, the optimizer state "master":
    that is stepped, and the parameter is its rounded value. Gradients are f32 all the same,
    made so where the op that makes them can, unless the recipe's `precision.gradients` is bf16.

    ```mlir
    oriel.parameter @w {onnx_name = "w", type = tensor<8x4xf32>}
    func.func @main(%x: tensor<2x8xf32> {input "x"}, %w: tensor<8x4xf32> {parameter "w"})
        -> (tensor<2x4xf32> {output "logits"}) {
      %0 = oriel.linear %x, %w
      return %0
    }
    // →
    func.func @forward(%x, %labels, %w, %loss_sum, %token_count) -> (stash.., sums..)
    func.func @backward(stash.., %x, %labels, %w_gradient) -> (%w_gradient')
    func.func @update(%w, %w_exp_avg, %w_exp_avg_sq, %w_gradient, sums.., %learning_rate, %step)
        -> (%w', states', zeros.., %loss, %grad_norm, %token_count)
    func.func @eval(%x, %labels, %w) -> (%loss_sum, %token_count, %predictions, %logits)
    ```
  }];
  let options = [Option<"recipe", "recipe", "std::string", "\"\"", "Path of the recipe (YAML)">,
                 Option<"fuseLoss", "fuse-loss", "bool", "false",
                        "Make one op of the forward's cross entropy and the output layer">,
                 Option<"positionRanks", "position-ranks", "int64_t", "1",
                        "With fuse-loss, ranks that what is evaluated at a time divides over">];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def VerifyTrain : Pass<"oriel-verify-train", "::mlir::ModuleOp"> {
  let summary = "Checks the contract of the train phase";
  let description = [{
    There are four segments and no `@main`. Every op of `@backward` that computes has an
    origin in `@forward`; that op is active (it depends on a trainable parameter and the loss
    depends on it), or the backward op repeats it. Roles agree between segments: what has the
    same role has the same type, each stash value is written by `@forward` and read by
    `@backward`, new values replace arguments of the same segment, and exactly the trainable
    parameters have gradients and are updated. The module is not changed.
  }];
}

def Differentiate : Pass<"oriel-differentiate", "::mlir::ModuleOp"> {
  let summary = "Adds the vector-Jacobian product of a function (to test derivatives)";
  let description = [{
    For a function of one block, adds `@<function>_vjp`: it takes what it needs of the
    function's values, then a cotangent for each float result, and returns the cotangent of
    each float argument (a constant zero where nothing depends on it). `wrt` restricts the
    arguments. The trainer does not use this pass, but the same algorithm.

    ```mlir
    func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
      %0 = oriel.exp %x
      return %0
    }
    // →
    func.func @f_vjp(%0: tensor<4xf32>, %cotangent: tensor<4xf32>) -> tensor<4xf32> {
      %1 = oriel.mul %cotangent, %0
      return %1
    }
    ```
  }];
  let options = [
    Option<"function", "function", "std::string", "\"f\"", "Name of the function">,
    ListOption<"wrt", "wrt", "unsigned", "Arguments to differentiate for (default: all)">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def SeedDropout : Pass<"oriel-seed-dropout", "::mlir::ModuleOp"> {
  let summary = "Gives each dropout the random bits of the microbatch's samples";
  let description = [{
    Adds an input to @main, which no data fills, and makes it an operand of each `oriel.dropout`.
    The attribute `oriel.sample_bits` of the module names it. Where the first dimension of what is
    dropped has no rows of whole samples, all of it is the first sample's.

    ```mlir
    func.func @main(%ids {input "input_ids"}) {
      %y = oriel.dropout %x {ratio = 0.1, site = 7}
    // oriel-seed-dropout{samples=4} →
    func.func @main(%ids {..}, %bits: tensor<4xi64> {input "sample_bits"}) {
      %y = oriel.dropout %x, %bits {ratio = 0.1, site = 7}
    ```
  }];
  let options = [
    Option<"samples", "samples", "int64_t", "1", "Samples of a microbatch, of all ranks">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
