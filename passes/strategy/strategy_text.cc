#include "passes/strategy/strategy_text.h"

#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace oriel {

namespace {

std::string meshText(const Mesh& mesh) {
  std::vector<std::string> axes;
  for (const NamedMeshAxis& axis : kMeshAxes) {
    const int64_t size = mesh.*axis.size;
    if (size > 1 || axis.size == &Mesh::dp) axes.push_back(absl::StrCat(axis.name, ": ", size));
  }
  return absl::StrCat("{", absl::StrJoin(axes, ", "), "}");
}

std::string quoted(const std::string& text) {
  return absl::StrCat("\"", absl::CEscape(text), "\"");
}

// One alone without brackets.
std::string listText(const std::vector<std::string>& words) {
  std::vector<std::string> items;
  for (const std::string& word : words) items.push_back(quoted(word));
  const std::string joined = absl::StrJoin(items, ", ");
  return words.size() == 1 ? joined : absl::StrCat("[", joined, "]");
}

// `4`, or a list of what is in each.
std::string stagesText(const Pipeline& pipeline) {
  if (pipeline.named.empty()) return absl::StrCat(pipeline.stages);
  std::vector<std::string> items;
  for (const Pipeline::Stage& stage : pipeline.named) {
    const std::string blocks = listText(stage.blocks);
    items.push_back(stage.mesh
                        ? absl::StrCat("{blocks: ", blocks, ", mesh: ", meshText(*stage.mesh), "}")
                        : blocks);
  }
  return absl::StrCat("[", absl::StrJoin(items, ", "), "]");
}

std::string overlapText(const std::optional<Overlap>& given) {
  if (!given) return "false";
  const Overlap& overlap = *given;
  if (overlap == Overlap()) return "true";
  std::vector<std::string> sizes;
  if (overlap.bucket) sizes.push_back(absl::StrCat("bucket: ", *overlap.bucket));
  if (overlap.prefetch) sizes.push_back(absl::StrCat("prefetch: ", *overlap.prefetch));
  return absl::StrCat("{", absl::StrJoin(sizes, ", "), "}");
}

void appendPipeline(const Pipeline& pipeline, std::string* text) {
  absl::StrAppend(text, "stages: ", stagesText(pipeline), "\n");
  absl::StrAppend(text, "schedule: ", scheduleName(pipeline.schedule), "\n");
  if (pipeline.interleave > 1) absl::StrAppend(text, "interleave: ", pipeline.interleave, "\n");
  if (pipeline.microbatches) {
    absl::StrAppend(text, "microbatches: ", *pipeline.microbatches, "\n");
  }
  if (pipeline.balance == Pipeline::Balance::kParameters) {
    absl::StrAppend(text, "balance: parameters\n");
  }
  if (pipeline.placement != Placement::kPpOutermost) {
    absl::StrAppend(text, "placement: ", placementName(pipeline.placement), "\n");
  }
}

bool haveAllMeshes(const Strategy& strategy) {
  if (!strategy.pipeline || strategy.pipeline->named.empty()) return false;
  for (const Pipeline::Stage& stage : strategy.pipeline->named) {
    if (!stage.mesh) return false;
  }
  return true;
}

}  // namespace

std::string strategyText(const Strategy& strategy) {
  std::string text;
  if (!haveAllMeshes(strategy)) absl::StrAppend(&text, "mesh: ", meshText(strategy.mesh), "\n");
  if (strategy.zero > 0) absl::StrAppend(&text, "zero: ", strategy.zero, "\n");
  if (strategy.hsdp) absl::StrAppend(&text, "hsdp: ", *strategy.hsdp, "\n");
  if (strategy.sequenceParallel) absl::StrAppend(&text, "sequence_parallel: true\n");
  if (strategy.padding) absl::StrAppend(&text, "padding: true\n");
  if (strategy.memory) absl::StrAppend(&text, "memory: ", *strategy.memory, "\n");
  if (strategy.remat) absl::StrAppend(&text, "remat: ", rematName(*strategy.remat), "\n");
  if (!(strategy.overlap == Strategy().overlap)) {
    absl::StrAppend(&text, "overlap: ", overlapText(strategy.overlap), "\n");
  }
  if (!strategy.modules.empty()) absl::StrAppend(&text, "modules:\n");
  for (const Strategy::Module& module : strategy.modules) {
    absl::StrAppend(&text, "  ", quoted(module.name),
                    ": {parameters: ", listText(module.parameters),
                    module.mesh ? absl::StrCat(", mesh: ", meshText(*module.mesh)) : "", "}\n");
  }
  if (!strategy.shardings.empty()) absl::StrAppend(&text, "shardings:\n");
  for (const Strategy::Sharding& sharding : strategy.shardings) {
    absl::StrAppend(&text, "  - {parameters: ", listText(sharding.parameters),
                    ", tp: ", sharding.tp ? absl::StrCat(*sharding.tp) : "none", "}\n");
  }
  if (strategy.pipeline) appendPipeline(*strategy.pipeline, &text);
  return text;
}

}  // namespace oriel
