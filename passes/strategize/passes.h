// Passes of the strategize phase; see passes.td.
#ifndef ORIEL_PASSES_STRATEGIZE_PASSES_H_
#define ORIEL_PASSES_STRATEGIZE_PASSES_H_

#include <memory>

#include "ir/oriel/oriel.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "passes/strategize/strategy.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "passes/strategize/passes.h.inc"

// oriel-annotate with a strategy that was read already.
std::unique_ptr<mlir::Pass> createAnnotate(Strategy strategy, int64_t microbatches, bool explain);

// oriel-cut-products likewise; `output` is the model's of which the loss is.
std::unique_ptr<mlir::Pass> createCutProducts(Strategy strategy, std::string output);

// oriel-cut-convolutions likewise.
std::unique_ptr<mlir::Pass> createCutConvolutions(Strategy strategy);

// oriel-pad-vocabulary likewise; `output` is the model's that a cross entropy takes as logits.
std::unique_ptr<mlir::Pass> createPadVocabulary(Strategy strategy, std::string output);

// oriel-add-biases-last likewise.
std::unique_ptr<mlir::Pass> createAddBiasesLast(Strategy strategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_PASSES_H_
