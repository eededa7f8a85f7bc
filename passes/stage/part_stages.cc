#include "passes/stage/part_stages.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/stage/balance.h"
#include "passes/stage/schedule_cuts.h"

namespace oriel {

namespace {

std::vector<int64_t> foundCuts(const ModelParts& model, const Pipeline& pipeline, int64_t grids,
                               int64_t microbatches) {
  if (pipeline.balance == Pipeline::Balance::kParameters) {
    std::vector<double> costs;
    for (const Part& part : model.parts) costs.push_back(static_cast<double>(part.parameters));
    return balancedCuts(costs, pipeline.stages, grids);
  }
  std::vector<StageTimes> times;
  for (const Part& part : model.parts) {
    times.push_back({part.forward, part.backwardInput + part.backwardWeight, part.backwardInput,
                     part.backwardWeight});
  }
  return cutsForSchedule(times, {pipeline.schedule, pipeline.stages, grids, microbatches});
}

std::vector<int64_t> foundStages(const ModelParts& model, const Pipeline& pipeline, int64_t grids,
                                 int64_t microbatches) {
  std::vector<int64_t> stages(model.parts.size(), 0);
  if (pipeline.stages == 1) return stages;
  const std::vector<int64_t> firsts = foundCuts(model, pipeline, grids, microbatches);
  for (size_t stage = 1; stage < firsts.size(); ++stage) {
    std::fill(stages.begin() + firsts[stage], stages.end(), static_cast<int64_t>(stage));
  }
  return stages;
}

absl::Status emptyStage(int64_t stage, const char* place) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the strategy's stages[", stage, "] is empty: the model has no parameters ", place));
}

absl::StatusOr<std::vector<int64_t>> namedStages(const ModelParts& model,
                                                 const Pipeline& pipeline) {
  absl::StatusOr<std::vector<int64_t>> ofBlocks = model.names.stagesOf(pipeline.named);
  if (!ofBlocks.ok()) {
    return absl::InvalidArgumentError(absl::StrCat("the strategy's ", ofBlocks.status().message()));
  }
  std::vector<int64_t> stages(model.parts.size());
  const int64_t last = static_cast<int64_t>(pipeline.named.size()) - 1;
  int64_t stage = last;
  for (size_t i = model.parts.size(); i-- > 0;) {
    if (model.parts[i].block >= 0) stage = (*ofBlocks)[model.parts[i].block];
    stages[i] = stage;
  }
  const auto isBlock = [](const Part& part) { return part.block >= 0; };
  if (model.names.isOnly(pipeline.named.front(), kBegin)) {
    const auto first = llvm::find_if(model.parts, isBlock) - model.parts.begin();
    std::fill(stages.begin(), stages.begin() + first, 0);
    if (first == 0) return emptyStage(0, "in front of the first block");
  }
  if (model.names.isOnly(pipeline.named.back(), kEnd) && isBlock(model.parts.back())) {
    return emptyStage(last, "behind the last block");
  }
  return stages;
}

}  // namespace

std::string towersText(const ModelParts& model) {
  return model.names.count() > 0 ? model.names.list() : "no blocks";
}

std::string stageLabel(const ModelParts& model, const std::vector<int64_t>& stageOf,
                       int64_t stage) {
  std::vector<int64_t> blocks;
  std::string between;
  for (auto [part, own] : llvm::zip_equal(model.parts, stageOf)) {
    if (own != stage) continue;
    if (part.block >= 0) blocks.push_back(part.block);
    if (part.block < 0 && between.empty()) between = part.name;
  }
  return blocks.empty() ? between : model.names.describe(blocks);
}

absl::StatusOr<std::vector<int64_t>> stagesOfParts(const ModelParts& model,
                                                   const Strategy& strategy, int64_t microbatches) {
  const auto parts = static_cast<int64_t>(model.parts.size());
  if (strategy.stageCount() > std::max<int64_t>(parts, 1)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the strategy has ", strategy.stageCount(), " stages, but the model has only ", parts,
        " parts to cut between (", towersText(model),
        " and what is between them), so a stage would be without parameters: use at most ", parts,
        " stages"));
  }
  const Pipeline pipeline = strategy.pipeline.value_or(Pipeline());
  return pipeline.named.empty() ? foundStages(model, pipeline, strategy.grids(), microbatches)
                                : namedStages(model, pipeline);
}

}  // namespace oriel
