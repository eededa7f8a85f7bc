#include "passes/train/recipe.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "passes/config/glob.h"
#include "passes/config/suggest.h"
#include "passes/config/yaml_reader.h"
#include "passes/train/recipe_init.h"
#include "passes/train/recipe_optimizer.h"

namespace oriel {
namespace {

const char kMicroBatch[] = "micro_batch";
const std::string_view kDialect = "oriel.";

// Bounds of counts that are multiplied later: by the number of ranks, or by each other.
constexpr int64_t kMaxBatch = int64_t{1} << 40;
constexpr int64_t kMaxRows = int64_t{1} << 30;

bool matchesAny(const std::vector<std::string>& patterns, const std::string& text) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&](const std::string& pattern) { return matchesGlob(pattern, text); });
}

// Reads each part of a recipe. Batch and bindings come first: shapes refer to them.
class RecipeReader {
 public:
  RecipeReader(const std::string& text, const std::string& name) : document_(text, name) {
    recipe_.text = text;
  }

  absl::StatusOr<Recipe> read() {
    if (document_.ok() && !document_.root().IsMap()) {
      document_.fail(document_.root().Mark(), "a recipe must be a mapping of keys to values");
    }
    if (!document_.ok()) return document_.status();
    YamlMap root(&document_, document_.root(), "",
                 {"model", "inputs", "images", "loss", "parameters", "init", "optimizer",
                  "schedule", "batch", "precision", "steps", "seed"});
    for (const char* key : {"loss", "optimizer", "batch", "steps"}) root.require(key);
    recipe_.steps = root.readInt("steps", 0, 1);
    recipe_.seed = static_cast<uint64_t>(root.readInt("seed", 0, 0));
    readPrecision(root);
    readBatch(root.node("batch"));
    readModel(root.node("model"));
    readInputs(root.node("inputs"));
    if (root.has("images")) readImages(root.node("images"));
    readLoss(root.node("loss"));
    readParameters(root.node("parameters"));
    if (root.has("init")) recipe_.init = readInit(document_, root.node("init"), recipe_.seed);
    recipe_.optimizer = readOptimizer(document_, root.node("optimizer"));
    readSchedule(root.node("schedule"));
    if (!document_.ok()) return document_.status();
    return std::move(recipe_);
  }

 private:
  void readBatch(const YAML::Node& node) {
    YamlMap map(&document_, node, "batch", {"global", "micro"});
    map.require("global");
    map.require("micro");
    recipe_.globalBatch = map.readInt("global", 1, 1, kMaxBatch);
    recipe_.microBatch = map.readInt("micro", 1, 1, kMaxBatch);
    if (recipe_.microBatch > 0 && recipe_.globalBatch % recipe_.microBatch != 0) {
      map.fail("global", "'batch.global' (" + std::to_string(recipe_.globalBatch) +
                             ") must be a multiple of 'batch.micro' (" +
                             std::to_string(recipe_.microBatch) + ")");
    }
  }

  void readModel(const YAML::Node& node) {
    YamlMap map(&document_, node, "model", {"bind"});
    YamlMap bind(&document_, map.node("bind"), "model.bind");
    for (const std::string& name : bind.keys()) {
      recipe_.bind[name] = readSize(bind.node(name), bind.pathOf(name), {}, 0);
    }
  }

  void readInputs(const YAML::Node& node) {
    YamlMap inputs(&document_, node, "inputs");
    for (const std::string& name : inputs.keys()) {
      YamlMap map(&document_, inputs.node(name), inputs.pathOf(name), {"dtype", "shape"});
      map.require("dtype");
      map.require("shape");
      const std::vector<std::string> dtypes = {"int64", "int32", "float32"};
      Recipe::Input input;
      input.name = name;
      input.dtype = dtypes[map.readWord("dtype", 0, dtypes)];
      YAML::Node shape = map.node("shape");
      if (shape.IsDefined() && !shape.IsSequence()) {
        map.fail("shape", "'" + map.pathOf("shape") + "' must be a list of sizes");
      } else if (shape.IsDefined()) {
        for (const YAML::Node& size : shape) {
          input.shape.push_back(readSize(size, map.pathOf("shape"), recipe_.bind, 1));
        }
      }
      recipe_.inputs.push_back(std::move(input));
    }
  }

  void readImages(const YAML::Node& node) {
    if (!node.IsSequence()) return readImagesOfOneKind(node, "images", /*isOneOfSeveral=*/false);
    if (node.size() == 0) document_.fail(node.Mark(), "'images' is an empty list; leave it out");
    std::set<std::string> seen;
    for (size_t i = 0; i < node.size() && document_.ok(); ++i) {
      readImagesOfOneKind(node[i], "images[" + std::to_string(i) + "]", node.size() > 1);
      const std::string& input = recipe_.images.back().input;
      if (!seen.insert(input).second) {
        document_.fail(node[i].Mark(), "'images' names the input '" + input + "' twice");
      }
    }
  }

  void readImagesOfOneKind(const YAML::Node& node, const std::string& path, bool isOneOfSeveral) {
    YamlMap map(&document_, node, path, {"input", "per_sample", "rows_per_image"});
    map.require("rows_per_image");
    if (isOneOfSeveral) map.require("input");
    Recipe::Images images;
    images.input = map.readString("input", images.input);
    if (isOneOfSeveral && images.input == "*") {
      map.fail("input", "'" + map.pathOf("input") + "' must be the name of an input, not '*'");
    }
    images.perSample = map.readInt("per_sample", 1, 1, kMaxRows);
    images.rowsPerImage = map.readInt("rows_per_image", 1, 1, kMaxRows);
    recipe_.images.push_back(images);
  }

  void readLoss(const YAML::Node& node) {
    YamlMap map(&document_, node, "loss",
                {"kind", "logits", "labels", "shift", "ignore_index", "output", "over"});
    bool isSum = map.readWord("kind", 0, {"token_cross_entropy", "sum"}) == 1;
    for (const char* key : {"logits", "labels", "shift", "ignore_index"}) {
      if (isSum && map.has(key)) map.fail(key, "'" + map.pathOf(key) + "' is not used by sum");
    }
    if (isSum) {
      map.require("output");
      recipe_.loss.kind = Recipe::LossKind::kSum;
      recipe_.loss.output = map.readString("output", "");
      recipe_.loss.overMicrobatch = map.readWord("over", 0, {"batch", "microbatch"}) == 1;
      return;
    }
    for (const char* key : {"output", "over"}) {
      if (map.has(key))
        map.fail(key, "'" + map.pathOf(key) + "' is not used by token_cross_entropy");
    }
    map.require("logits");
    map.require("labels");
    recipe_.loss.output = map.readString("logits", "");
    recipe_.loss.labels = map.readString("labels", "");
    recipe_.loss.shift = map.readBool("shift", true);
    recipe_.loss.ignoreIndex = map.readInt("ignore_index", -100, INT64_MIN);
    for (const Recipe::Input& input : recipe_.inputs) {
      if (input.name != recipe_.loss.labels) continue;
      if (input.dtype != "int64" && input.dtype != "int32") {
        map.fail("labels",
                 "the labels '" + input.name + "' must be int64 or int32, not " + input.dtype);
      }
    }
  }

  void readParameters(const YAML::Node& node) {
    YamlMap map(&document_, node, "parameters", {"trainable", "frozen"});
    recipe_.trainable = map.readStrings("trainable", {"*"});
    recipe_.frozen = map.readStrings("frozen", {});
  }

  // A word for `compute`, or a mapping.
  void readPrecision(YamlMap& root) {
    const std::vector<std::string> types = {"f32", "bf16"};
    Recipe::Precision& precision = recipe_.precision;
    YAML::Node node = root.node("precision");
    if (node.IsDefined() && !node.IsMap() && !(node.IsScalar() && !node.Scalar().empty())) {
      root.fail("precision",
                "'precision' must be f32, bf16, or a mapping, e.g. "
                "`{compute: bf16, gradients: bf16}`");
      return;
    }
    if (!node.IsDefined() || !node.IsMap()) {
      precision.mixed = root.readWord("precision", 0, types) == 1;
      return;
    }
    YamlMap map(&document_, node, "precision", {"compute", "gradients", "ops"});
    map.require("compute");
    precision.mixed = map.readWord("compute", 0, types) == 1;
    for (const char* key : {"gradients", "ops"}) {
      if (!precision.mixed && map.has(key)) {
        map.fail(key, "'" + map.pathOf(key) + "' is not used where 'precision.compute' is f32");
      }
    }
    precision.narrowGradients = map.readWord("gradients", 0, types) == 1;
    YamlMap ops(&document_, map.node("ops"), "precision.ops");
    for (const std::string& key : ops.keys()) {
      // The IR's spelling, too.
      const std::string match = key.rfind(kDialect, 0) == 0 ? key.substr(kDialect.size()) : key;
      for (const Recipe::Precision::OpRule& rule : precision.ops) {
        if (rule.match != match) continue;
        ops.fail(key, "'precision.ops' has '" + match + "' twice: remove one");
      }
      precision.ops.push_back({match, ops.readWord(key, 0, types) == 1});
    }
  }

  void readSchedule(const YAML::Node& node) {
    YamlMap map(&document_, node, "schedule",
                {"kind", "warmup_steps", "hold_steps", "total_steps", "final_ratio"});
    const Recipe::ScheduleKind kinds[] = {Recipe::ScheduleKind::kConstant,
                                          Recipe::ScheduleKind::kLinear,
                                          Recipe::ScheduleKind::kCosine};
    Recipe::Schedule& schedule = recipe_.schedule;
    schedule.kind = kinds[map.readWord("kind", 0, {"constant", "linear", "cosine"})];
    schedule.warmupSteps = map.readInt("warmup_steps", 0, 0);
    schedule.holdSteps = map.readInt("hold_steps", 0, 0);
    schedule.totalSteps = map.readInt("total_steps", recipe_.steps, 1);
    schedule.finalRatio = map.readDouble("final_ratio", 0);
    if (schedule.finalRatio < 0 || schedule.finalRatio > 1) {
      map.fail("final_ratio", "'schedule.final_ratio' must be 0 to 1");
    }
    if (schedule.warmupSteps > schedule.totalSteps) {
      map.fail("warmup_steps",
               "'schedule.warmup_steps' must not be above 'schedule.total_steps' (" +
                   std::to_string(schedule.totalSteps) + ")");
    } else if (schedule.holdSteps > schedule.totalSteps - schedule.warmupSteps) {
      map.fail("hold_steps",
               "'schedule.hold_steps' and 'schedule.warmup_steps' must not be above "
               "'schedule.total_steps' (" +
                   std::to_string(schedule.totalSteps) + ") together");
    }
    for (const char* key : {"hold_steps", "total_steps", "final_ratio"}) {
      if (schedule.kind == Recipe::ScheduleKind::kConstant && map.has(key)) {
        map.fail(key, "'" + map.pathOf(key) + "' is not used by constant, the default of " +
                          "'schedule.kind': kinds that decay are linear and cosine");
      }
    }
  }

  // A size of `least` or more: a number, `micro_batch`, or a name in `names`.
  int64_t readSize(const YAML::Node& node, const std::string& path,
                   const std::map<std::string, int64_t>& names, int64_t least) {
    int64_t size = 0;
    if (node.IsScalar()) {
      if (node.Scalar() == kMicroBatch) return recipe_.microBatch;
      auto it = names.find(node.Scalar());
      if (it != names.end() && it->second < least) {
        document_.fail(node.Mark(), "'" + path + "' can't be '" + node.Scalar() +
                                        "', which 'model.bind' makes " +
                                        std::to_string(it->second) + ": a size must be above 0");
        return 1;
      }
      if (it != names.end()) return it->second;
      if (YAML::convert<int64_t>::decode(node, size) && size >= least) return size;
    }
    std::vector<std::string> words = {kMicroBatch};
    for (const auto& entry : names) words.push_back(entry.first);
    std::string value = node.IsScalar() ? " '" + node.Scalar() + "'" : "";
    document_.fail(node.Mark(), "'" + path + "' must hold whole numbers " +
                                    (least == 0 ? "" : "above 0 ") + "or names of sizes; " +
                                    "can't use" + value +
                                    (node.IsScalar() ? suggestion(node.Scalar(), words) : " this"));
    return 1;
  }

  YamlDocument document_;
  Recipe recipe_;
};

}  // namespace

bool Recipe::isTrainable(const std::string& parameter) const {
  return matchesAny(trainable, parameter) && !matchesAny(frozen, parameter);
}

const Recipe::Distribution* Recipe::initialValueOf(const std::string& parameter) const {
  for (const InitRule& rule : init.rules) {
    if (matchesAny(rule.match, parameter)) return &rule.distribution;
  }
  return nullptr;
}

std::string Recipe::labelsInput() const {
  bool isExtra = std::any_of(inputs.begin(), inputs.end(),
                             [&](const Input& input) { return input.name == loss.labels; });
  return isExtra || loss.labels.empty() ? loss.labels : loss.labels + ".labels";
}

std::optional<bool> Recipe::Precision::isNarrow(const std::string& op) const {
  const OpRule* first = nullptr;
  for (const OpRule& rule : ops) {
    if (rule.match == op) return rule.narrow;
    if (first == nullptr && matchesGlob(rule.match, op)) first = &rule;
  }
  if (first == nullptr) return std::nullopt;
  return first->narrow;
}

const Recipe::OptimizerGroup* Recipe::groupOf(const std::string& parameter) const {
  for (const OptimizerGroup& group : optimizer.groups) {
    if (matchesAny(group.match, parameter)) return &group;
  }
  return nullptr;
}

double Recipe::learningRateOf(const std::string& parameter) const {
  const OptimizerGroup* group = groupOf(parameter);
  return group == nullptr ? optimizer.lr : group->lr.value_or(optimizer.lr);
}

double Recipe::weightDecayOf(const std::string& parameter) const {
  if (matchesAny(optimizer.noDecay, parameter)) return 0;
  const OptimizerGroup* group = groupOf(parameter);
  return group == nullptr ? optimizer.weightDecay
                          : group->weightDecay.value_or(optimizer.weightDecay);
}

absl::StatusOr<Recipe> parseRecipe(const std::string& text, const std::string& name) {
  return RecipeReader(text, name).read();
}

absl::StatusOr<Recipe> readRecipe(const std::string& path) {
  absl::StatusOr<std::string> text = readYamlText(path, "recipe");
  if (!text.ok()) return text.status();
  return parseRecipe(*text, path);
}

}  // namespace oriel
