// Translates a lowered module to the plan, op by op. Two things the module does not say: how to
// train comes from the recipe, and the split of each input over `dp` from the grid.
#ifndef ORIEL_PASSES_EMIT_EMIT_H_
#define ORIEL_PASSES_EMIT_EMIT_H_

#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "passes/train/recipe.h"
#include "runtime/plan/plan.pb.h"

namespace oriel {

struct EmitOptions {
  plan::Provenance provenance;
  std::string modelName;
  // The safetensors file with the initial values, relative to the plan's folder.
  std::string weightsFile;
  plan::Device device = {};  // none: the host
};

// The plan of a module after `lower`. Fails with a diagnostic if the module is not lowered, or
// holds something that the plan has no field for, or launches a kernel that the device lacks.
mlir::FailureOr<plan::Plan> emitPlan(mlir::ModuleOp module, const Recipe& recipe,
                                     const EmitOptions& options);

}  // namespace oriel

#endif  // ORIEL_PASSES_EMIT_EMIT_H_
