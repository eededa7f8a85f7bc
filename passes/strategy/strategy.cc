#include "passes/strategy/strategy.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "passes/config/glob.h"
#include "passes/config/quantity.h"
#include "passes/config/suggest.h"
#include "passes/strategy/cuts.h"

namespace oriel {

namespace {

bool matchesAny(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matchesGlob(pattern, name); });
}

template <typename Rule>
const Rule* firstMatch(const std::vector<Rule>& rules, const std::string& parameter) {
  auto it = std::find_if(rules.begin(), rules.end(),
                         [&](const Rule& rule) { return matchesAny(rule.parameters, parameter); });
  return it == rules.end() ? nullptr : &*it;
}

struct NamedMesh {
  std::string key;
  Mesh mesh;
};

// Each mesh of a grid once.
std::vector<NamedMesh> gridMeshes(const Strategy& strategy) {
  std::vector<NamedMesh> meshes;
  bool hasCommon = false;
  for (int64_t grid = 0; grid < strategy.grids(); ++grid) {
    if (&strategy.meshOfGrid(grid) != &strategy.mesh) {
      meshes.push_back({absl::StrCat("stages[", grid, "].mesh"), strategy.meshOfGrid(grid)});
    } else if (!std::exchange(hasCommon, true)) {
      meshes.push_back({"mesh", strategy.mesh});
    }
  }
  return meshes;
}

std::vector<NamedMesh> moduleMeshes(const Strategy& strategy) {
  std::vector<NamedMesh> meshes;
  for (const Strategy::Module& module : strategy.modules) {
    if (!module.mesh) continue;
    meshes.push_back({absl::StrCat("modules.", module.name, ".mesh"), *module.mesh});
  }
  return meshes;
}

std::optional<std::string> problemOfStorage(const Strategy& strategy, const Mesh& mesh) {
  if (mesh.fsdp > 1 && strategy.hsdp) {
    return "has an fsdp axis, and hsdp would make another: leave out one of the two";
  }
  if (mesh.fsdp > 1 && strategy.zero == 0) {
    return absl::StrCat("has fsdp: ", mesh.fsdp, ", but zero is 0, so that nothing would be ",
                        "sharded over it: set zero to 1, 2 or 3, or call the axis dp");
  }
  if (strategy.hsdp && mesh.dp % *strategy.hsdp != 0) {
    return absl::StrCat("has dp: ", mesh.dp, ", which is no multiple of hsdp (", *strategy.hsdp,
                        "), the size of the groups it is split into");
  }
  return std::nullopt;
}

// Meshes on the same ranks must have a common refinement.
std::optional<std::string> problemOfSharing(const Strategy& strategy, const NamedMesh& a,
                                            const NamedMesh& b) {
  std::vector<int64_t> cuts = strategy.resolved(a.mesh).cuts();
  for (int64_t cut : strategy.resolved(b.mesh).cuts()) cuts.push_back(cut);
  std::optional<CutClash> clash = nestCuts(&cuts);
  if (!clash) return std::nullopt;
  return absl::StrCat("can't share the ranks with '", a.key, "': one has groups of ",
                      a.mesh.ranks() / clash->second, " ranks, the other of ",
                      a.mesh.ranks() / clash->first,
                      ", and neither size divides the other; choose sizes that do");
}

// Of its own ranks.
std::optional<std::string> problemOfMesh(const Strategy& strategy, const Mesh& mesh) {
  if (mesh.ranks() > kMaxRanks) return absl::StrCat("has more than ", kMaxRanks, " ranks");
  return problemOfStorage(strategy, mesh);
}

// Where there is one grid, all modules are on it; else a module must fit one of them, and which one
// it is on is seen when the model is.
std::optional<StrategyProblem> problemOfModules(const Strategy& strategy) {
  const std::vector<NamedMesh> grids = gridMeshes(strategy), modules = moduleMeshes(strategy);
  for (const NamedMesh& module : modules) {
    if (std::optional<std::string> problem = problemOfMesh(strategy, module.mesh)) {
      return StrategyProblem{module.key, *problem};
    }
    std::optional<std::string> problem;
    for (const NamedMesh& grid : grids) {
      problem.reset();
      if (module.mesh.ranks() != grid.mesh.ranks()) {
        problem = absl::StrCat("has ", module.mesh.ranks(), " ranks, but '", grid.key, "' has ",
                               grid.mesh.ranks(), ": all modules are on the same ranks");
        if (grids.size() > 1) {
          problem = absl::StrCat("has ", module.mesh.ranks(), " ranks, as many as no grid has");
        }
      } else {
        problem = problemOfSharing(strategy, grid, module);
      }
      if (!problem) break;
    }
    if (problem) return StrategyProblem{module.key, *problem};
    for (const NamedMesh& other : modules) {
      if (&other == &module || strategy.grids() > 1) break;
      if ((problem = problemOfSharing(strategy, other, module))) {
        return StrategyProblem{module.key, *problem};
      }
    }
  }
  return std::nullopt;
}

std::optional<StrategyProblem> problemOfPipeline(const Strategy& strategy) {
  const Pipeline& pipeline = *strategy.pipeline;
  const bool isInterleaved = pipeline.schedule == ScheduleKind::kInterleaved;
  if (pipeline.interleave > 1 && !isInterleaved) {
    return StrategyProblem{"interleave",
                           absl::StrCat("of ", pipeline.interleave, " needs the schedule ",
                                        scheduleName(ScheduleKind::kInterleaved), ", not ",
                                        scheduleName(pipeline.schedule))};
  }
  if (isInterleaved && pipeline.interleave == 1) {
    return StrategyProblem{"interleave",
                           "is the number of stages on each grid, and the interleaved schedule "
                           "needs at least 2"};
  }
  if (pipeline.stages % pipeline.interleave != 0) {
    return StrategyProblem{
        "stages", absl::StrCat("makes ", pipeline.stages, ", which is no multiple of interleave (",
                               pipeline.interleave, "), the number of stages on each grid")};
  }
  if (pipeline.interleave > 1 && strategy.grids() == 1) {
    return StrategyProblem{
        "stages",
        absl::StrCat("makes ", pipeline.stages, ", all of them on one grid: with interleave ",
                     pipeline.interleave, " there must be at least ", 2 * pipeline.interleave)};
  }
  for (size_t i = 0; i < pipeline.named.size(); ++i) {
    if (pipeline.interleave == 1 || !pipeline.named[i].mesh) continue;
    return StrategyProblem{absl::StrCat("stages[", i, "].mesh"),
                           "can't be with interleave, where a grid has several stages: use 'mesh'"};
  }
  return std::nullopt;
}

// Grids take turns, so they are alike.
std::optional<StrategyProblem> problemOfPlacement(const Strategy& strategy) {
  if (!strategy.pipeline || strategy.pipeline->placement == Placement::kPpOutermost) {
    return std::nullopt;
  }
  const std::string dpOutermost = placementName(Placement::kDpOutermost);
  if (strategy.grids() == 1) {
    return StrategyProblem{
        "placement", absl::StrCat(dpOutermost, " lays the stages of a pipeline side by side, and ",
                                  "there is one stage: say how many, or leave it out")};
  }
  const std::vector<NamedMesh> grids = gridMeshes(strategy);
  const NamedMesh& first = grids.front();
  auto textOf = [](const NamedMesh& grid) {
    std::string text = absl::StrCat(grid.mesh.ranks(), " and tp: ", grid.mesh.tp);
    if (grid.mesh.cp > 1) absl::StrAppend(&text, ", cp: ", grid.mesh.cp);
    return text;
  };
  for (const NamedMesh& grid : grids) {
    if (grid.mesh.ranks() == first.mesh.ranks() && grid.mesh.tp == first.mesh.tp &&
        grid.mesh.cp == first.mesh.cp) {
      continue;
    }
    return StrategyProblem{
        "placement",
        absl::StrCat(dpOutermost, " needs stages of as many ranks and the same tp and cp, but '",
                     first.key, "' has ", textOf(first), ", '", grid.key, "' ", textOf(grid))};
  }
  return std::nullopt;
}

// `places` names each rule in messages.
template <typename Rule>
absl::Status checkRules(const std::vector<Rule>& rules, const std::vector<std::string>& places,
                        const std::vector<std::string>& parameters) {
  for (size_t i = 0; i < rules.size(); ++i) {
    for (const std::string& pattern : rules[i].parameters) {
      auto matches = [&](const std::string& name) { return matchesGlob(pattern, name); };
      if (std::any_of(parameters.begin(), parameters.end(), matches)) continue;
      return absl::InvalidArgumentError(absl::StrCat("the pattern '", pattern, "' in ", places[i],
                                                     " of the strategy matches no parameter",
                                                     suggestion(pattern, parameters)));
    }
  }
  for (const std::string& name : parameters) {
    std::optional<size_t> first;
    for (size_t i = 0; i < rules.size(); ++i) {
      if (!matchesAny(rules[i].parameters, name)) continue;
      if (first) {
        return absl::InvalidArgumentError(
            absl::StrCat("the parameter '", name, "' matches patterns in both ", places[*first],
                         " and ", places[i], " of the strategy: narrow one of them"));
      }
      first = i;
    }
  }
  return absl::OkStatus();
}

// The product, or the largest number.
int64_t bounded(int64_t a, int64_t b) {
  int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? std::numeric_limits<int64_t>::max() : product;
}

}  // namespace

int64_t Mesh::ranks() const { return bounded(bounded(dp, fsdp), bounded(cp, tp)); }

std::vector<int64_t> Mesh::cuts() const {
  std::vector<int64_t> cuts;
  int64_t outer = 1;
  for (const NamedMeshAxis& axis : kMeshAxes) cuts.push_back(outer *= this->*axis.size);
  return cuts;
}

void Pipeline::setSchedule(std::optional<ScheduleKind> kind, std::optional<int64_t> stagesOnGrid) {
  const bool isInterleaved =
      kind ? *kind == ScheduleKind::kInterleaved : stagesOnGrid.value_or(1) > 1;
  schedule = kind.value_or(isInterleaved ? ScheduleKind::kInterleaved : ScheduleKind::kOneFOneB);
  interleave = stagesOnGrid.value_or(isInterleaved ? 2 : 1);
}

std::optional<int64_t> stageCountOf(const std::string& text) {
  int64_t count = 0;
  if (!absl::SimpleAtoi(absl::StripPrefix(text, "auto "), &count)) return std::nullopt;
  if (count < 1 || count > kMaxRanks) return std::nullopt;
  return count;
}

Mesh Strategy::resolved(const Mesh& mesh) const {
  if (!hsdp) return mesh;
  Mesh resolved = mesh;
  resolved.dp /= *hsdp;
  resolved.fsdp = *hsdp;
  return resolved;
}

const Mesh& Strategy::meshOfGrid(int64_t grid) const {
  if (!pipeline || pipeline->named.empty() || pipeline->interleave > 1) return mesh;
  const std::optional<Mesh>& own = pipeline->named[grid].mesh;
  return own ? *own : mesh;
}

int64_t Strategy::ranks() const {
  int64_t ranks = 0;
  for (int64_t grid = 0; grid < grids(); ++grid) ranks += meshOfGrid(grid).ranks();
  return ranks;
}

RankPlaces Strategy::places() const {
  if (!pipeline || pipeline->placement == Placement::kPpOutermost) return RankPlaces();
  const Mesh& mesh = meshOfGrid(0);
  return RankPlaces{grids(), mesh.ranks(), mesh.ofSample()};
}

int64_t Strategy::dataParallel() const {
  int64_t common = meshOfGrid(0).dataParallel();
  for (int64_t grid = 1; grid < grids(); ++grid) {
    common = std::min(common, meshOfGrid(grid).dataParallel());
  }
  for (const Module& module : modules) {
    if (module.mesh) common = std::min(common, module.mesh->dataParallel());
  }
  return common;
}

int64_t Strategy::commonTensorParallel(const Module* module) const {
  if (module && module->mesh) return module->mesh->tp;
  return commonOfGrids(&Mesh::tp);
}

int64_t Strategy::commonOfGrids(int64_t Mesh::*axis) const {
  int64_t common = 1;
  for (int64_t grid = 0; grid < grids(); ++grid) {
    const int64_t size = meshOfGrid(grid).*axis;
    common = bounded(common, size / std::gcd(common, size));
  }
  return common;
}

int64_t Overlap::bucketBytes(int64_t total) const {
  // So large that latencies don't count, but not so large that what can't be hidden (the bucket
  // that is filled last, or that is needed first) is much of it all.
  constexpr int64_t kLargest = int64_t{25} << 20;
  constexpr int64_t kParts = 8;
  return bucket.value_or(std::min(kLargest, (total + kParts - 1) / kParts));
}

int64_t Overlap::prefetchBytes(int64_t total) const {
  return prefetch.value_or(2 * bucketBytes(total));
}

bool operator==(const Mesh& a, const Mesh& b) {
  return std::tie(a.dp, a.fsdp, a.tp, a.cp) == std::tie(b.dp, b.fsdp, b.tp, b.cp);
}

bool operator==(const Pipeline::Stage& a, const Pipeline::Stage& b) {
  return std::tie(a.blocks, a.mesh) == std::tie(b.blocks, b.mesh);
}

bool operator==(const Pipeline& a, const Pipeline& b) {
  return std::tie(a.stages, a.named, a.schedule, a.interleave, a.microbatches, a.balance,
                  a.placement) == std::tie(b.stages, b.named, b.schedule, b.interleave,
                                           b.microbatches, b.balance, b.placement);
}

bool operator==(const Overlap& a, const Overlap& b) {
  return std::tie(a.bucket, a.prefetch) == std::tie(b.bucket, b.prefetch);
}

bool operator==(const Strategy::Module& a, const Strategy::Module& b) {
  return std::tie(a.name, a.parameters, a.mesh) == std::tie(b.name, b.parameters, b.mesh);
}

bool operator==(const Strategy::Sharding& a, const Strategy::Sharding& b) {
  return std::tie(a.parameters, a.tp) == std::tie(b.parameters, b.tp);
}

bool operator==(const Strategy& a, const Strategy& b) {
  return std::tie(a.mesh, a.zero, a.hsdp, a.sequenceParallel, a.padding, a.memory, a.modules,
                  a.shardings, a.pipeline, a.remat, a.overlap) ==
         std::tie(b.mesh, b.zero, b.hsdp, b.sequenceParallel, b.padding, b.memory, b.modules,
                  b.shardings, b.pipeline, b.remat, b.overlap);
}

std::optional<StrategyProblem> findProblem(const Strategy& strategy, MemoryFrom memory) {
  if (strategy.hsdp && strategy.zero == 0) {
    return StrategyProblem{
        "hsdp", "needs something that is sharded within its groups: set zero to 1, 2 or 3"};
  }
  if (strategy.remat == RematPolicy::kAuto && !strategy.memory && memory != MemoryFrom::kCluster) {
    return StrategyProblem{
        "remat", "auto keeps what fits: give memory, the bytes that a rank has, or a cluster"};
  }
  if (strategy.pipeline) {
    if (std::optional<StrategyProblem> problem = problemOfPipeline(strategy)) return problem;
  }
  bool hasTensorParallel = false;
  for (const NamedMesh& named : gridMeshes(strategy)) {
    if (std::optional<std::string> problem = problemOfMesh(strategy, named.mesh)) {
      return StrategyProblem{named.key, *problem};
    }
    hasTensorParallel |= named.mesh.tp > 1;
  }
  if (strategy.ranks() > kMaxRanks) {
    return StrategyProblem{"stages", absl::StrCat("has together more than ", kMaxRanks, " ranks")};
  }
  for (const NamedMeshAxis& axis : kMeshAxes) {
    // What all stages share, as a vocabulary, is padded for all of them.
    const bool isShared = axis.size == &Mesh::tp || axis.size == &Mesh::cp;
    if (isShared && strategy.commonOfGrids(axis.size) > kMaxRanks) {
      return StrategyProblem{
          "stages", absl::StrCat("has sizes of ", axis.name, " without a common multiple up to ",
                                 kMaxRanks, ": choose sizes that divide each other")};
    }
  }
  if (std::optional<StrategyProblem> problem = problemOfPlacement(strategy)) return problem;
  if (std::optional<StrategyProblem> problem = problemOfModules(strategy)) return problem;
  for (const NamedMesh& named : moduleMeshes(strategy)) hasTensorParallel |= named.mesh.tp > 1;
  if (strategy.sequenceParallel && !hasTensorParallel) {
    return StrategyProblem{"sequence_parallel",
                           "splits the sequence over the tp ranks, but no mesh has tp above 1"};
  }
  if (strategy.padding && !hasTensorParallel) {
    return StrategyProblem{"padding", "is for tp ranks, but no mesh has tp above 1"};
  }
  return std::nullopt;
}

const Strategy::Module* moduleOf(const Strategy& strategy, const std::string& parameter) {
  return firstMatch(strategy.modules, parameter);
}

const Strategy::Sharding* shardingOf(const Strategy& strategy, const std::string& parameter) {
  return firstMatch(strategy.shardings, parameter);
}

absl::Status checkPatterns(const Strategy& strategy, const std::vector<std::string>& parameters) {
  std::vector<std::string> modules, shardings;
  for (const Strategy::Module& module : strategy.modules) {
    modules.push_back(absl::StrCat("'modules.", module.name, "'"));
  }
  for (size_t i = 0; i < strategy.shardings.size(); ++i) {
    shardings.push_back(absl::StrCat("'shardings[", i, "]'"));
  }
  absl::Status status = checkRules(strategy.modules, modules, parameters);
  return status.ok() ? checkRules(strategy.shardings, shardings, parameters) : status;
}

}  // namespace oriel
