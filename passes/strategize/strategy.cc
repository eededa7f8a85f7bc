#include "passes/strategize/strategy.h"

#include <algorithm>
#include <tuple>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/strategize/cuts.h"
#include "passes/train/recipe.h"
#include "passes/train/suggest.h"

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

std::vector<NamedMesh> meshesOf(const Strategy& strategy) {
  std::vector<NamedMesh> meshes = {{"mesh", strategy.mesh}};
  for (const Strategy::Module& module : strategy.modules) {
    meshes.push_back({absl::StrCat("modules.", module.name, ".mesh"), module.mesh});
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

// Outermost first.
std::vector<int64_t> cutsOf(const Mesh& mesh) {
  return {mesh.dp, mesh.dp * mesh.fsdp, mesh.ranks()};
}

// Meshes on the same ranks must have a common refinement.
std::optional<std::string> problemOfSharing(const Strategy& strategy, const NamedMesh& a,
                                            const NamedMesh& b) {
  std::vector<int64_t> cuts = cutsOf(strategy.resolved(a.mesh));
  for (int64_t cut : cutsOf(strategy.resolved(b.mesh))) cuts.push_back(cut);
  std::optional<CutClash> clash = nestCuts(&cuts);
  if (!clash) return std::nullopt;
  return absl::StrCat("can't share the ranks with '", a.key, "': one has groups of ",
                      strategy.ranks() / clash->second, " ranks, the other of ",
                      strategy.ranks() / clash->first,
                      ", and neither size divides the other; choose sizes that do");
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

}  // namespace

Mesh Strategy::resolved(const Mesh& mesh) const {
  if (!hsdp) return mesh;
  return Mesh{mesh.dp / *hsdp, *hsdp, mesh.tp};
}

int64_t Strategy::dataParallel() const {
  int64_t common = mesh.dataParallel();
  for (const Module& module : modules) common = std::min(common, module.mesh.dataParallel());
  return common;
}

bool Strategy::isPlainDataParallel() const {
  return mesh.dp == mesh.ranks() && zero == 0 && !hsdp && !sequenceParallel && modules.empty() &&
         shardings.empty();
}

bool operator==(const Mesh& a, const Mesh& b) {
  return std::tie(a.dp, a.fsdp, a.tp) == std::tie(b.dp, b.fsdp, b.tp);
}

bool operator==(const Strategy::Module& a, const Strategy::Module& b) {
  return std::tie(a.name, a.parameters, a.mesh) == std::tie(b.name, b.parameters, b.mesh);
}

bool operator==(const Strategy::Sharding& a, const Strategy::Sharding& b) {
  return std::tie(a.parameters, a.tp) == std::tie(b.parameters, b.tp);
}

bool operator==(const Strategy& a, const Strategy& b) {
  return std::tie(a.mesh, a.zero, a.hsdp, a.sequenceParallel, a.modules, a.shardings) ==
         std::tie(b.mesh, b.zero, b.hsdp, b.sequenceParallel, b.modules, b.shardings);
}

std::optional<StrategyProblem> findProblem(const Strategy& strategy) {
  if (strategy.hsdp && strategy.zero == 0) {
    return StrategyProblem{
        "hsdp", "needs something that is sharded within its groups: set zero to 1, 2 or 3"};
  }
  const std::vector<NamedMesh> meshes = meshesOf(strategy);
  bool hasTensorParallel = false;
  for (const NamedMesh& named : meshes) {
    if (named.mesh.ranks() > kMaxRanks) {
      return StrategyProblem{named.key, absl::StrCat("has more than ", kMaxRanks, " ranks")};
    }
    if (named.mesh.ranks() != strategy.ranks()) {
      return StrategyProblem{named.key,
                             absl::StrCat("has ", named.mesh.ranks(), " ranks, but 'mesh' has ",
                                          strategy.ranks(), ": all modules are on the same ranks")};
    }
    if (std::optional<std::string> problem = problemOfStorage(strategy, named.mesh)) {
      return StrategyProblem{named.key, *problem};
    }
    for (const NamedMesh& other : meshes) {
      if (&other == &named) break;
      if (std::optional<std::string> problem = problemOfSharing(strategy, other, named)) {
        return StrategyProblem{named.key, *problem};
      }
    }
    hasTensorParallel |= named.mesh.tp > 1;
  }
  if (strategy.sequenceParallel && !hasTensorParallel) {
    return StrategyProblem{"sequence_parallel",
                           "splits the sequence over the tp ranks, but no mesh has tp above 1"};
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
