#include "driver/open_model.h"

#include <vector>

#include "absl/algorithm/container.h"
#include "driver/console.h"
#include "passes/config/glob.h"

namespace oriel::driver {

namespace {

// Constants that a pattern must mean, as it matches nothing else.
std::vector<std::string> constantsOf(const ModelFile& model, const std::string& pattern) {
  std::vector<std::string> constants;
  for (const std::string& name : model.initializerNames()) {
    if (!model.isFloatInitializer(name) || !matchesGlob(pattern, name)) continue;
    if (model.role(name) == InitializerRole::kParameter) return {};
    constants.push_back(name);
  }
  return constants;
}

}  // namespace

absl::StatusOr<ModelFile> openModel(const std::string& path, const Recipe& recipe) {
  llvm::Expected<ModelFile> model = ModelFile::open(path);
  if (!model) return toStatus(model.takeError());
  std::vector<std::string> asked;
  for (const std::string& pattern : recipe.trainable) {
    if (pattern == "*") continue;  // of a model without parameters, too
    absl::c_move(constantsOf(*model, pattern), std::back_inserter(asked));
  }
  if (!asked.empty()) model->treatAsParameters(asked);
  return std::move(*model);
}

}  // namespace oriel::driver
