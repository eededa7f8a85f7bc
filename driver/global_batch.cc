#include "driver/global_batch.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// Names of dimensions: first ones, and others.
struct Symbols {
  std::set<std::string> first, later;
};

Symbols symbolsOf(const std::vector<ModelInput>& inputs) {
  Symbols symbols;
  for (const ModelInput& input : inputs) {
    for (size_t i = 0; i < input.shape.size(); ++i) {
      const std::vector<std::string>& names = input.shape[i].names;
      (i == 0 ? symbols.first : symbols.later).insert(names.begin(), names.end());
    }
  }
  return symbols;
}

// Whether `size` counts images, or rows of images, of `samples` samples.
bool countsImages(const Recipe& recipe, int64_t size, int64_t samples) {
  return size % samples == 0 &&
         std::any_of(recipe.images.begin(), recipe.images.end(), [&](const Recipe::Images& images) {
           return size / samples % images.perSample == 0;
         });
}

// A module may have more data-parallel ranks than all modules have in common.
absl::Status checkShare(const Recipe& recipe, int64_t micro, int64_t samples, const Mesh& mesh,
                        const std::string& owner) {
  const int64_t ranks = mesh.dataParallel();
  const int64_t common = samples / micro;
  if (ranks % common != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(owner, " has ", ranks, " data-parallel ranks, which is no multiple of the ",
                     common, " that all modules and stages have: change the mesh"));
  }
  const auto divides = [&](int64_t perSample) {
    return samples % ranks * (perSample % ranks) % ranks == 0;
  };
  if (divides(1)) return absl::OkStatus();
  // A module of images may share out those of a sample.
  for (const Recipe::Images& images : recipe.images) {
    if (divides(images.perSample)) return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      owner, " has ", ranks, " data-parallel ranks, but a microbatch has ", samples,
      " samples (batch.micro of ", micro, " on the ", common,
      " that all modules and stages have), which can't be divided by that: change batch.micro in ",
      "the recipe, the number of microbatches, or the mesh"));
}

// `hasMicrobatches`: batch.micro is as the strategy says.
absl::Status checkFixedBatch(const Recipe& recipe, const ModelInput& input, int64_t dataParallel,
                             bool hasMicrobatches) {
  if (input.shape.empty() || input.shape[0].size <= 0) return absl::OkStatus();
  const int64_t size = input.shape[0].size;
  const int64_t samples = recipe.microBatch * dataParallel;
  if (size == samples || countsImages(recipe, size, samples)) return absl::OkStatus();
  std::string remedy = "export the model with a dynamic batch";
  if (hasMicrobatches && recipe.globalBatch % size == 0) {
    absl::StrAppend(&remedy, ", or choose ", recipe.globalBatch / size, " microbatches");
  } else if (size % dataParallel == 0 && !hasMicrobatches) {
    absl::StrAppend(&remedy, ", or set batch.micro to ", size / dataParallel, " in the recipe");
  } else {
    absl::StrAppend(&remedy, ", or choose a number of data-parallel ranks that divides ", size);
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the input '", input.name, "' has a first dimension of ", size,
      " that is fixed in the model file, but a microbatch has ", recipe.microBatch, " samples on ",
      dataParallel, " data-parallel ranks, together ", samples, ": ", remedy));
}

// What is of batch.micro samples, to be of `samples`; batch.micro itself stays.
void resize(Recipe* recipe, const std::vector<ModelInput>& inputs, int64_t samples) {
  const Symbols symbols = symbolsOf(inputs);
  const int64_t micro = recipe->microBatch;
  for (auto& [name, size] : recipe->bind) {
    const bool isImages = symbols.later.count(name) == 0 && countsImages(*recipe, size, micro) &&
                          size / micro <= std::numeric_limits<int64_t>::max() / samples;
    if (symbols.first.count(name) != 0 && (size == micro || isImages)) {
      size = size / micro * samples;
    }
  }
  for (Recipe::Input& input : recipe->inputs) {
    if (!input.shape.empty() && input.shape[0] == micro) input.shape[0] = samples;
  }
}

// Of one rank, in a microbatch.
absl::StatusOr<int64_t> microBatchOf(const Recipe& recipe, const Strategy& strategy) {
  if (!strategy.pipeline || !strategy.pipeline->microbatches) return recipe.microBatch;
  const int64_t microbatches = *strategy.pipeline->microbatches;
  const int64_t dataParallel = strategy.dataParallel();
  if (recipe.globalBatch / dataParallel % microbatches == 0 &&
      recipe.globalBatch % dataParallel == 0) {
    return recipe.globalBatch / dataParallel / microbatches;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("the global batch of ", recipe.globalBatch, " samples is not divided by ",
                   microbatches, " microbatches x ", dataParallel,
                   " data-parallel ranks: change batch.global in the recipe, the number of "
                   "microbatches, or the mesh"));
}

}  // namespace

absl::Status checkBatch(const Recipe& recipe, const Strategy& strategy) {
  const int64_t dataParallel = strategy.dataParallel();
  ORIEL_ASSIGN_OR_RETURN(const int64_t micro, microBatchOf(recipe, strategy));
  const int64_t samples = micro * dataParallel;
  if (recipe.isOneMicrobatch() && recipe.globalBatch != samples) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the loss is the sum of the output '", recipe.loss.output, "', which may mix the samples ",
        "of a batch, so a step is one microbatch: batch.global must be batch.micro times the "
        "data-parallel ranks, but is ",
        recipe.globalBatch, ", not ", micro, " x ", dataParallel,
        " (or set loss.over: microbatch)"));
  }
  if (recipe.globalBatch % samples != 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the global batch of ", recipe.globalBatch, " samples is not divided by ", samples,
        " (micro batch ", micro, " on ", dataParallel,
        " data-parallel ranks): change batch.global or batch.micro in the recipe, or the number "
        "of ranks"));
  }
  for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
    const Mesh& mesh = strategy.meshOfGrid(grid);
    const std::string owner =
        &mesh == &strategy.mesh ? "the mesh" : absl::StrCat("the mesh of stage ", grid);
    ORIEL_RETURN_IF_ERROR(checkShare(recipe, micro, samples, mesh, owner));
  }
  for (const Strategy::Module& module : strategy.modules) {
    if (!module.mesh) continue;
    const std::string owner = absl::StrCat("the mesh of module '", module.name, "'");
    ORIEL_RETURN_IF_ERROR(checkShare(recipe, micro, samples, *module.mesh, owner));
  }
  return absl::OkStatus();
}

absl::StatusOr<Recipe> withGlobalBatch(Recipe recipe, const std::vector<ModelInput>& inputs,
                                       const Strategy& strategy) {
  const int64_t dataParallel = strategy.dataParallel();
  ORIEL_ASSIGN_OR_RETURN(const int64_t micro, microBatchOf(recipe, strategy));
  if (dataParallel == 1 && micro == recipe.microBatch) return recipe;
  resize(&recipe, inputs, micro * dataParallel);
  const bool isOther = micro != recipe.microBatch;
  recipe.microBatch = micro;
  for (const ModelInput& input : inputs) {
    ORIEL_RETURN_IF_ERROR(checkFixedBatch(recipe, input, dataParallel, isOther));
  }
  return recipe;
}

}  // namespace oriel::driver
