#include "passes/strategize/strategy_reader.h"

#include <map>
#include <set>

#include "passes/train/yaml_reader.h"

namespace oriel {

namespace {

constexpr int64_t kMaxDimension = 63;

class StrategyReader {
 public:
  StrategyReader(const std::string& text, const std::string& name) : document_(text, name) {
    strategy_.text = text;
  }

  absl::StatusOr<Strategy> read() {
    if (document_.ok() && !document_.root().IsMap()) {
      document_.fail(document_.root().Mark(),
                     "a strategy must be a mapping of keys to values, e.g. `mesh: {dp: 2, tp: 2}`");
    }
    if (!document_.ok()) return document_.status();
    YamlMap root(&document_, document_.root(), "",
                 {"mesh", "zero", "hsdp", "sequence_parallel", "modules", "shardings"});
    root.require("mesh");
    strategy_.mesh = readMesh(root.node("mesh"), "mesh");
    strategy_.zero = static_cast<int>(root.readInt("zero", 0, 0, 3));
    if (root.has("hsdp")) strategy_.hsdp = root.readInt("hsdp", 2, 2, kMaxRanks);
    strategy_.sequenceParallel = root.readBool("sequence_parallel", false);
    for (const char* key : {"hsdp", "sequence_parallel"}) places_.emplace(key, root.node(key));
    if (root.has("modules")) readModules(root.node("modules"));
    if (root.has("shardings")) readShardings(root.node("shardings"));
    if (!document_.ok()) return document_.status();
    if (std::optional<StrategyProblem> problem = findProblem(strategy_)) {
      document_.fail(places_.at(problem->key).Mark(), "'" + problem->key + "' " + problem->message);
      return document_.status();
    }
    return std::move(strategy_);
  }

 private:
  Mesh readMesh(const YAML::Node& node, const std::string& path) {
    places_.emplace(path, node);
    YamlMap map(&document_, node, path, {"dp", "fsdp", "tp", "cp", "ep", "pp"});
    for (const char* key : {"cp", "ep", "pp"}) {
      if (map.has(key)) {
        map.fail(key, "'" + map.pathOf(key) +
                          "' is not supported yet; the axes of a mesh are dp, fsdp and tp");
      }
    }
    Mesh mesh;
    mesh.dp = map.readInt("dp", 1, 1, kMaxRanks);
    mesh.fsdp = map.readInt("fsdp", 1, 1, kMaxRanks);
    mesh.tp = map.readInt("tp", 1, 1, kMaxRanks);
    return mesh;
  }

  void readModules(const YAML::Node& node) {
    YamlMap modules(&document_, node, "modules");
    std::set<std::string> patterns;
    for (const std::string& name : modules.keys()) {
      if (name.empty()) modules.fail(name, "a module needs a name");
      YamlMap map(&document_, modules.node(name), modules.pathOf(name), {"parameters", "mesh"});
      map.require("mesh");
      Strategy::Module module;
      module.name = name;
      module.parameters = readPatterns(map, &patterns);
      module.mesh = readMesh(map.node("mesh"), map.pathOf("mesh"));
      strategy_.modules.push_back(std::move(module));
    }
  }

  void readShardings(const YAML::Node& node) {
    if (!node.IsSequence()) {
      return document_.fail(node.Mark(),
                            "'shardings' must be a list of rules, e.g. "
                            "`- {parameters: \"lm_head.weight\", tp: none}`");
    }
    std::set<std::string> patterns;
    for (const YAML::Node& item : node) {
      YamlMap map(&document_, item, "shardings[" + std::to_string(strategy_.shardings.size()) + "]",
                  {"parameters", "tp"});
      map.require("tp");
      Strategy::Sharding rule;
      rule.parameters = readPatterns(map, &patterns);
      if (map.has("tp") && !(map.node("tp").IsScalar() && map.node("tp").Scalar() == "none")) {
        int64_t dimension = 0;
        if (!map.node("tp").IsScalar() ||
            !YAML::convert<int64_t>::decode(map.node("tp"), dimension) || dimension < 0 ||
            dimension > kMaxDimension) {
          map.fail("tp", "'" + map.pathOf("tp") +
                             "' must be `none` or the number of a dimension, " + "from 0");
        }
        rule.tp = dimension;
      }
      strategy_.shardings.push_back(std::move(rule));
    }
  }

  // `seen`: patterns of the rules before, where none may come again.
  std::vector<std::string> readPatterns(YamlMap& map, std::set<std::string>* seen) {
    map.require("parameters");
    std::vector<std::string> patterns = map.readStrings("parameters", {});
    if (map.has("parameters") && patterns.empty()) {
      map.fail("parameters", "'" + map.pathOf("parameters") + "' must name at least one pattern");
    }
    for (size_t i = 0; i < patterns.size(); ++i) {
      if (seen->insert(patterns[i]).second) continue;
      YAML::Node node = map.node("parameters");
      document_.fail(node.IsSequence() ? node[i].Mark() : node.Mark(),
                     "the pattern '" + patterns[i] + "' comes twice: remove one");
    }
    return patterns;
  }

  YamlDocument document_;
  Strategy strategy_;
  std::map<std::string, YAML::Node> places_;  // of what findProblem() names
};

}  // namespace

absl::StatusOr<Strategy> parseStrategy(const std::string& text, const std::string& name) {
  return StrategyReader(text, name).read();
}

absl::StatusOr<Strategy> readStrategy(const std::string& path) {
  absl::StatusOr<std::string> text = readYamlText(path, "strategy");
  if (!text.ok()) return text.status();
  return parseStrategy(*text, path);
}

}  // namespace oriel
