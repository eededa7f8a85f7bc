#include "driver/plan_diff.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/plan_text.h"
#include "driver/schedule_chart.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"
#include "runtime/plan/plan_stats.h"
#include "runtime/plan/plan_types.h"

namespace oriel::driver {

namespace {

using runtime::ProgramStats;

// What a plan needs of some of its ranks: of each number that of the rank with most of it, but for
// `memory`, which is one rank's.
struct Needs {
  const ProgramStats* memory = nullptr;  // whose arena is the largest
  std::map<std::string, int64_t> sent;   // bytes per step, by mesh axes
  int64_t sentInAll = 0;
  int64_t launches = 0, collectives = 0, instructions = 0;  // per step
  double busy = 0;                                          // predicted ms per step
};

// A plan, and what is known of it.
struct Side {
  const plan::Plan& plan;
  runtime::PlanStats stats;
  PlanTimeline timeline;

  int64_t grids() const { return plan.grids_size(); }
};

absl::StatusOr<Side> sideOf(const plan::Plan& plan, const std::string& name) {
  absl::StatusOr<PlanTimeline> timeline = timelineOf(plan);
  if (!timeline.ok()) return runtime::Annotate(timeline.status(), name);
  return Side{plan, runtime::ComputePlanStats(plan), *std::move(timeline)};
}

int64_t launchesOf(const plan::Program& program, const ProgramStats& stats) {
  int64_t launches = 0;
  for (int i = 0; i < program.segments_size(); ++i) {
    const auto& instructions = program.segments(i).instructions();
    launches += stats.segments[i].runs_per_step *
                std::count_if(instructions.begin(), instructions.end(),
                              [](const auto& each) { return each.has_launch(); });
  }
  return launches;
}

void addNeeds(const Side& side, size_t index, Needs& needs) {
  const ProgramStats& program = side.stats.programs[index];
  if (needs.memory == nullptr || needs.memory->arena_bytes < program.arena_bytes) {
    needs.memory = &program;
  }
  std::map<std::string, int64_t> sent;
  for (const runtime::AxisVolume& each : program.volume) sent[each.axes] += each.sent_bytes;
  for (const auto& [axes, bytes] : sent) needs.sent[axes] = std::max(needs.sent[axes], bytes);
  int64_t collectives = 0;
  for (const runtime::SegmentStats& segment : program.segments) {
    collectives += segment.runs_per_step * segment.collectives;
  }
  const auto raise = [](auto& most, auto value) { most = std::max(most, value); };
  raise(needs.sentInAll, program.sent_bytes_per_step);
  raise(needs.launches, launchesOf(side.plan.programs(static_cast<int>(index)), program));
  raise(needs.collectives, collectives);
  raise(needs.instructions, program.instructions_per_step);
  raise(needs.busy, side.timeline.timeline.busy[index]);
}

// Of all ranks, or of those of a grid.
Needs needsOf(const Side& side, std::optional<int64_t> grid = std::nullopt) {
  Needs needs;
  for (size_t i = 0; i < side.stats.programs.size(); ++i) {
    if (!grid || side.stats.programs[i].grid == *grid) addNeeds(side, i, needs);
  }
  return needs;
}

// 1 of a plan without stages.
int64_t stageCount(const Side& side) {
  int64_t count = 1;
  for (const ProgramStats& program : side.stats.programs) {
    if (!program.stages.empty()) count = std::max(count, program.stages.back() + 1);
  }
  return count;
}

// "dp = 2, tp = 4, vision dp = 8"
std::string meshText(const plan::Grid& grid) {
  std::map<std::string, int64_t> sizes;
  for (const plan::AtomicAxis& axis : grid.axes()) sizes[axis.name()] = axis.size();
  std::vector<std::string> axes;
  for (const plan::MeshAxis& axis : grid.mesh()) {
    int64_t size = 1;
    for (const std::string& name : axis.axes()) size *= sizes[name];
    axes.push_back(
        absl::StrCat(axis.module(), axis.module().empty() ? "" : " ", axis.name(), " = ", size));
  }
  return axes.empty() ? "one rank" : absl::StrJoin(axes, ", ");
}

// "0 vision, 2 llm.0-15"; of the grid's first program.
std::string stagesText(const Side& side, int64_t grid) {
  for (const ProgramStats& program : side.stats.programs) {
    if (program.grid != grid) continue;
    std::vector<std::string> stages;
    for (size_t i = 0; i < program.stages.size(); ++i) {
      const bool named = i < program.stage_names.size() && !program.stage_names[i].empty();
      stages.push_back(
          absl::StrCat(program.stages[i], named ? " " : "", named ? program.stage_names[i] : ""));
    }
    return absl::StrJoin(stages, ", ");
  }
  return "";
}

ComparedSection modelSection(const Side& a, const Side& b) {
  const plan::Provenance& fromA = a.plan.provenance();
  const plan::Provenance& fromB = b.plan.provenance();
  ComparedSection section = {"model"};
  section.add("name", Unit::kNone, a.plan.model_name(), b.plan.model_name());
  section.add("sha256", Unit::kNone, fromA.model_sha256(), fromB.model_sha256());
  section.add("weights", Unit::kNone, fromA.weights_crc32(), fromB.weights_crc32());
  // The same file elsewhere is the same model.
  if (fromA.model_sha256() != fromB.model_sha256()) {
    section.add("path", Unit::kNone, fromA.model_path(), fromB.model_path());
  }
  section.add("parameters", Unit::kCount, a.stats.parameters, b.stats.parameters);
  section.add("trainable_parameters", Unit::kCount, a.stats.trainable_parameters,
              b.stats.trainable_parameters);
  return section;
}

ComparedSection compilerSection(const plan::Plan& a, const plan::Plan& b) {
  const auto flags = [](const plan::Plan& plan) {
    return absl::StrJoin(plan.provenance().flags(), " ");
  };
  ComparedSection section = {"compiler"};
  section.add("version", Unit::kNone, a.provenance().compiler_version(),
              b.provenance().compiler_version());
  section.add("flags", Unit::kNone, flags(a), flags(b));
  section.add("device", Unit::kNone, runtime::DeviceText(a.device()),
              runtime::DeviceText(b.device()));
  return section;
}

ComparedSection ranksSection(const Side& a, const Side& b) {
  ComparedSection section = {"ranks"};
  section.add("ranks", Unit::kCount, a.plan.world_size(), b.plan.world_size());
  section.add("grids", Unit::kCount, a.grids(), b.grids());
  section.add("stages", Unit::kCount, stageCount(a), stageCount(b));
  section.add("placement_block", Unit::kCount, a.plan.placement_block(), b.plan.placement_block());
  return section;
}

ComparedSection batchSection(const plan::Training& a, const plan::Training& b) {
  ComparedSection section = {"batch"};
  section.add("global_batch", Unit::kCount, a.global_batch(), b.global_batch());
  section.add("micro_batch", Unit::kCount, a.micro_batch(), b.micro_batch());
  section.add("microbatches", Unit::kCount, a.microbatches(), b.microbatches());
  section.add("data_parallel", Unit::kCount, a.data_parallel(), b.data_parallel());
  return section;
}

// Of a plan's predicted times.
Value known(const PlanTimeline& timeline, double value) {
  return timeline.predicted ? Value(value) : Value();
}

ComparedSection timeSection(const PlanTimeline& a, const PlanTimeline& b) {
  ComparedSection section = {"time", std::nullopt, "predicted, of a step without transfers"};
  if (!a.predicted && !b.predicted) return section;
  const auto add = [&](const char* key, Unit unit, auto value) {
    section.add(key, unit, known(a, value(a)), known(b, value(b)));
  };
  add("step", Unit::kMilliseconds, [](auto& of) { return of.timeline.makespan + of.update; });
  add("microbatches", Unit::kMilliseconds, [](auto& of) { return of.timeline.makespan; });
  add("update", Unit::kMilliseconds, [](auto& of) { return of.update; });
  add("bubble", Unit::kPercent, [](auto& of) { return 100 * of.timeline.bubble(); });
  return section;
}

// What a grid is made of. Of one alone, all but the mesh has been said.
ComparedSection gridSection(const Side& a, const Side& b, int64_t grid) {
  const plan::Grid& gridA = a.plan.grids(static_cast<int>(grid));
  const plan::Grid& gridB = b.plan.grids(static_cast<int>(grid));
  ComparedSection section = {"grid", grid};
  section.add("mesh", Unit::kNone, meshText(gridA), meshText(gridB));
  if (a.grids() == 1) return section;
  section.add("ranks", Unit::kCount, runtime::GridLayout(gridA).size(),
              runtime::GridLayout(gridB).size());
  section.add("stages", Unit::kNone, stagesText(a, grid), stagesText(b, grid));
  if (a.timeline.predicted || b.timeline.predicted) {
    section.add("busy_time", Unit::kMilliseconds, known(a.timeline, needsOf(a, grid).busy),
                known(b.timeline, needsOf(b, grid).busy));
  }
  return section;
}

ComparedSection memorySection(const Side& a, const Side& b, std::optional<int64_t> grid) {
  ComparedSection section = {"memory", grid,
                             grid ? "at its peak" : "at its peak, of the rank that needs most"};
  const ProgramStats* of[] = {needsOf(a, grid).memory, needsOf(b, grid).memory};
  if (of[0] == nullptr || of[1] == nullptr) return section;
  if (!grid && std::max(a.grids(), b.grids()) > 1) {
    section.add("grid", Unit::kNone, int64_t{of[0]->grid}, int64_t{of[1]->grid});
  }
  for (int i = 0; i < runtime::kMemoryParts; ++i) {
    const auto part = static_cast<runtime::MemoryPart>(i);
    const auto bytes = [&](const ProgramStats& program) {
      const auto found = program.memory.parts.find(part);
      return found == program.memory.parts.end() ? int64_t{0} : found->second;
    };
    section.add(runtime::MemoryPartName(part), Unit::kBytes, bytes(*of[0]), bytes(*of[1]));
  }
  section.add("peak", Unit::kBytes, of[0]->memory.peak_bytes, of[1]->memory.peak_bytes);
  section.add("arena", Unit::kBytes, of[0]->arena_bytes, of[1]->arena_bytes);
  return section;
}

ComparedSection volumeSection(const Side& a, const Side& b, std::optional<int64_t> grid) {
  ComparedSection section = {
      "volume", grid,
      grid ? "sent per step by a rank" : "sent per step by the rank that sends most, by mesh axis"};
  const Needs needsA = needsOf(a, grid), needsB = needsOf(b, grid);
  std::map<std::string, std::pair<int64_t, int64_t>> sent;
  for (const auto& [axes, bytes] : needsA.sent) sent[axes].first = bytes;
  for (const auto& [axes, bytes] : needsB.sent) sent[axes].second = bytes;
  for (const auto& [axes, bytes] : sent) {
    section.values.push_back({axes, axes, Unit::kBytes, bytes.first, bytes.second});
  }
  section.add("total", Unit::kBytes, needsA.sentInAll, needsB.sentInAll);
  return section;
}

ComparedSection transfersSection(const Side& a, const Side& b) {
  ComparedSection section = {"transfers", std::nullopt, "per step between grids, all together"};
  // A grid is another one where there are more of them.
  if (a.grids() == b.grids()) {
    std::map<std::string, std::pair<int64_t, int64_t>> bytes;
    const auto nameOf = [](const runtime::TransferVolume& each) {
      return absl::StrCat(each.source_grid, " to ", each.target_grid);
    };
    for (const auto& each : a.stats.transfers) bytes[nameOf(each)].first += each.bytes_per_step;
    for (const auto& each : b.stats.transfers) bytes[nameOf(each)].second += each.bytes_per_step;
    for (const auto& [name, value] : bytes) {
      section.values.push_back({name, name, Unit::kBytes, value.first, value.second});
    }
  }
  section.add("total", Unit::kBytes, a.stats.transferred_bytes_per_step,
              b.stats.transferred_bytes_per_step);
  return section;
}

ComparedSection launchesSection(const Side& a, const Side& b, std::optional<int64_t> grid) {
  ComparedSection section = {"launches", grid,
                             grid ? "per step" : "per step, of the rank that has most"};
  const Needs needsA = needsOf(a, grid), needsB = needsOf(b, grid);
  section.add("kernels", Unit::kCount, needsA.launches, needsB.launches);
  section.add("collectives", Unit::kCount, needsA.collectives, needsB.collectives);
  section.add("instructions", Unit::kCount, needsA.instructions, needsB.instructions);
  return section;
}

}  // namespace

absl::StatusOr<Comparison> comparePlans(const plan::Plan& planA, const std::string& nameA,
                                        const plan::Plan& planB, const std::string& nameB) {
  ORIEL_ASSIGN_OR_RETURN(const Side a, sideOf(planA, nameA));
  ORIEL_ASSIGN_OR_RETURN(const Side b, sideOf(planB, nameB));
  const plan::Provenance& fromA = planA.provenance();
  const plan::Provenance& fromB = planB.provenance();
  Comparison comparison = {"plans", nameA, nameB};
  comparison.texts = {{"strategy", compareLines(fromA.strategy(), fromB.strategy())},
                      {"recipe", compareLines(fromA.recipe(), fromB.recipe())}};
  comparison.sections = {modelSection(a, b),
                         compilerSection(planA, planB),
                         ranksSection(a, b),
                         batchSection(planA.training(), planB.training()),
                         timeSection(a.timeline, b.timeline),
                         memorySection(a, b, std::nullopt),
                         volumeSection(a, b, std::nullopt),
                         transfersSection(a, b),
                         launchesSection(a, b, std::nullopt)};
  for (int64_t grid = 0; grid < a.grids() && a.grids() == b.grids(); ++grid) {
    comparison.sections.push_back(gridSection(a, b, grid));
    if (a.grids() == 1) break;  // the rest has been said
    comparison.sections.push_back(memorySection(a, b, grid));
    comparison.sections.push_back(volumeSection(a, b, grid));
    comparison.sections.push_back(launchesSection(a, b, grid));
  }
  return comparison;
}

}  // namespace oriel::driver
