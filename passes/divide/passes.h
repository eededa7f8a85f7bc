// Passes that make a model's layers divide over the ranks of a strategy, before `train`; see
// passes.td. Each is for a strategy that was read already.
#ifndef ORIEL_PASSES_DIVIDE_PASSES_H_
#define ORIEL_PASSES_DIVIDE_PASSES_H_

#include <memory>
#include <string>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/strategy/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/divide/passes.h.inc"

// `output` is the model's of which the loss is.
std::unique_ptr<mlir::Pass> createCutProducts(Strategy strategy, std::string output);

std::unique_ptr<mlir::Pass> createCutConvolutions(Strategy strategy);

// `output` is the model's that a cross entropy takes as logits.
std::unique_ptr<mlir::Pass> createPadBlocks(Strategy strategy, std::string output);
std::unique_ptr<mlir::Pass> createPadVocabulary(Strategy strategy, std::string output);

std::unique_ptr<mlir::Pass> createAddBiasesLast(Strategy strategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_DIVIDE_PASSES_H_
