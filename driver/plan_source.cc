#include "driver/plan_source.h"

#include <algorithm>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "driver/sha256.h"
#include "passes/strategy/strategy_reader.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

// Plugins are the same wherever they lie.
std::string fileNameOf(absl::string_view path) {
  return std::filesystem::path(std::string(path)).filename().string();
}

absl::Status checkPlugin(absl::string_view plugin, const std::vector<std::string>& loaded) {
  const std::string name = fileNameOf(plugin);
  if (std::any_of(loaded.begin(), loaded.end(),
                  [&](const std::string& path) { return fileNameOf(path) == name; })) {
    return absl::OkStatus();
  }
  return absl::FailedPreconditionError(absl::StrCat("the plan was compiled with the plugin ",
                                                    plugin, ": give --load-plugin ", plugin));
}

}  // namespace

absl::StatusOr<std::string> modelOfPlan(const std::string& planPath, const plan::Provenance& from,
                                        const std::string& given) {
  std::vector<std::string> paths = {given.empty() ? from.model_path() : given};
  if (given.empty()) {
    paths.push_back(runtime::JoinPath(runtime::FolderOf(planPath), from.model_path()));
  }
  absl::Status problem;
  for (const std::string& path : paths) {
    absl::StatusOr<std::string> sha256 = sha256OfFile(path);
    if (sha256.ok() && *sha256 == from.model_sha256()) return path;
    if (sha256.ok()) {
      problem = absl::FailedPreconditionError(absl::StrCat(
          path, ": is not the file that the plan was compiled from (its SHA-256 begins ",
          sha256->substr(0, 16), ", the plan's ", from.model_sha256().substr(0, 16),
          "); give that one with --model, or compile the plan again"));
    } else if (problem.ok()) {
      problem = absl::NotFoundError(absl::StrCat(std::string(sha256.status().message()),
                                                 "; say where the model that the plan was compiled "
                                                 "from is now: --model MODEL.onnx"));
    }
  }
  return problem;
}

absl::StatusOr<PlanSource> sourceOfPlan(const std::string& planPath, const plan::Provenance& from,
                                        const std::string& givenModel,
                                        const std::vector<std::string>& plugins) {
  if (from.model_sha256().empty() || from.recipe().empty() || from.strategy().empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(planPath,
                     ": does not say what it was compiled from; give the model, its "
                     "--recipe and its --strategy instead"));
  }
  PlanSource source;
  bool hasCluster = false;
  for (const std::string& flag : from.flags()) {
    absl::string_view value = flag;
    if (absl::ConsumePrefix(&value, "--load-plugin=")) {
      ORIEL_RETURN_IF_ERROR(checkPlugin(value, plugins));
    } else if (absl::ConsumePrefix(&value, "--cluster=") ||
               absl::ConsumePrefix(&value, "--world=")) {
      hasCluster = true;
    } else if (!takeFromProvenance(flag, &source.kernels)) {
      source.notSimulated.push_back(flag);
    }
  }
  ORIEL_ASSIGN_OR_RETURN(source.modelPath, modelOfPlan(planPath, from, givenModel));
  ORIEL_ASSIGN_OR_RETURN(source.recipe,
                         parseRecipe(from.recipe(), absl::StrCat("the recipe of ", planPath)));
  ORIEL_ASSIGN_OR_RETURN(source.strategy,
                         parseStrategy(from.strategy(), absl::StrCat("the strategy of ", planPath),
                                       MemoryFrom::kCluster));
  // Without a budget of memory the plan has nothing that runs again; a cluster to simulate on is
  // one, but not the plan's. --world is there where it was this machine's.
  if (!hasCluster) source.strategy.remat = source.strategy.rematPolicy();
  return source;
}

}  // namespace oriel::driver
