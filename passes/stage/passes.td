// Passes that cut a training program into pipeline stages.
#ifndef ORIEL_PASSES_STAGE_PASSES_TD
#define ORIEL_PASSES_STAGE_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/strategize/strategy_option.td"

def AssignStages : Pass<"oriel-assign-stages", "::mlir::ModuleOp"> {
  let summary = "Says which pipeline stage each op of the forward is in";
  let description = [{
    Finds the blocks of the model by what repeats: sequences of ops that are equal in kind
    and types, one behind the other, with a weight in each (towers.h). Names of parameters and the
    modules of the strategy only label them. Blocks, and what is between them, are the parts
    that stages are made of (parts.h). The strategy lists the blocks of each stage, or says how
    many stages there are; then the cuts are those with which the schedule takes the least time
    that is found (schedule_cuts.h), by the predicted time (part_times.h) of each part's ops in
    `@forward` and of those in `@backward` that come from them, joined as they are launched, and
    with what the strategy's `remat` has run again: a frozen part has none there. These are times on
    one device, unless `oriel.part_times` of the module has those on a rank (by part, of the forward
    and of the backward's halves), which it loses.

    Each op of `@forward` but its return gets `oriel.stage`, never smaller than that of an
    op whose result it reads; what does not depend on inputs and parameters both, such as masks
    and constants, is in the stage of its first reader. The module gets a label for each
    stage, `oriel.stages`. With one stage there is neither.

    The module gets `oriel.blocks` too: by the `origin` of a forward op, the number of the block
    that it is in, -1 for what is between blocks, and for what depends on inputs alone or on
    parameters alone. So later phases know the blocks of what they make of these ops (blocks.h).

    ```mlir
    %0 = oriel.linear %x, %w0
    %1 = oriel.linear %0, %w1
    // stages: 2 →
    module attributes {oriel.stages = ["layers.0", "layers.1"]} {
    %0 = oriel.linear %x, %w0 {oriel.stage = 0 : i64}
    %1 = oriel.linear %0, %w1 {oriel.stage = 1 : i64}
    ```
  }];
  let options = [
    StrategyOption,
    Option<"microbatches", "microbatches", "int64_t", "1", "Microbatches of a step">,
    Option<"explain", "explain", "bool", "false",
           "Print to standard error the blocks, what each part costs, and the stages">,
    Option<"fused", "fused", "bool", "false", "Decide by the launches that oriel-form-fused makes">,
    Option<"generated", "generated", "bool", "false",
           "Decide by the launches that oriel-form-generated makes">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

def SplitStages : Pass<"oriel-split-stages", "::mlir::ModuleOp"> {
  let summary = "Makes a program per group of ranks, with a segment per stage and pass";
  let description = [{
    Each op of `@forward` is in the stage that `oriel.stage` says, a backward op in its forward
    op's, and the sum of a value's cotangents in the stage that makes the value. Stage `s` goes
    to the nested module `@p` of its grid, `s` modulo the number of grids: `@forward.s`,
    `@backward.s` and `@eval.s`, and one `@update` each. With the schedule ZB-H1 a backward
    comes in halves: `@backward_weight.s` has the ops with `oriel.weight_gradient`,
    `@backward_input.s` the others, and is all there is where these are none.

    What another program needs is sent to it once, by `oriel.send` and `oriel.receive`, and
    handed on as stash to its later segments. Values that take few bytes of work from inputs
    and constants alone (masks, positions) are computed again instead. A parameter that several
    programs use is stepped by the first of those that have a gradient of it, its home, which
    gets the others' gradients and sends them the new value; the others' copies bear
    `oriel.copy`. The update's sums over parameters (the gradient norm) are taken by program,
    and the programs' sums travel to the last one. Each program gets its schedule.

    Where the strategy lays stages side by side, the module gets `oriel.placement`, by which the
    places of ranks on the cluster follow.

    A module of one stage is left as it is.

    ```mlir
    func.func @forward(%x: .. {input "x"}, %w0: .. {parameter "w0"}, %w1: .. {parameter "w1"}) {
      %0 = oriel.linear %x, %w0 {oriel.stage = 0 : i64, origin = 0 : i64}
      %1 = oriel.linear %0, %w1 {oriel.stage = 1 : i64, origin = 1 : i64}
    // →
    module @p0 {
      func.func @forward.0(%x, %w0) {
        %0 = oriel.linear %x, %w0
        oriel.send %0 {channel = "forward.0.p1", peer = "p1"}
    module @p1 {
      func.func @forward.1(%w1) {
        %0 = oriel.receive {channel = "forward.0.p1", peer = "p0"}
        %1 = oriel.linear %0, %w1
    ```
  }];
  let options = [
    StrategyOption,
    Option<"microbatches", "microbatches", "int64_t", "1", "Microbatches of a step">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
