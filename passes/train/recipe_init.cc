#include "passes/train/recipe_init.h"

#include <cmath>

namespace oriel {
namespace {

using Kind = Recipe::Distribution::Kind;

// A number that the runtime, which makes the values in f32, can represent.
double readFloat(YamlMap& map, const std::string& key) {
  map.require(key);
  double value = map.readDouble(key, 0);
  if (!std::isfinite(static_cast<float>(value))) {
    map.fail(key, "'" + map.pathOf(key) + "' is too large for f32");
  }
  return value;
}

Recipe::Distribution readDistribution(YamlDocument& document, YamlMap& rule) {
  if (rule.has("constant")) return {Kind::kConstant, readFloat(rule, "constant"), 0};
  if (rule.has("normal")) {
    YamlMap map(&document, rule.node("normal"), rule.pathOf("normal"), {"mean", "std"});
    double mean = map.has("mean") ? readFloat(map, "mean") : 0;
    Recipe::Distribution normal{Kind::kNormal, mean, readFloat(map, "std")};
    if (normal.second < 0) map.fail("std", "'" + map.pathOf("std") + "' must not be below 0");
    return normal;
  }
  YamlMap map(&document, rule.node("uniform"), rule.pathOf("uniform"), {"low", "high"});
  Recipe::Distribution uniform{Kind::kUniform, readFloat(map, "low"), readFloat(map, "high")};
  const auto low = static_cast<float>(uniform.first), high = static_cast<float>(uniform.second);
  if (document.ok() && !(low < high)) {
    map.fail("high", "'" + map.pathOf("high") + "' must be above '" + map.pathOf("low") + "'");
  }
  if (document.ok() && !std::isfinite(high - low)) {
    map.fail("high", "'" + rule.pathOf("uniform") + "' is too wide for f32");
  }
  return uniform;
}

Recipe::InitRule readRule(YamlDocument& document, const YAML::Node& node, const std::string& path) {
  YamlMap map(&document, node, path, {"match", "constant", "normal", "uniform"});
  Recipe::InitRule rule;
  map.require("match");
  rule.match = map.readStrings("match", {});
  if (map.has("match") && rule.match.empty()) {
    map.fail("match", "'" + map.pathOf("match") + "' must hold a pattern");
  }
  int distributions = map.has("constant") + map.has("normal") + map.has("uniform");
  if (distributions != 1) {
    map.fail("match", "'" + path + "' must have one of 'constant', 'normal' and 'uniform', not " +
                          (distributions == 0 ? "none" : "several"));
    return rule;
  }
  rule.distribution = readDistribution(document, map);
  return rule;
}

}  // namespace

Recipe::Init readInit(YamlDocument& document, const YAML::Node& node, uint64_t seed) {
  YamlMap map(&document, node, "init", {"seed", "rules"});
  Recipe::Init init;
  map.require("rules");
  init.seed = static_cast<uint64_t>(map.readInt("seed", static_cast<int64_t>(seed), 0));
  YAML::Node rules = map.node("rules");
  if (rules.IsDefined() && (!rules.IsSequence() || rules.size() == 0)) {
    map.fail("rules", rules.IsSequence() ? "'init.rules' holds no rule; leave 'init' out to keep "
                                           "the model's values"
                                         : "'init.rules' must be a list of rules");
    return init;
  }
  for (size_t i = 0; i < rules.size(); ++i) {
    init.rules.push_back(readRule(document, rules[i], "init.rules[" + std::to_string(i) + "]"));
  }
  return init;
}

}  // namespace oriel
