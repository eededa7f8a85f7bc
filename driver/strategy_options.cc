#include "driver/strategy_options.h"

#include <algorithm>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "passes/strategize/strategy_reader.h"
#include "passes/train/suggest.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

absl::StatusOr<Mesh> parseMesh(const std::vector<std::string>& words) {
  Mesh mesh;
  const std::vector<std::string> names = {"dp", "fsdp", "tp"};
  int64_t* const sizes[] = {&mesh.dp, &mesh.fsdp, &mesh.tp};
  std::set<std::string> seen;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    const auto known = std::find(names.begin(), names.end(), name);
    if (equals != std::string::npos && (name == "cp" || name == "ep" || name == "pp")) {
      return absl::InvalidArgumentError(absl::StrCat(
          "--mesh: ", name, " is not supported yet; the axes of a mesh are dp, fsdp and tp"));
    }
    if (equals != std::string::npos && known == names.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat("--mesh: there is no axis '", name, "'", suggestion(name, names)));
    }
    int64_t size = 0;
    if (equals == std::string::npos || !absl::SimpleAtoi(word.substr(equals + 1), &size) ||
        size < 1 || size > kMaxRanks) {
      return absl::InvalidArgumentError(absl::StrCat("--mesh: can't use '", word,
                                                     "'; write AXIS=N, N from 1 to ", kMaxRanks,
                                                     ", e.g. --mesh dp=2,tp=2"));
    }
    if (!seen.insert(name).second) {
      return absl::InvalidArgumentError(absl::StrCat("--mesh: ", name, " is given twice"));
    }
    *sizes[known - names.begin()] = size;
  }
  return mesh;
}

std::string textOf(const Strategy& strategy) {
  std::vector<std::string> axes = {absl::StrCat("dp: ", strategy.mesh.dp)};
  if (strategy.mesh.fsdp > 1) axes.push_back(absl::StrCat("fsdp: ", strategy.mesh.fsdp));
  if (strategy.mesh.tp > 1) axes.push_back(absl::StrCat("tp: ", strategy.mesh.tp));
  std::string text = absl::StrCat("mesh: {", absl::StrJoin(axes, ", "), "}\n");
  if (strategy.zero > 0) absl::StrAppend(&text, "zero: ", strategy.zero, "\n");
  if (strategy.hsdp) absl::StrAppend(&text, "hsdp: ", *strategy.hsdp, "\n");
  if (strategy.sequenceParallel) absl::StrAppend(&text, "sequence_parallel: true\n");
  return text;
}

// The option that stands for a key of the file.
std::string optionOf(const std::string& key) {
  return key == "sequence_parallel" ? "--sp" : absl::StrCat("--", key);
}

absl::StatusOr<Strategy> fromShorthand(const StrategyOptions& options) {
  Strategy strategy;
  if (options.mesh.empty()) {
    strategy.mesh.dp = options.world.value_or(1);
  } else {
    ORIEL_ASSIGN_OR_RETURN(strategy.mesh, parseMesh(options.mesh));
  }
  const int64_t zero = options.zero.value_or(0);
  if (zero < 0 || zero > 3) {
    return absl::InvalidArgumentError(absl::StrCat("--zero must be 0 to 3, not ", zero));
  }
  strategy.zero = static_cast<int>(zero);
  if (options.hsdp && (*options.hsdp < 2 || *options.hsdp > kMaxRanks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--hsdp must be 2 to ", kMaxRanks, ", not ", *options.hsdp));
  }
  strategy.hsdp = options.hsdp;
  strategy.sequenceParallel = options.sequenceParallel;
  if (std::optional<StrategyProblem> problem = findProblem(strategy)) {
    return absl::InvalidArgumentError(absl::StrCat(optionOf(problem->key), " ", problem->message));
  }
  strategy.text = textOf(strategy);
  return strategy;
}

absl::StatusOr<Strategy> fromFile(const StrategyOptions& options) {
  std::vector<std::string> others;
  if (!options.mesh.empty()) others.push_back("--mesh");
  if (options.zero) others.push_back("--zero");
  if (options.hsdp) others.push_back("--hsdp");
  if (options.sequenceParallel) others.push_back("--sp");
  if (!others.empty()) {
    return absl::InvalidArgumentError(absl::StrCat("--strategy and ", absl::StrJoin(others, ", "),
                                                   " say the same thing: write it in '",
                                                   options.file, "', or drop --strategy"));
  }
  return readStrategy(options.file);
}

}  // namespace

absl::StatusOr<Strategy> strategyFromOptions(const StrategyOptions& options) {
  if (options.world && (*options.world < 1 || *options.world > kMaxRanks)) {
    return absl::InvalidArgumentError(
        absl::StrCat("--world must be 1 to ", kMaxRanks, ", not ", *options.world));
  }
  ORIEL_ASSIGN_OR_RETURN(Strategy strategy,
                         options.file.empty() ? fromShorthand(options) : fromFile(options));
  if (options.world && *options.world != strategy.ranks()) {
    const std::string mesh =
        options.file.empty() ? "--mesh" : absl::StrCat("the mesh of '", options.file, "'");
    return absl::InvalidArgumentError(
        absl::StrCat("--world ", *options.world, ", but ", mesh, " has ", strategy.ranks(),
                     strategy.ranks() == 1 ? " rank" : " ranks",
                     ": drop --world, or change the sizes of the mesh"));
  }
  return strategy;
}

}  // namespace oriel::driver
