// Ops between the ranks of a group, and the one that picks a rank's piece.
#ifndef ORIEL_IR_ORIEL_DISTRIBUTED_TD
#define ORIEL_IR_ORIEL_DISTRIBUTED_TD

include "ir/interfaces/collective.td"
include "ir/oriel/base.td"

// An op on local tensors over the atomic axes `axes`, which stand in grid order: pieces are
// numbered row-major over the axes, which is the order of the group's ranks. Not pure, for every
// rank has to run the same ones in the same order: neither merged, moved nor removed.
class Oriel_DistributedOp<string mnemonic, dag args, list<Trait> traits = []>
    : Op<OrielDialect, mnemonic, traits> {
  let arguments = !con(args, (ins DefaultValuedAttr<Oriel_IntAttr, "-1">:$origin));
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def AllReduceOp : Oriel_DistributedOp<"all_reduce",
    (ins Variadic<Oriel_Tensor>:$inputs, StrArrayAttr:$axes, StrAttr:$reduction),
    [DeclareOpInterfaceMethods<CollectiveOpInterface,
                               ["getReductionName", "mayReduceInPlace"]>]> {
  let summary = "Each operand reduced over the ranks of a group";
  let description = [{
    `axes` are the atomic axes of the grid that the group spans; `reduction` is `sum` or
    `max`. Several operands travel together in one collective. Not pure: it is neither
    merged, moved nor removed.

    Example: `%2:2 = oriel.all_reduce %0, %1 {axes = ["a0"], reduction = "sum"} :
    (tensor<8xf32>, tensor<f32>) -> (tensor<8xf32>, tensor<f32>)`. Made by `partition`;
    removed by `lower`.
  }];
  let results = (outs Variadic<Oriel_Tensor>:$results);
}

def AllGatherOp : Oriel_DistributedOp<"all_gather",
    (ins Oriel_Tensor:$input, StrArrayAttr:$axes, Oriel_IntAttr:$dim),
    [DeclareOpInterfaceMethods<CollectiveOpInterface, ["getJoinedDimension"]>]> {
  let summary = "The pieces of a group's ranks joined along a dimension";
  let description = [{
    Piece `i` is the operand of the group's `i`-th rank; dimension `dim` of the result is as
    many times the operand's as the group has ranks. Not pure, as `oriel.all_reduce`.

    Example: `%1 = oriel.all_gather %0 {axes = ["a0", "a1"], dim = 1 : i64} :
    (tensor<2x3xf32>) -> tensor<2x12xf32>` on four ranks. Made by `partition`; removed by
    `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
}

def ReduceScatterOp : Oriel_DistributedOp<"reduce_scatter",
    (ins Oriel_Tensor:$input, StrArrayAttr:$axes, Oriel_IntAttr:$dim, StrAttr:$reduction),
    [DeclareOpInterfaceMethods<CollectiveOpInterface,
                               ["getReductionName", "getSplitDimension"]>]> {
  let summary = "This rank's piece of the operand reduced over a group";
  let description = [{
    Bit by bit `oriel.slice_local` of `oriel.all_reduce`, over the same axes: the group's
    `i`-th rank gets piece `i` along `dim`. Not pure, as `oriel.all_reduce`.

    Example: `%1 = oriel.reduce_scatter %0 {axes = ["a0"], dim = 0 : i64, reduction = "sum"}
    : (tensor<8x4xf32>) -> tensor<4x4xf32>` on two ranks. Made by `partition`; removed by
    `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
}

def AllToAllOp : Oriel_DistributedOp<"all_to_all",
    (ins Oriel_Tensor:$input, StrArrayAttr:$axes, Oriel_IntAttr:$split_dim,
         Oriel_IntAttr:$concat_dim),
    [DeclareOpInterfaceMethods<CollectiveOpInterface,
                               ["getSplitDimension", "getJoinedDimension"]>]> {
  let summary = "A value cut along one dimension becomes cut along another";
  let description = [{
    Each rank cuts its operand into one piece per rank along `split_dim`, and joins what it
    gets along `concat_dim`: the group's `i`-th rank has piece `i` of every operand, in the
    order of the ranks. So a value that the group holds in pieces along `concat_dim` is held
    in pieces along `split_dim` thereafter. Not pure, as `oriel.all_reduce`.

    Example: `%1 = oriel.all_to_all %0 {axes = ["a0"], split_dim = 1 : i64, concat_dim = 0 :
    i64} : (tensor<2x8xf32>) -> tensor<4x4xf32>` on two ranks. Made by `partition`; removed
    by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
}

def WaitOp : Oriel_DistributedOp<"wait", (ins Variadic<Oriel_Tensor>:$inputs)> {
  let summary = "The results of a collective that was started";
  let description = [{
    A collective with the attribute `oriel.stream` is started where it stands, on that stream, and
    the rank goes on. The operands are all results of one such collective, or all of several with
    the same `oriel.bucket`, which travel as one; nothing else uses those. Result `i` is operand
    `i` once it is there. Not pure, as `oriel.all_reduce`.

    Example: `%1 = oriel.all_reduce %0 {axes = ["a0"], oriel.stream = 1 : i64, reduction = "sum"}
    : (tensor<8xf32>) -> tensor<8xf32>`, `%2 = oriel.wait %1 : (tensor<8xf32>) ->
    tensor<8xf32>`. Made by `overlap`; removed by `lower`.
  }];
  let results = (outs Variadic<Oriel_Tensor>:$results);
}

def SliceLocalOp : Oriel_DistributedOp<"slice_local",
    (ins Oriel_Tensor:$input, StrArrayAttr:$axes, Oriel_IntAttr:$dim)> {
  let summary = "This rank's piece of a value that a group's ranks all hold";
  let description = [{
    The operand is cut along `dim` into one piece per rank of the group; the `i`-th rank
    takes piece `i`. No communication. Not pure, for the result differs between ranks.

    Example: `%1 = oriel.slice_local %0 {axes = ["a0"], dim = 0 : i64} : (tensor<8x4xf32>) ->
    tensor<4x4xf32>` on two ranks. Made by `partition`; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
}

def SendOp : Oriel_DistributedOp<"send",
    (ins Oriel_Tensor:$input, StrAttr:$channel, StrAttr:$peer)> {
  let summary = "Sends a value to the ranks of another program";
  let description = [{
    `peer` is the symbol of the program that has the `oriel.receive` of the same channel; a
    channel has one of each. The ranks go on while the value is on its way. Before `partition`
    operand and received value are the same whole tensor; afterwards each is a rank's piece,
    by the sharding on its own program's grid. Not pure, as `oriel.all_reduce`.

    Example: `oriel.send %0 {channel = "forward.0.p1", peer = "p1"} : (tensor<8x4xf32>) -> ()`.
    Made by `stage`; removed by `lower`.
  }];
}

def ReceiveOp : Oriel_DistributedOp<"receive", (ins StrAttr:$channel, StrAttr:$peer)> {
  let summary = "Waits for a value of another program";
  let description = [{
    `peer` is the symbol of the program that has the `oriel.send` of the same channel. Not
    pure, as `oriel.all_reduce`.

    Example: `%0 = oriel.receive {channel = "forward.0.p1", peer = "p0"} : () ->
    tensor<8x4xf32>`. Made by `stage`; removed by `lower`.
  }];
  let results = (outs Oriel_Tensor:$result);
}

#endif
