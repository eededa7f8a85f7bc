// Passes that give every value a sharding.
#ifndef ORIEL_PASSES_PROPAGATE_PASSES_TD
#define ORIEL_PASSES_PROPAGATE_PASSES_TD

include "mlir/Pass/PassBase.td"

def Propagate : Pass<"oriel-propagate", "::mlir::ModuleOp"> {
  let summary = "Gives every value of the segments a sharding";
  let description = [{
    Starts from what `strategize` says of parameters and from the batch, which is split over
    the data axes, and goes through `@forward`, `@backward`, `@update` and `@eval` in order.
    For each op it compares the ways to split it that its operands suggest, by the bytes
    that a rank would have to send to bring the operands there and to complete the results,
    and takes the cheapest; to send a parameter elsewhere than to its `use` counts a
    thousand times. What has positions is cut by them over cp (`oriel.positions`); for an op that
    needs all positions, ways to exchange them for another dimension are compared too, and its
    results are cut by positions again. Sums that an op is linear in stay pending through it where
    that is no dearer. Nothing is moved yet: `partition` does that.

    Each op gets `oriel.split` (the axes that cut each factor of its sharding rule, then the
    axes over which pending sums pass through a linear group of operands) and
    `oriel.shardings` (of its results); arguments and results of segments get
    `oriel.sharding`. An op that splits only in steps is replaced by these steps where an
    operand asks for it.

    ```mlir
    module attributes {oriel.grid = {a0 = 2 : i64}, oriel.mesh = {dp = ["a0"]}} {
      func.func @forward(%x: tensor<4x8xf32> {input "x"}, %w: tensor<8x2xf32> {parameter "w"}) {
        %0 = oriel.linear %x, %w
    // →
      func.func @forward(%x: tensor<4x8xf32> {oriel.sharding = #oriel.sharding<[{a0}, {} ]>}, ..) {
        %0 = oriel.linear %x, %w {oriel.split = [["a0"], [], []],
                                  oriel.shardings = [#oriel.sharding<[{a0}, {} ]>]}
    ```
  }];
  let options = [
    Option<"explain", "explain", "bool", "false",
           "Print to standard error what is moved, where, why, and what it costs">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
