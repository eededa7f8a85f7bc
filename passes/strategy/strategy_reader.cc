#include "passes/strategy/strategy_reader.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "passes/config/quantity.h"
#include "passes/config/yaml_reader.h"

namespace oriel {

namespace {

constexpr int64_t kMaxDimension = 63;

class StrategyReader {
 public:
  StrategyReader(const std::string& text, const std::string& name) : document_(text, name) {
    strategy_.text = text;
  }

  absl::StatusOr<Strategy> read(MemoryFrom memory) {
    if (document_.ok() && !document_.root().IsMap()) {
      document_.fail(document_.root().Mark(),
                     "a strategy must be a mapping of keys to values, e.g. `mesh: {dp: 2, tp: 2}`");
    }
    if (!document_.ok()) return document_.status();
    YamlMap root(&document_, document_.root(), "",
                 {"mesh", "zero", "hsdp", "sequence_parallel", "padding", "memory", "modules",
                  "shardings", "stages", "schedule", "interleave", "microbatches", "balance",
                  "placement", "remat", "overlap"});
    readPipeline(root);
    if (needsMesh()) root.require("mesh");
    strategy_.mesh = readMesh(root.node("mesh"), "mesh");
    strategy_.zero = static_cast<int>(root.readInt("zero", 0, 0, 3));
    if (root.has("hsdp")) strategy_.hsdp = root.readInt("hsdp", 2, 2, kMaxRanks);
    strategy_.sequenceParallel = root.readBool("sequence_parallel", false);
    strategy_.padding = root.readBool("padding", false);
    if (root.has("memory")) readMemory(root);
    if (root.has("remat")) {
      strategy_.remat = static_cast<RematPolicy>(root.readWord("remat", 0, rematNames()));
    }
    for (const char* key :
         {"hsdp", "sequence_parallel", "stages", "interleave", "placement", "remat"})
      places_.emplace(key, root.node(key));
    if (root.has("overlap")) strategy_.overlap = readOverlap(root);
    if (root.has("modules")) readModules(root.node("modules"));
    if (root.has("shardings")) readShardings(root.node("shardings"));
    if (!document_.ok()) return document_.status();
    if (std::optional<StrategyProblem> problem = findProblem(strategy_, memory)) {
      document_.fail(places_.at(problem->key).Mark(), "'" + problem->key + "' " + problem->message);
      return document_.status();
    }
    return std::move(strategy_);
  }

 private:
  // Not where every stage has its own.
  bool needsMesh() const {
    if (!strategy_.pipeline || strategy_.pipeline->named.empty()) return true;
    const std::vector<Pipeline::Stage>& stages = strategy_.pipeline->named;
    return std::any_of(stages.begin(), stages.end(),
                       [](const Pipeline::Stage& stage) { return !stage.mesh; });
  }

  void readMemory(YamlMap& root) {
    strategy_.memory =
        readBytes(root, "memory", "must be the bytes that a rank has, e.g. `16 GiB`, `800 MB`");
    if (strategy_.memory == 0) {
      root.fail("memory", "'memory' must be the bytes that a rank has, e.g. `16 GiB`, not 0");
    }
  }

  void readPipeline(YamlMap& root) {
    for (const char* key : {"schedule", "interleave", "balance", "placement"}) {
      if (root.has(key) && !root.has("stages")) {
        root.fail(key, std::string("'") + key + "' is of several stages: say how many, " +
                           "`stages: 2`, or remove it");
      }
    }
    if (!root.has("stages") && !root.has("microbatches")) return;
    Pipeline pipeline;
    if (root.has("stages")) readStages(root, &pipeline);
    std::optional<ScheduleKind> schedule;
    std::optional<int64_t> interleave;
    if (root.has("schedule")) {
      schedule = static_cast<ScheduleKind>(root.readWord("schedule", 0, scheduleNames()));
    }
    if (root.has("interleave")) interleave = root.readInt("interleave", 1, 1, kMaxRanks);
    pipeline.setSchedule(schedule, interleave);
    if (root.has("microbatches")) {
      pipeline.microbatches = root.readInt("microbatches", 1, 1, kMaxMicrobatches);
    }
    pipeline.balance =
        static_cast<Pipeline::Balance>(root.readWord("balance", 0, {"time", "parameters"}));
    pipeline.placement = static_cast<Placement>(root.readWord("placement", 0, placementNames()));
    if (!pipeline.named.empty() && root.has("balance")) {
      root.fail("balance",
                "'balance' is for cuts that are found, and 'stages' says where they are");
    }
    strategy_.pipeline = std::move(pipeline);
  }

  // `4`, `auto 4`, or a list.
  void readStages(YamlMap& root, Pipeline* pipeline) {
    const YAML::Node node = root.node("stages");
    if (node.IsSequence()) {
      for (const YAML::Node& item : node) pipeline->named.push_back(readStage(item));
      pipeline->stages = static_cast<int64_t>(pipeline->named.size());
      if (pipeline->named.empty()) root.fail("stages", "'stages' must name at least one stage");
      return;
    }
    const std::optional<int64_t> count =
        node.IsScalar() ? stageCountOf(node.Scalar()) : std::nullopt;
    pipeline->stages = count.value_or(1);
    if (!count) {
      root.fail("stages", "'stages' must be a number from 1 to " + std::to_string(kMaxRanks) +
                              ", `auto N`, or a list of what is in each, e.g. "
                              "`[vision, \"llm.0-15\", \"llm.16-31\"]`");
    }
  }

  // The blocks, or a mapping with a mesh.
  Pipeline::Stage readStage(const YAML::Node& node) {
    const std::string path = "stages[" + std::to_string(stagesRead_++) + "]";
    Pipeline::Stage stage;
    if (!node.IsMap()) {
      stage.blocks = readBlocks(node, path);
      return stage;
    }
    YamlMap map(&document_, node, path, {"blocks", "mesh"});
    map.require("blocks");
    if (map.has("blocks")) stage.blocks = readBlocks(map.node("blocks"), map.pathOf("blocks"));
    if (map.has("mesh")) stage.mesh = readMesh(map.node("mesh"), map.pathOf("mesh"));
    return stage;
  }

  std::vector<std::string> readBlocks(const YAML::Node& node, const std::string& path) {
    std::vector<std::string> blocks;
    auto add = [&](const YAML::Node& item) {
      if (item.IsScalar() && !item.Scalar().empty()) return blocks.push_back(item.Scalar());
      document_.fail(item.Mark(), "'" + path +
                                      "' must name blocks: `vision`, `llm.0-15`, \"0-11\", " +
                                      "or a list of such");
    };
    if (!node.IsSequence()) {
      add(node);
      return blocks;
    }
    for (const YAML::Node& item : node) add(item);
    if (blocks.empty()) document_.fail(node.Mark(), "'" + path + "' must name at least one block");
    return blocks;
  }

  Mesh readMesh(const YAML::Node& node, const std::string& path) {
    places_.emplace(path, node);
    YamlMap map(&document_, node, path, {"dp", "fsdp", "cp", "tp", "ep", "pp"});
    if (map.has("pp")) {
      map.fail("pp", "'" + map.pathOf("pp") +
                         "' is no axis: pipeline stages are `stages`, beside the mesh");
    }
    if (map.has("ep")) {
      map.fail("ep", "'" + map.pathOf("ep") +
                         "' is not supported yet; the axes of a mesh are dp, fsdp, cp and tp");
    }
    Mesh mesh;
    for (const NamedMeshAxis& axis : kMeshAxes) {
      mesh.*axis.size = map.readInt(axis.name, 1, 1, kMaxRanks);
    }
    return mesh;
  }

  // `true`, `false`, or a mapping of sizes.
  std::optional<Overlap> readOverlap(YamlMap& root) {
    const YAML::Node node = root.node("overlap");
    if (!node.IsMap()) {
      bool on = false;
      if (!node.IsScalar() || !YAML::convert<bool>::decode(node, on)) {
        root.fail("overlap", "'overlap' must be true, false, or sizes, e.g. `{bucket: 25 MiB}`");
      }
      return on ? std::optional(Overlap()) : std::nullopt;
    }
    YamlMap map(&document_, node, "overlap", {"bucket", "prefetch"});
    Overlap overlap;
    overlap.bucket = readBytes(map, "bucket", "must be a number of bytes, e.g. `25 MiB`");
    overlap.prefetch = readBytes(map, "prefetch", "must be a number of bytes, e.g. `25 MiB`");
    return overlap;
  }

  std::optional<int64_t> readBytes(YamlMap& map, const std::string& key, const std::string& must) {
    if (!map.has(key)) return std::nullopt;
    const YAML::Node node = map.node(key);
    const std::string what = "'" + map.pathOf(key) + "' " + must;
    if (!node.IsScalar()) {
      map.fail(key, what);
      return std::nullopt;
    }
    const std::optional<int64_t> bytes = bytesIn(node.Scalar());
    if (!bytes) map.fail(key, what + "; " + kByteUnits);
    return bytes;
  }

  void readModules(const YAML::Node& node) {
    YamlMap modules(&document_, node, "modules");
    std::set<std::string> patterns;
    for (const std::string& name : modules.keys()) {
      if (name.empty()) modules.fail(name, "a module needs a name");
      YamlMap map(&document_, modules.node(name), modules.pathOf(name), {"parameters", "mesh"});
      if (!strategy_.pipeline) map.require("mesh");
      Strategy::Module module;
      module.name = name;
      module.parameters = readPatterns(map, &patterns);
      if (map.has("mesh")) module.mesh = readMesh(map.node("mesh"), map.pathOf("mesh"));
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
  int64_t stagesRead_ = 0;
  std::map<std::string, YAML::Node> places_;  // of what findProblem() names
};

}  // namespace

absl::StatusOr<Strategy> parseStrategy(const std::string& text, const std::string& name,
                                       MemoryFrom memory) {
  return StrategyReader(text, name).read(memory);
}

absl::StatusOr<Strategy> readStrategy(const std::string& path, MemoryFrom memory) {
  absl::StatusOr<std::string> text = readYamlText(path, "strategy");
  if (!text.ok()) return text.status();
  return parseStrategy(*text, path, memory);
}

}  // namespace oriel
