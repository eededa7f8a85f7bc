// Activation checkpointing by a policy that needs no budget.
#ifndef ORIEL_PASSES_REMAT_BLOCK_POLICY_H_
#define ORIEL_PASSES_REMAT_BLOCK_POLICY_H_

#include "mlir/IR/BuiltinOps.h"
#include "passes/stage/blocks.h"
#include "passes/strategy/remat_policy.h"

namespace oriel {

// What oriel-remat does to each block of a program, which may be one behind `train` too. The policy
// is not `auto`. Fails with a diagnostic for bad roles.
mlir::LogicalResult recomputeBlocks(mlir::ModuleOp program, const Blocks& blocks,
                                    RematPolicy policy);

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_BLOCK_POLICY_H_
