#include "driver/strategy_diff.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace oriel::driver {

namespace {

struct Setting {
  std::string key;
  Unit unit;
  Value value;
};
using Settings = std::vector<Setting>;

Value valueOf(const std::optional<int64_t>& number) { return number ? Value(*number) : Value(); }

void addMesh(const std::string& key, const Mesh& mesh, Settings* settings) {
  for (const NamedMeshAxis& axis : kMeshAxes) {
    settings->push_back({absl::StrCat(key, ".", axis.name), Unit::kNone, mesh.*axis.size});
  }
}

void addPipeline(const Strategy& strategy, Settings* settings) {
  const Pipeline pipeline = strategy.pipeline.value_or(Pipeline());
  settings->push_back({"stages", Unit::kNone, pipeline.stages});
  for (size_t i = 0; i < pipeline.named.size(); ++i) {
    const std::string key = absl::StrCat("stages[", i, "]");
    settings->push_back(
        {absl::StrCat(key, ".blocks"), Unit::kNone, absl::StrJoin(pipeline.named[i].blocks, ", ")});
    if (pipeline.named[i].mesh) addMesh(key + ".mesh", *pipeline.named[i].mesh, settings);
  }
  settings->push_back({"schedule", Unit::kNone, scheduleName(pipeline.schedule)});
  settings->push_back({"interleave", Unit::kNone, pipeline.interleave});
  settings->push_back({"microbatches", Unit::kNone, valueOf(pipeline.microbatches)});
  const bool byTime = pipeline.balance == Pipeline::Balance::kTime;
  settings->push_back({"balance", Unit::kNone, std::string(byTime ? "time" : "parameters")});
  settings->push_back({"placement", Unit::kNone, placementName(pipeline.placement)});
}

void addModules(const Strategy& strategy, Settings* settings) {
  for (const Strategy::Module& module : strategy.modules) {
    std::vector<std::string> patterns = module.parameters;
    std::sort(patterns.begin(), patterns.end());
    const std::string key = absl::StrCat("modules.", module.name);
    settings->push_back({key + ".parameters", Unit::kNone, absl::StrJoin(patterns, ", ")});
    if (module.mesh) addMesh(key + ".mesh", *module.mesh, settings);
  }
  // No pattern is in two rules.
  for (const Strategy::Sharding& rule : strategy.shardings) {
    for (const std::string& pattern : rule.parameters) {
      settings->push_back({absl::StrCat("shardings[\"", pattern, "\"].tp"), Unit::kNone,
                           rule.tp ? Value(*rule.tp) : Value(std::string("none"))});
    }
  }
}

// Whether the mesh of the strategy is that of a grid.
bool usesCommonMesh(const Strategy& strategy) {
  for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
    if (&strategy.meshOfGrid(grid) == &strategy.mesh) return true;
  }
  return false;
}

// In the order of docs/strategy.md.
Settings settingsOf(const Strategy& strategy) {
  Settings settings;
  if (usesCommonMesh(strategy)) addMesh("mesh", strategy.mesh, &settings);
  settings.push_back({"zero", Unit::kNone, int64_t{strategy.zero}});
  settings.push_back({"hsdp", Unit::kNone, valueOf(strategy.hsdp)});
  settings.push_back({"sequence_parallel", Unit::kNone, strategy.sequenceParallel});
  settings.push_back({"padding", Unit::kNone, strategy.padding});
  settings.push_back({"memory", Unit::kBytes, valueOf(strategy.memory)});
  addModules(strategy, &settings);
  addPipeline(strategy, &settings);
  settings.push_back({"remat", Unit::kNone, rematName(strategy.rematPolicy())});
  settings.push_back({"overlap", Unit::kNone, strategy.overlap.has_value()});
  const Overlap overlap = strategy.overlap.value_or(Overlap());
  settings.push_back({"overlap.bucket", Unit::kBytes, valueOf(overlap.bucket)});
  settings.push_back({"overlap.prefetch", Unit::kBytes, valueOf(overlap.prefetch)});
  return settings;
}

std::map<std::string, Settings::const_iterator> byKey(const Settings& settings) {
  std::map<std::string, Settings::const_iterator> result;
  for (auto it = settings.begin(); it != settings.end(); ++it) result.emplace(it->key, it);
  return result;
}

}  // namespace

Comparison compareStrategies(const Strategy& a, const std::string& nameA, const Strategy& b,
                             const std::string& nameB) {
  ComparedSection section = {"strategy", std::nullopt, "- where nothing is fixed"};
  const Settings ofA = settingsOf(a), ofB = settingsOf(b);
  const auto inA = byKey(ofA), inB = byKey(ofB);
  // A's keys, each behind those that B has alone before it.
  auto next = ofB.begin();
  const auto addAlone = [&](Settings::const_iterator end) {
    for (; next < end; ++next) {
      if (inA.count(next->key) > 0) continue;
      section.values.push_back({next->key, next->key, next->unit, Value(), next->value});
    }
  };
  for (const Setting& setting : ofA) {
    const auto other = inB.find(setting.key);
    const bool isInBoth = other != inB.end();
    if (isInBoth) addAlone(other->second);
    section.values.push_back({setting.key, setting.key, setting.unit, setting.value,
                              isInBoth ? other->second->value : Value()});
  }
  addAlone(ofB.end());
  ComparedSection ranks = {"ranks"};
  ranks.add("ranks", Unit::kCount, a.ranks(), b.ranks());
  ranks.add("grids", Unit::kCount, a.grids(), b.grids());
  ranks.add("data_parallel", Unit::kCount, a.dataParallel(), b.dataParallel());
  return {"strategies", nameA, nameB, {}, {std::move(section), std::move(ranks)}};
}

}  // namespace oriel::driver
