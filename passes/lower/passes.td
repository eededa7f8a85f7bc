// Passes from the oriel dialect to programs of the exec dialect.
#ifndef ORIEL_PASSES_LOWER_PASSES_TD
#define ORIEL_PASSES_LOWER_PASSES_TD

include "mlir/Pass/PassBase.td"

def AssignGradients : Pass<"oriel-assign-gradients", "::mlir::ModuleOp"> {
  let summary = "Assigns a gradient that one segment makes, once in a step, instead of adding it";
  let description = [{
    A gradient is a sum over the microbatches of a step, to which each backward adds, and which
    `@update` sets to zero. Where the schedule has one run of a backward that adds to it, that sets
    it, and `@update` leaves it. So no segment reads what was there before, and if the step has no
    other backward, the gradient's memory is free until it is set and behind its use in `@update`.

    ```mlir
    func.func @backward(%stash.., %sum {gradient "w"}) -> (tensor<4xf32> {gradient "w"}) {
      %0 = ..
      %1 = oriel.add %sum, %0
      return %1
    }
    // →
    func.func @backward(%stash..) -> (tensor<4xf32> {gradient "w"}) {
      %0 = ..
      return %0
    }
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def KeepRemainders : Pass<"oriel-keep-remainders", "::mlir::ModuleOp"> {
  let summary = "Keeps of an f32 master only what its parameter of bf16 lacks";
  let description = [{
    A parameter of bf16 is its master rounded: the two have 48 bits for the 32 of a number. Where
    both are stored alike and the step's op takes it (ListedOpInterface), the state `master` becomes
    i16, the 16 bits that the parameter lacks (runtime/base/remainder.h), and the step computes with
    what the two make together. Of ranks that store parts of the master but all of the parameter
    (ZeRO 1 and 2), it stays.

    ```mlir
    func.func @update(%p {parameter "w"} : bf16, %m {optimizer_state "w" "master"} : f32, %g, ..) {
      %0 = oriel.sgd %m, %g, ..
      %1 = oriel.cast %0 : f32 to bf16
      return %1 {parameter "w"}, %0 {optimizer_state "w" "master"}
    }
    // →
    func.func @update(%p {parameter "w"} : bf16, %m {optimizer_state "w" "master"} : i16, %g, ..) {
      %0:2 = oriel.sgd %p, %g, %m, ..
      return %0#0 {parameter "w"}, %0#1 {optimizer_state "w" "master"}
    }
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def FormFused : Pass<"oriel-form-fused", "::mlir::ModuleOp"> {
  let summary = "Joins sums, casts, activations and gradients of biases to the ops beside them";
  let description = [{
    What a kernel can do besides becomes part of its op (the interfaces of fusion.td):

    - Casts around an op in f32 whose kernel widens what it reads and rounds what it writes, if all
      that it reads is cast from, and every use of its result cast to, one narrower type.
    - A sum of what the op makes and of another value: a residual, the gradient of the microbatches
      before, another cotangent. Nobody else may use what the op makes, the other value must be
      there before it, and both must be of one cluster: then clones that `remat` made have the bits
      of their originals. It is added before the result is rounded.
    - The gradient of a bias: sums of a cotangent over its rows, beside the gradient of the weight for
      the same cotangent.
    - An activation that libraries apply to a product, and its derivative. Forward, both must be
      computed again or neither: the kernel need not round what the activation is of.
    - Else, a sum that is operand 0 of the op, if nothing is computed between the two. The sum is
      another result.

    ```mlir
    %0 = oriel.linear_weight_grad %x, %dy : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
    %1 = oriel.add %dw, %0 : (tensor<8x6xf32>, tensor<8x6xf32>) -> tensor<8x6xf32>
    // →
    %1 = oriel.linear_weight_grad_add %x, %dy, %dw : (tensor<4x8xf32>, tensor<4x6xf32>,
        tensor<8x6xf32>) -> tensor<8x6xf32>
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def FormLists : Pass<"oriel-form-lists", "::mlir::ModuleOp"> {
  let summary = "Makes one op of optimizer steps that come one after the other";
  let description = [{
    Ops whose kernel takes a list of tensors (`ListedOpInterface`), with the same attributes, types
    and common operands, become one op, where the last of them stands; it also rounds results for
    which a cast does. Nothing is moved over a collective, a wait, a send or a receive: what is on
    its way meanwhile stays so. What a list does to each tensor is what the op did.

    ```mlir
    %0:3 = oriel.adamw %p, %g, %m, %v, %scale, %rate, %step {beta1 = ..}
    %1 = oriel.cast %0#0 : (tensor<8xf32>) -> tensor<8xbf16>
    %2:3 = oriel.adamw %q, %h, %n, %w, %scale, %rate, %step {beta1 = ..}
    %3 = oriel.cast %2#0 : (tensor<4xf32>) -> tensor<4xbf16>
    // →
    %0:8 = oriel.adamw_list %p, %q, %g, %h, %m, %n, %v, %w, %scale, %rate, %step {beta1 = ..}
    ```
  }];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def LowerToExec : Pass<"oriel-lower-to-exec", "::mlir::ModuleOp"> {
  let summary = "Replaces the segment functions by one exec program";
  let description = [{
    Gives each value a buffer at a fixed offset of one arena, and makes one instruction
    of each op: a launch of the kernel that the op names, a collective, a copy, or none
    where the result is a view of its operand. Parameters, optimizer states, gradients,
    accumulators, inputs and scalars keep one buffer over all segments; the stash lives
    from `@forward` to its last use in `@backward`; the rest share bytes by lifetime. A
    kernel that may overwrite an operand does so at that operand's last use.

    ```mlir
    func.func @forward(%x: tensor<4xf32> {oriel.kind = "input", oriel.ref = "x"}) ->
        (tensor<4xf32> {oriel.kind = "output", oriel.ref = "y"}) {
      %0 = oriel.exp %x : (tensor<4xf32>) -> tensor<4xf32>
      return %0 : tensor<4xf32>
    }
    // →
    exec.program @ranks attributes {arena_bytes = 128 : i64, first_rank = 0 : i64, ...} {
      exec.buffer @b0 : tensor<4xf32> {kind = "input", offset = 0 : i64, ref = "x"}
      exec.buffer @b1 : tensor<4xf32> {kind = "output", offset = 64 : i64, ref = "y"}
      exec.segment @forward {
        exec.launch "exp" [@b0] -> [@b1] {} from "oriel.exp"
      }
    }
    ```
  }];
  let options = [Option<"alignment", "alignment", "int64_t", /*default=*/"64",
                        "Of each value in the arena, in bytes: 64 times a power of two">];
  let dependentDialects = ["::oriel::exec::ExecDialect"];
}

#endif
