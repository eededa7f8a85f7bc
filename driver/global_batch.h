// How the batch goes with the ranks. The graph that is compiled sees a microbatch of all
// data-parallel ranks at once; a recipe has the sizes of one rank.
#ifndef ORIEL_DRIVER_GLOBAL_BATCH_H_
#define ORIEL_DRIVER_GLOBAL_BATCH_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/model_inputs.h"
#include "passes/strategy/strategy.h"
#include "passes/train/recipe.h"

namespace oriel::driver {

// InvalidArgument if the batch can't be split as the strategy says: the global batch into
// microbatches of all ranks, and such a microbatch over the ranks of each grid and module.
absl::Status checkBatch(const Recipe& recipe, const Strategy& strategy);

// The recipe with `bind` and the shapes of `inputs` for a microbatch of all data-parallel ranks.
// batch.micro stays, but where the strategy says how many microbatches a step has: then it is
// batch.global / (microbatches x data-parallel ranks). What is made for so many samples:
// - a symbolic dimension that is the first of an input and bound to the recipe's batch.micro;
// - where the recipe declares images, one that is the first dimension only, and bound to a multiple
//   of batch.micro x images.per_sample: images, or their rows, of all samples;
// - the first dimension of an input of the recipe, if it is batch.micro.
// InvalidArgument, with the input's name, for an input whose first dimension is fixed in the model
// file to another size than that; and as checkBatch() for microbatches.
absl::StatusOr<Recipe> withGlobalBatch(Recipe recipe, const std::vector<ModelInput>& inputs,
                                       const Strategy& strategy);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_GLOBAL_BATCH_H_
