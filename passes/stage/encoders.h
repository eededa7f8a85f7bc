// What encodes images, or sounds, beside a language model.
#ifndef ORIEL_PASSES_STAGE_ENCODERS_H_
#define ORIEL_PASSES_STAGE_ENCODERS_H_

#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/stage/parts.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// The towers but for the one whose forward takes longest, as modules without meshes. Their
// parameters are patterns that also match what has names like those of the tower's blocks (its
// embedding, its last norm). A tower without parameters of its own is left out.
struct Encoders {
  std::vector<Strategy::Module> modules;
  double share = 0;  // of the predicted time of a forward
};

// Of a model's function before training.
Encoders encodersOf(mlir::func::FuncOp main, const ModelParts& model);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_ENCODERS_H_
