// What the parts of a model take.
#ifndef ORIEL_PASSES_STAGE_PART_TIMES_H_
#define ORIEL_PASSES_STAGE_PART_TIMES_H_

#include "mlir/IR/BuiltinOps.h"
#include "passes/lower/launches.h"
#include "passes/stage/parts.h"
#include "passes/strategy/remat_policy.h"

namespace oriel {

// Gives the parts of a module behind `train` the predicted times of their ops on one device, with
// what the policy has run again (nothing with `auto`: what fits is known behind the cuts), and
// joined as `forms` says: a launch counts for the part of the op that it runs in place of, which
// for a chain of pointwise ops is the last one. What crosses from one part to the next one is
// joined, too, whether they become stages or not. Fails with a diagnostic for bad roles.
mlir::LogicalResult timeParts(mlir::ModuleOp module, RematPolicy remat, const LaunchForms& forms,
                              ModelParts* model);

// The same of a program that the module became, on a rank: what its ops take on their pieces, and
// the collectives that activations or their gradients wait for. Ops keep the origins that they had
// in the module; `program` has the joined ones afterwards.
mlir::LogicalResult timeProgram(mlir::ModuleOp program, const LaunchForms& forms,
                                ModelParts* model);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_PART_TIMES_H_
