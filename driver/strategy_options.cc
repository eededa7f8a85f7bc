#include "driver/strategy_options.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/console.h"
#include "passes/config/quantity.h"
#include "passes/config/suggest.h"
#include "passes/strategy/strategy_reader.h"
#include "passes/strategy/strategy_text.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

absl::StatusOr<Mesh> parseMesh(const std::vector<std::string>& words) {
  Mesh mesh;
  std::vector<std::string> names;
  for (const NamedMeshAxis& axis : kMeshAxes) names.emplace_back(axis.name);
  std::set<std::string> seen;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto known = std::find(names.begin(), names.end(), name);
    if (equals != std::string::npos && name == "pp") {
      return usageError("--mesh: pp is no axis: pipeline stages are --stages");
    }
    if (equals != std::string::npos && name == "ep") {
      return usageError(
          "--mesh: ep is not supported yet; the axes of a mesh are dp, fsdp, cp and tp");
    }
    if (equals != std::string::npos && known == names.end()) {
      return usageError(
          absl::StrCat("--mesh: there is no axis '", name, "'", suggestion(name, names)));
    }
    int64_t size = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(word.substr(equals + 1), &size) ||
        size < 1 || size > kMaxRanks) {
      return usageError(absl::StrCat("--mesh: can't use '", word, "'; write AXIS=N, N from 1 to ",
                                     kMaxRanks, ", e.g. --mesh dp=2,tp=2"));
    }
    if (!seen.insert(name).second) {
      return usageError(absl::StrCat("--mesh: ", name, " is given twice"));
    }
    mesh.*kMeshAxes[known - names.begin()].size = size;
  }
  return mesh;
}

absl::StatusOr<std::optional<Overlap>> parseOverlap(const std::vector<std::string>& words) {
  if (words == std::vector<std::string>{"off"}) return std::nullopt;
  Overlap overlap;
  if (words == std::vector<std::string>{"on"}) return overlap;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::optional<int64_t>* size = name == "bucket"     ? &overlap.bucket
                                   : name == "prefetch" ? &overlap.prefetch
                                                        : nullptr;
    if (equals == std::string::npos) {
      return usageError(
          absl::StrCat("--overlap: can't use '", word,
                       "'; write on, off, or sizes, e.g. --overlap bucket=25MiB,prefetch=50MiB"));
    }
    if (size == nullptr) {
      return usageError(absl::StrCat("--overlap: there is no size '", name, "'",
                                     suggestion(name, {"bucket", "prefetch"})));
    }
    if (*size) return usageError(absl::StrCat("--overlap: ", name, " is given twice"));
    *size = bytesIn(word.substr(equals + 1));
    if (!*size) {
      return usageError(absl::StrCat("--overlap: can't use '", word, "'; write a size, e.g. ", name,
                                     "=25MiB; ", kByteUnits));
    }
  }
  return overlap;
}

// None of the options that a pipeline needs: none.
absl::StatusOr<std::optional<Pipeline>> parsePipeline(const StrategyOptions& options) {
  if (options.stages.empty()) {
    for (auto [option, isGiven] : {std::pair("--schedule", !options.schedule.empty()),
                                   {"--interleave", options.interleave.has_value()},
                                   {"--balance", !options.balance.empty()},
                                   {"--placement", !options.placement.empty()}}) {
      if (!isGiven) continue;
      return usageError(
          absl::StrCat(option, " is of several stages: say how many, e.g. --stages 2, or drop it"));
    }
    if (!options.microbatches) return std::nullopt;
  }
  Pipeline pipeline;
  if (options.stages.size() == 1) {
    const std::optional<int64_t> count = stageCountOf(options.stages.front());
    if (!count) {
      return usageError(absl::StrCat(
          "--stages: can't use '", options.stages.front(), "'; write a number from 1 to ",
          kMaxRanks, ", or what is in each stage, e.g. --stages vision,llm.0-15,llm.16-31"));
    }
    pipeline.stages = *count;
  } else if (!options.stages.empty()) {
    for (const std::string& word : options.stages) {
      if (word.empty() || word.find_first_of("\"\\") != std::string::npos) {
        return usageError(absl::StrCat("--stages: '", word, "' can't be the name of blocks"));
      }
      pipeline.named.push_back({{word}, std::nullopt});
    }
    pipeline.stages = static_cast<int64_t>(pipeline.named.size());
  }
  std::optional<ScheduleKind> schedule;
  if (!options.schedule.empty()) {
    absl::StatusOr<ScheduleKind> kind = parseSchedule(options.schedule);
    if (!kind.ok()) {
      return usageError(absl::StrCat("--schedule: ", kind.status().message()));
    }
    schedule = *kind;
  }
  for (auto [option, value, limit] :
       {std::tuple("--interleave", options.interleave, kMaxRanks),
        std::tuple("--microbatches", options.microbatches, kMaxMicrobatches)}) {
    if (!value || (*value >= 1 && *value <= limit)) continue;
    return usageError(absl::StrCat(option, " must be 1 to ", limit, ", not ", *value));
  }
  pipeline.setSchedule(schedule, options.interleave);
  pipeline.microbatches = options.microbatches;
  if (options.balance == "parameters") {
    pipeline.balance = Pipeline::Balance::kParameters;
  } else if (!options.balance.empty() && options.balance != "time") {
    return usageError(
        absl::StrCat("--balance must be time or parameters, not '", options.balance, "'"));
  }
  if (!options.placement.empty()) {
    absl::StatusOr<Placement> placement = parsePlacement(options.placement);
    if (!placement.ok()) {
      return usageError(absl::StrCat("--placement: ", placement.status().message()));
    }
    pipeline.placement = *placement;
  }
  if (!options.balance.empty() && !pipeline.named.empty()) {
    return usageError("--balance is for cuts that are found, and --stages says where they are");
  }
  return pipeline;
}

// The option that stands for a key of the file.
std::string optionOf(const std::string& key) {
  return key == "sequence_parallel" ? "--sp" : absl::StrCat("--", key);
}

absl::StatusOr<Strategy> fromShorthand(const StrategyOptions& options) {
  Strategy strategy;
  ORIEL_ASSIGN_OR_RETURN(strategy.pipeline, parsePipeline(options));
  if (options.mesh.empty()) {
    // Rounded up: that the ranks are not so many is said where they are counted.
    const int64_t grids = strategy.grids();
    strategy.mesh.dp = (options.world.value_or(grids) + grids - 1) / grids;
  } else {
    ORIEL_ASSIGN_OR_RETURN(strategy.mesh, parseMesh(options.mesh));
  }
  const int64_t zero = options.zero.value_or(0);
  if (zero < 0 || zero > 3) {
    return usageError(absl::StrCat("--zero must be 0 to 3, not ", zero));
  }
  strategy.zero = static_cast<int>(zero);
  if (options.hsdp && (*options.hsdp < 2 || *options.hsdp > kMaxRanks)) {
    return usageError(absl::StrCat("--hsdp must be 2 to ", kMaxRanks, ", not ", *options.hsdp));
  }
  strategy.hsdp = options.hsdp;
  strategy.sequenceParallel = options.sequenceParallel;
  strategy.padding = options.padding;
  if (!options.memory.empty()) {
    strategy.memory = bytesIn(options.memory);
    if (strategy.memory.value_or(0) == 0) {
      return usageError(absl::StrCat("--memory: can't use '", options.memory,
                                     "'; write the bytes that a rank has, e.g. 16GiB, 800MB; ",
                                     kByteUnits));
    }
  }
  if (!options.remat.empty()) {
    absl::StatusOr<RematPolicy> policy = parseRemat(options.remat);
    if (!policy.ok()) {
      return usageError(absl::StrCat("--remat: ", policy.status().message()));
    }
    strategy.remat = *policy;
  }
  if (!options.overlap.empty()) {
    ORIEL_ASSIGN_OR_RETURN(strategy.overlap, parseOverlap(options.overlap));
  }
  if (std::optional<StrategyProblem> problem = findProblem(strategy, options.memoryFrom)) {
    return usageError(absl::StrCat(optionOf(problem->key), " ", problem->message));
  }
  strategy.text = strategyText(strategy);
  return strategy;
}

absl::StatusOr<Strategy> fromFile(const StrategyOptions& options) {
  std::vector<std::string> others = givenOptions(options);
  others.erase(std::remove_if(others.begin(), others.end(),
                              [](const std::string& option) {
                                return option == "--strategy" || option == "--world";
                              }),
               others.end());
  if (!others.empty()) {
    return usageError(absl::StrCat("--strategy and ", absl::StrJoin(others, ", "),
                                   " say the same thing: write it in '", options.file,
                                   "', or drop --strategy"));
  }
  return readStrategy(options.file, options.memoryFrom);
}

}  // namespace

std::vector<std::string> givenOptions(const StrategyOptions& options) {
  std::vector<std::string> given;
  if (!options.file.empty()) given.push_back("--strategy");
  if (!options.mesh.empty()) given.push_back("--mesh");
  if (options.zero) given.push_back("--zero");
  if (options.hsdp) given.push_back("--hsdp");
  if (options.sequenceParallel) given.push_back("--sp");
  if (options.padding) given.push_back("--padding");
  if (!options.stages.empty()) given.push_back("--stages");
  if (!options.schedule.empty()) given.push_back("--schedule");
  if (options.interleave) given.push_back("--interleave");
  if (options.microbatches) given.push_back("--microbatches");
  if (!options.balance.empty()) given.push_back("--balance");
  if (!options.placement.empty()) given.push_back("--placement");
  if (!options.memory.empty()) given.push_back("--memory");
  if (!options.remat.empty()) given.push_back("--remat");
  if (!options.overlap.empty()) given.push_back("--overlap");
  if (options.world) given.push_back("--world");
  return given;
}

bool isLeftToSearch(const StrategyOptions& options) {
  const std::vector<std::string> given = givenOptions(options);
  return std::all_of(given.begin(), given.end(), [](const std::string& option) {
    return option == "--world" || option == "--memory";
  });
}

absl::StatusOr<Strategy> strategyFromOptions(const StrategyOptions& options) {
  if (options.world && (*options.world < 1 || *options.world > kMaxRanks)) {
    return usageError(absl::StrCat("--world must be 1 to ", kMaxRanks, ", not ", *options.world));
  }
  ORIEL_ASSIGN_OR_RETURN(Strategy strategy,
                         options.file.empty() ? fromShorthand(options) : fromFile(options));
  if (options.world && *options.world != strategy.ranks()) {
    if (options.file.empty() && options.mesh.empty()) {
      return usageError(
          absl::StrCat("--world ", *options.world, " can't be split over ", strategy.grids(),
                       " grids of ranks: change --world or --stages, or give --mesh"));
    }
    const std::string mesh =
        options.file.empty() ? "--mesh" : absl::StrCat("the mesh of '", options.file, "'");
    const std::string grids =
        strategy.grids() == 1 ? "" : absl::StrCat(" on ", strategy.grids(), " grids");
    return usageError(absl::StrCat("--world ", *options.world, ", but ", mesh, " has ",
                                   strategy.ranks(), strategy.ranks() == 1 ? " rank" : " ranks",
                                   grids, ": drop --world, or change the sizes of the mesh"));
  }
  return strategy;
}

}  // namespace oriel::driver
