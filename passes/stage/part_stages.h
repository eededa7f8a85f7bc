// Which stage each part of a model is in.
#ifndef ORIEL_PASSES_STAGE_PART_STAGES_H_
#define ORIEL_PASSES_STAGE_PART_STAGES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "passes/stage/parts.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// "'model.vision.layers' (4 blocks), 'model.layers' (32 blocks)", or "no blocks"
std::string towersText(const ModelParts& model);

// "vision + llm.0-3", or what is there between blocks. `stageOf`: by part.
std::string stageLabel(const ModelParts& model, const std::vector<int64_t>& stageOf, int64_t stage);

// The stage of each part: as the strategy names them, where what is between blocks joins the later
// one (kBegin and kEnd may have a stage of their own), or cut so that a step of so many
// microbatches takes the least time (schedule_cuts.h), or grids have as many parameters
// (balance.h). InvalidArgument, "the strategy ..", if there are more stages than parts, and as
// BlockNames::stagesOf().
absl::StatusOr<std::vector<int64_t>> stagesOfParts(const ModelParts& model,
                                                   const Strategy& strategy, int64_t microbatches);

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_PART_STAGES_H_
