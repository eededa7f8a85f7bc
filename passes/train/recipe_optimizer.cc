#include "passes/train/recipe_optimizer.h"

#include <cmath>

namespace oriel {
namespace {

// Numbers of the update, which is in f32: what is not 0 must not become it, or infinite.
void checkRange(YamlMap& map, const char* key, double value) {
  const auto narrow = static_cast<float>(value);
  if (std::isfinite(narrow) && (value == 0 || narrow != 0)) return;
  map.fail(key, "'" + map.pathOf(key) + "' is " + (narrow == 0 ? "0" : "infinite") +
                    " in f32, in which it is used");
}

double readAbove0(YamlMap& map, const char* key, double otherwise) {
  const double value = map.readDouble(key, otherwise);
  if (value <= 0) map.fail(key, "'" + map.pathOf(key) + "' must be above 0");
  checkRange(map, key, value);
  return value;
}

// 0, or more.
double readFrom0(YamlMap& map, const char* key) {
  const double value = map.readDouble(key, 0);
  if (value < 0) map.fail(key, "'" + map.pathOf(key) + "' must not be below 0");
  checkRange(map, key, value);
  return value;
}

void readBetas(YamlMap& map, Recipe::Optimizer& optimizer) {
  if (!map.has("betas")) return;
  YAML::Node node = map.node("betas");
  double betas[2] = {0, 0};
  bool valid = node.IsSequence() && node.size() == 2;
  for (size_t i = 0; valid && i < 2; ++i) {
    valid = node[i].IsScalar() && YAML::convert<double>::decode(node[i], betas[i]) &&
            betas[i] >= 0 && static_cast<float>(betas[i]) < 1;
  }
  if (!valid) {
    map.fail("betas", "'optimizer.betas' must be two numbers, each at least 0 and below 1 in f32");
  }
  optimizer.beta1 = betas[0];
  optimizer.beta2 = betas[1];
}

Recipe::OptimizerGroup readGroup(YamlDocument& document, const YAML::Node& node,
                                 const std::string& path, double lr) {
  YamlMap map(&document, node, path, {"match", "lr", "weight_decay"});
  Recipe::OptimizerGroup group;
  map.require("match");
  group.match = map.readStrings("match", {});
  if (map.has("match") && group.match.empty()) {
    map.fail("match", "'" + map.pathOf("match") + "' must hold a pattern");
  }
  if (map.has("lr")) {
    group.lr = readAbove0(map, "lr", 1);
    // What the update multiplies the learning rate by.
    const auto factor = static_cast<float>(*group.lr / lr);
    if (document.ok() && (factor == 0 || !std::isfinite(factor))) {
      map.fail("lr", "'" + map.pathOf("lr") + "' over 'optimizer.lr' is beyond f32");
    }
  }
  if (map.has("weight_decay")) group.weightDecay = readFrom0(map, "weight_decay");
  if (!map.has("lr") && !map.has("weight_decay")) {
    map.fail("match", "'" + path + "' must have 'lr', 'weight_decay', or both");
  }
  return group;
}

}  // namespace

Recipe::Optimizer readOptimizer(YamlDocument& document, const YAML::Node& node) {
  YamlMap map(&document, node, "optimizer",
              {"kind", "lr", "momentum", "nesterov", "betas", "eps", "weight_decay", "no_decay",
               "clip_norm", "groups"});
  Recipe::Optimizer optimizer;
  map.require("lr");
  bool isSgd = map.readWord("kind", 1, {"sgd", "adamw"}) == 0;
  optimizer.kind = isSgd ? Recipe::OptimizerKind::kSgd : Recipe::OptimizerKind::kAdamW;
  for (const char* key : {"betas", "eps"}) {
    if (isSgd && map.has(key)) map.fail(key, "'" + map.pathOf(key) + "' is not used by sgd");
  }
  for (const char* key : {"momentum", "nesterov"}) {
    if (!isSgd && map.has(key)) map.fail(key, "'" + map.pathOf(key) + "' is of sgd only");
  }
  optimizer.momentum = readFrom0(map, "momentum");
  if (static_cast<float>(optimizer.momentum) >= 1) {
    map.fail("momentum", "'optimizer.momentum' must be below 1");
  }
  optimizer.nesterov = map.readBool("nesterov", false);
  if (optimizer.nesterov && optimizer.momentum == 0) {
    map.fail("nesterov", "'optimizer.nesterov' needs a 'momentum' above 0");
  }
  optimizer.lr = readAbove0(map, "lr", 1);
  readBetas(map, optimizer);
  optimizer.epsilon = readAbove0(map, "eps", optimizer.epsilon);
  optimizer.weightDecay = readFrom0(map, "weight_decay");
  optimizer.noDecay = map.readStrings("no_decay", {});
  optimizer.clipNorm = readFrom0(map, "clip_norm");
  YAML::Node groups = map.node("groups");
  if (groups.IsDefined() && !groups.IsSequence()) {
    map.fail("groups",
             "'optimizer.groups' must be a list of groups, e.g. "
             "`[{match: [\"*vision*\"], lr: 1.0e-5}]`");
    return optimizer;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string path = "optimizer.groups[" + std::to_string(i) + "]";
    optimizer.groups.push_back(readGroup(document, groups[i], path, optimizer.lr));
  }
  return optimizer;
}

}  // namespace oriel
