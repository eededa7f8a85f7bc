// What the parts of a model take on the ranks of a strategy, for cuts between them.
#ifndef ORIEL_DRIVER_PART_TIMES_H_
#define ORIEL_DRIVER_PART_TIMES_H_

#include <vector>

#include "driver/pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/stage/parts.h"

namespace oriel::driver {

// Of a module behind `train`: its parts with the predicted times of a microbatch on a rank, as if
// the ranks of one grid had all of the model: of its pieces of tensors, of what `remat` has run
// again (nothing with `auto`), and with the collectives that activations wait for. Where that can't
// be compiled, on one device, divided by the ranks.
std::vector<Part> partsOnRank(mlir::ModuleOp module, const PipelineOptions& options);

// Gives a module behind `train` `oriel.part_times` where cuts are to be found, for
// oriel-assign-stages.
void timePartsForCuts(mlir::ModuleOp module, const PipelineOptions& options);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PART_TIMES_H_
