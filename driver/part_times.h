// What the parts of a model take on the ranks of a strategy, for cuts between them.
#ifndef ORIEL_DRIVER_PART_TIMES_H_
#define ORIEL_DRIVER_PART_TIMES_H_

#include "driver/pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/stage/parts.h"

namespace oriel::driver {

// Gives the parts of a module behind `train` the predicted times of a microbatch on a rank, as if
// the ranks of one grid had all of the model: of its pieces of tensors, of what `remat` has run
// again (nothing with `auto`), and with the collectives that activations wait for. Fails, silently,
// for what can't be compiled, which the compilation itself will say.
mlir::LogicalResult timePartsOnRank(mlir::ModuleOp module, const PipelineOptions& options,
                                    ModelParts* model);

// Gives a module behind `train` `oriel.part_times` where cuts are to be found by time, for
// oriel-assign-stages.
void timePartsForCuts(mlir::ModuleOp module, const PipelineOptions& options);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PART_TIMES_H_
