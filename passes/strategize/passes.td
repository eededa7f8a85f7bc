// Passes that write a strategy onto the IR.
#ifndef ORIEL_PASSES_STRATEGIZE_PASSES_TD
#define ORIEL_PASSES_STRATEGIZE_PASSES_TD

include "mlir/Pass/PassBase.td"
include "passes/strategize/strategy_option.td"

def Annotate : Pass<"oriel-annotate", "::mlir::ModuleOp"> {
  let summary = "Writes a strategy onto the module: grid, schedule, shardings of parameters";
  let description = [{
    Makes the device grid of the strategy's meshes, and finds what tensor parallelism can
    split: reductions whose pieces can be computed from pieces of parameters (see
    tensor_blocks.h), which gives column- and row-wise linear layers, attention by heads
    and, with fewer KV heads than ranks, KV heads on groups of ranks, and embedding and
    output layer by vocabulary. Each parameter gets its `module`, its `use` sharding, and
    those in which value (`storage`), `gradient` and optimizer `state` are kept: as the
    use, or cut further over the data-parallel ranks as ZeRO says. With sequence
    parallelism, the module lists the types of the values between these parts whose
    positions divide (`oriel.sequence_types`), and warns of the others. Where a mesh has the axis
    cp, ops of forward and eval say which dimension of their results are positions
    (`oriel.positions`, see positions.h), and cp is made of atomic axes of which others can cut the
    heads of attention.

    ```mlir
    oriel.parameter @p0 {onnx_name = "up.weight", type = tensor<8x32xf32>}
    oriel.parameter @p1 {onnx_name = "down.weight", type = tensor<32x8xf32>}
    // mesh: {tp: 2} →
    oriel.parameter @p0 {.., use = #oriel.sharding<[{}, {a0} ]>, ..}
    oriel.parameter @p1 {.., use = #oriel.sharding<[{a0}, {} ]>, ..}
    ```
  }];
  let options = [
    StrategyOption,
    Option<"microbatches", "microbatches", "int64_t", "1",
           "Microbatches of a rank in a step">,
    Option<"explain", "explain", "bool", "false",
           "Print to standard error which reductions are not split, and why">,
  ];
  let dependentDialects = ["::oriel::ir::OrielDialect"];
}

#endif
