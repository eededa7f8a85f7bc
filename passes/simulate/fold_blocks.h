// A model with fewer of its equal blocks, so that what each of them costs is found once.
#ifndef ORIEL_PASSES_SIMULATE_FOLD_BLOCKS_H_
#define ORIEL_PASSES_SIMULATE_FOLD_BLOCKS_H_

#include <cstdint>
#include <set>
#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "passes/stage/parts.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"

namespace oriel {

// By block: a number that is the same for blocks of a tower that cost the same. Their ops have
// equal attributes, and recipe and strategy treat their parameters alike. Empty where nothing
// repeats.
std::vector<int> blockKinds(const ModelParts& model, const Recipe& recipe,
                            const Strategy& strategy);

// By block: elements of its parameters that are trained, or of all if none is. Empty likewise.
std::vector<double> blockParameters(const ModelParts& model, const Recipe& recipe);

// Takes blocks out of @main (before the train phase): what reads a block that goes reads the last
// one in front of it that stays, of its tower. Parameters that nobody reads then go too. The first
// block of each tower stays. Pointers in `model` to what is gone are dangling.
void dropBlocks(mlir::func::FuncOp main, const ModelParts& model, const std::set<int64_t>& dropped);

// The recipe for a module with a part of the parameters: every pattern is the list of names that it
// matches.
Recipe withNamesOf(mlir::ModuleOp module, Recipe recipe);
Strategy withNamesOf(mlir::ModuleOp module, Strategy strategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_SIMULATE_FOLD_BLOCKS_H_
