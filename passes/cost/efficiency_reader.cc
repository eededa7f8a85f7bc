#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "passes/config/quantity.h"
#include "passes/config/suggest.h"
#include "passes/config/yaml_reader.h"
#include "passes/cost/efficiency.h"
#include "passes/cost/efficiency_yaml.h"

namespace oriel {

namespace {

struct Preset {
  const char* name;
  const char* text;
};

// clusters/efficiency/*.yaml
constexpr Preset kPresets[] = {
#include "passes/cost/efficiency_presets.inc"
};

class EfficiencyReader {
 public:
  explicit EfficiencyReader(YamlDocument* document) : document_(*document) {}

  Efficiency read(const YAML::Node& node, const std::string& path) {
    YamlMap root(&document_, node, path,
                 {"processors", "products", "attention", "memory", "kernel_floor", "overlap"});
    for (const char* key : {"processors", "products", "attention", "memory"}) root.require(key);
    number(root, "processors", efficiency_.processors, 1);
    if (root.has("products")) {
      YamlMap map(&document_, root.node("products"), root.pathOf("products"),
                  {"half", "float", "depth_latency", "tile"});
      share(map, "half", efficiency_.halfShare);
      share(map, "float", efficiency_.floatShare);
      number(map, "depth_latency", efficiency_.depthLatency, 0);
      if (map.has("tile")) share(map, "tile", efficiency_.tile);
    }
    if (root.has("attention")) {
      YamlMap map(&document_, root.node("attention"), root.pathOf("attention"),
                  {"rows", "forward", "backward"});
      number(map, "rows", efficiency_.attentionRows, 1);
      readDirection(map, "forward", efficiency_.forward);
      readDirection(map, "backward", efficiency_.backward);
    }
    if (root.has("memory")) {
      YamlMap map(&document_, root.node("memory"), root.pathOf("memory"), {"share", "ramp"});
      share(map, "share", efficiency_.memoryShare);
      efficiency_.memoryRamp = readQuantity(map, "ramp", seconds(), efficiency_.memoryRamp);
    }
    efficiency_.kernelFloor =
        readQuantity(root, "kernel_floor", seconds(), efficiency_.kernelFloor);
    efficiency_.overlap = root.readDouble("overlap", efficiency_.overlap);
    if (!(efficiency_.overlap >= 0 && efficiency_.overlap <= 1)) {
      root.fail("overlap",
                absl::StrCat("'", root.pathOf("overlap"), "' must be a share, from 0 to 1"));
    }
    return efficiency_;
  }

 private:
  void readDirection(YamlMap& parent, const char* key, AttentionEfficiency& direction) {
    parent.require(key);
    if (!parent.has(key)) return;
    YamlMap map(&document_, parent.node(key), parent.pathOf(key),
                {"share", "score", "key_latency"});
    share(map, "share", direction.share);
    number(map, "score", direction.score, 0);
    number(map, "key_latency", direction.keyLatency, 0);
  }

  void number(YamlMap& map, const char* key, double& value, double least) {
    map.require(key);
    value = map.readDouble(key, value);
    if (!(value >= least)) {
      map.fail(key, absl::StrCat("'", map.pathOf(key), "' must be ", least, " or more"));
    }
  }

  void share(YamlMap& map, const char* key, double& value) {
    map.require(key);
    value = map.readDouble(key, value);
    if (!(value > 0 && value <= 1)) {
      map.fail(key, absl::StrCat("'", map.pathOf(key), "' must be a share, above 0 and up to 1"));
    }
  }

  YamlDocument& document_;
  Efficiency efficiency_;
};

}  // namespace

std::vector<EfficiencyNumber> efficiencyNumbers(Efficiency& efficiency) {
  return {{"processors", &efficiency.processors},
          {"products.half", &efficiency.halfShare},
          {"products.float", &efficiency.floatShare},
          {"products.depth_latency", &efficiency.depthLatency},
          {"products.tile", &efficiency.tile},
          {"attention.rows", &efficiency.attentionRows},
          {"attention.forward.share", &efficiency.forward.share},
          {"attention.forward.score", &efficiency.forward.score},
          {"attention.forward.key_latency", &efficiency.forward.keyLatency},
          {"attention.backward.share", &efficiency.backward.share},
          {"attention.backward.score", &efficiency.backward.score},
          {"attention.backward.key_latency", &efficiency.backward.keyLatency},
          {"memory.share", &efficiency.memoryShare},
          {"memory.ramp", &efficiency.memoryRamp},
          {"kernel_floor", &efficiency.kernelFloor},
          {"overlap", &efficiency.overlap}};
}

absl::StatusOr<Efficiency> readEfficiencyText(const std::string& text, const std::string& name) {
  YamlDocument document(text, name);
  if (document.ok() && !document.root().IsMap()) {
    document.fail(document.root().Mark(),
                  "an efficiency must be a mapping of keys to values, e.g. `processors: 132`");
  }
  if (!document.ok()) return document.status();
  Efficiency efficiency = readEfficiency(&document, document.root(), "");
  if (!document.ok()) return document.status();
  efficiency.name = name;
  return efficiency;
}

Efficiency readEfficiency(YamlDocument* document, const YAML::Node& node, const std::string& path) {
  return EfficiencyReader(document).read(node, path);
}

std::vector<std::string> efficiencyPresets() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::optional<std::string> efficiencyPresetText(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kPresets), std::end(kPresets),
                                         [&](const Preset& preset) { return preset.name == name; });
  if (found == std::end(kPresets)) return std::nullopt;
  return found->text;
}

absl::StatusOr<Efficiency> findEfficiency(const std::string& fileOrName) {
  if (const std::optional<std::string> text = efficiencyPresetText(fileOrName)) {
    return readEfficiencyText(*text, fileOrName);
  }
  if (!absl::StrContains(fileOrName, '/') && !absl::StrContains(fileOrName, '.')) {
    return absl::NotFoundError(absl::StrCat("there is no file and no efficiency '", fileOrName, "'",
                                            suggestion(fileOrName, efficiencyPresets())));
  }
  absl::StatusOr<std::string> text = readYamlText(fileOrName, "efficiency");
  if (!text.ok()) return text.status();
  return readEfficiencyText(*text, fileOrName);
}

Efficiency efficiencyOfDevice(const std::string& device) {
  const std::string lower = absl::AsciiStrToLower(device);
  for (const Preset& preset : kPresets) {
    if (!absl::StartsWith(lower, preset.name)) continue;
    absl::StatusOr<Efficiency> known = readEfficiencyText(preset.text, preset.name);
    if (known.ok()) return *std::move(known);
  }
  return {};
}

}  // namespace oriel
