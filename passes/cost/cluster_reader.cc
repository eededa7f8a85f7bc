#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "passes/config/quantity.h"
#include "passes/config/suggest.h"
#include "passes/config/yaml_reader.h"
#include "passes/cost/cluster.h"
#include "passes/cost/efficiency_yaml.h"

namespace oriel {

namespace {

constexpr int64_t kMaxNodes = int64_t{1} << 20;

class ClusterReader {
 public:
  ClusterReader(const std::string& text, const std::string& name) : document_(text, name) {
    cluster_.name = name;
  }

  absl::StatusOr<Cluster> read() {
    if (document_.ok() && !document_.root().IsMap()) {
      document_.fail(document_.root().Mark(),
                     "a cluster must be a mapping of keys to values, e.g. `devices_per_node: 8`");
    }
    if (!document_.ok()) return document_.status();
    YamlMap root(&document_, document_.root(), "",
                 {"nodes", "devices_per_node", "device", "links"});
    for (const char* key : {"devices_per_node", "device", "links"}) root.require(key);
    cluster_.nodes = root.readInt("nodes", 1, 1, kMaxNodes);
    cluster_.devicesPerNode = root.readInt("devices_per_node", 1, 1, kMaxRanks);
    readDevice(root.node("device"));
    readLinks(root);
    if (!document_.ok()) return document_.status();
    return std::move(cluster_);
  }

 private:
  void readDevice(const YAML::Node& node) {
    YamlMap map(&document_, node, "device",
                {"name", "memory", "reserved", "memory_bandwidth", "flops", "efficiency"});
    for (const char* key : {"memory", "memory_bandwidth", "flops"}) map.require(key);
    ClusterDevice& device = cluster_.device;
    device.name = map.readString("name", "");
    const int64_t all = readBytes(map, "memory", "must be the bytes of a device, e.g. `80 GiB`",
                                  /*least=*/1);
    if (map.has("reserved")) {
      device.reserved = readBytes(map, "reserved", "must be bytes, e.g. `2 GiB`", /*least=*/0);
    }
    if (all > 0 && device.reserved >= all) {
      map.fail("reserved", "'device.reserved' leaves nothing of 'device.memory'");
    }
    device.memory = all - device.reserved;
    device.memoryBandwidth = readQuantity(map, "memory_bandwidth", bytesPerSecond(), 0);
    YamlMap flops(&document_, map.node("flops"), "device.flops", {"bf16", "f16", "f32", "f64"});
    flops.require("f32");
    for (const auto& [key, rate] : {std::pair("bf16", &device.flops.bf16),
                                    {"f16", &device.flops.f16},
                                    {"f32", &device.flops.f32},
                                    {"f64", &device.flops.f64}}) {
      if (flops.has(key)) *rate = readQuantity(flops, key, flopsPerSecond(), 0);
    }
    readReached(map);
  }

  // 0 where that is said to be wrong.
  int64_t readBytes(YamlMap& map, const std::string& key, const std::string& expected,
                    int64_t least) {
    const bool isScalar = map.has(key) && map.node(key).IsScalar();
    const int64_t bytes = isScalar ? bytesIn(map.node(key).Scalar()).value_or(-1) : -1;
    if (bytes >= least) return bytes;
    if (map.has(key)) {
      map.fail(key, absl::StrCat("'device.", key, "' ", expected, "; ", kByteUnits));
    }
    return 0;
  }

  // A name, a file, or what would stand in one.
  void readReached(YamlMap& map) {
    ClusterDevice& device = cluster_.device;
    if (!map.has("efficiency")) {
      device.efficiency = efficiencyOfDevice(device.name);
      return;
    }
    if (map.node("efficiency").IsMap()) {
      device.efficiency =
          readEfficiency(&document_, map.node("efficiency"), map.pathOf("efficiency"));
      device.efficiency.name = "own";
      return;
    }
    absl::StatusOr<Efficiency> known = findEfficiency(map.readString("efficiency", ""));
    if (!known.ok()) return map.fail("efficiency", std::string(known.status().message()));
    device.efficiency = *std::move(known);
  }

  void readLinks(YamlMap& root) {
    const YAML::Node node = root.node("links");
    if (!node || !node.IsSequence() || node.size() == 0) {
      return root.fail("links",
                       "'links' must be a list of levels, from the innermost on, e.g. "
                       "`- {name: NVLink, devices: 8, bandwidth: 450 GB/s, latency: 5 us}`");
    }
    int64_t inner = 1;
    for (size_t i = 0; i < node.size(); ++i) {
      YamlMap map(&document_, node[i], absl::StrCat("links[", i, "]"),
                  {"name", "devices", "bandwidth", "latency", "oversubscription", "reached", "ramp",
                   "reduces", "ring", "pair"});
      for (const char* key : {"bandwidth", "latency"}) map.require(key);
      LinkLevel level;
      level.name = map.readString("name", absl::StrCat("level ", i));
      level.bandwidth = readQuantity(map, "bandwidth", bytesPerSecond(), 0);
      level.latency = readQuantity(map, "latency", seconds(), 0);
      level.oversubscription = map.readDouble("oversubscription", 1);
      if (!(level.oversubscription >= 1)) {
        map.fail("oversubscription",
                 absl::StrCat("'", map.pathOf("oversubscription"), "' must be 1 or more"));
      }
      level.reached = readShare(map, "reached", level.reached);
      level.reduces = readShare(map, "reduces", level.reduces);
      level.ring = map.readBool("ring", false);
      level.ramp = readQuantity(map, "ramp", seconds(), 0);
      level.pair = readQuantity(map, "pair", bytesPerSecond(), 0);
      if (level.pair > level.bandwidth) {
        map.fail("pair", absl::StrCat("'", map.pathOf("pair"),
                                      "' must be at most the level's bandwidth, which is that of "
                                      "all links of a device together"));
      }
      const bool isLast = i + 1 == node.size();
      level.devices = map.readInt("devices", isLast ? cluster_.devices() : 0, 1);
      if (!isLast && !map.has("devices")) {
        map.fail("devices", absl::StrCat("'", map.pathOf("devices"),
                                         "' is missing: how many devices the level joins; "
                                         "only the last joins all without saying so"));
      }
      if (level.devices % inner != 0) {
        map.fail("devices",
                 absl::StrCat("'", map.pathOf("devices"), "' must be a multiple of the ", inner,
                              " devices that the level below joins, not ", level.devices));
      }
      const int64_t ofNode = cluster_.devicesPerNode;
      const bool areSound = ofNode > 0 && level.devices > 0;  // else an error is there
      if (!isLast && areSound && level.devices % ofNode != 0 && ofNode % level.devices != 0) {
        map.fail("devices",
                 absl::StrCat("'", map.pathOf("devices"), "' must divide the ", ofNode,
                              " devices of a node, or be a multiple of them, not ", level.devices));
      }
      if (isLast && level.devices < cluster_.devices()) {
        map.fail("devices",
                 absl::StrCat("the last level joins ", level.devices, " devices, but there are ",
                              cluster_.devices(), ": add a level, or leave 'devices' out"));
      }
      inner = std::max<int64_t>(level.devices, 1);
      cluster_.links.push_back(std::move(level));
      if (!document_.ok()) return;
    }
  }

  static double readShare(YamlMap& map, const std::string& key, double fallback) {
    const double share = map.readDouble(key, fallback);
    if (map.has(key) && !(share > 0 && share <= 1)) {
      map.fail(key, absl::StrCat("'", map.pathOf(key),
                                 "' must be a share of the bandwidth, above 0 and up to 1"));
    }
    return share;
  }

  YamlDocument document_;
  Cluster cluster_;
};

struct Preset {
  const char* name;
  const char* text;
};

// clusters/*.yaml
constexpr Preset kPresets[] = {
#include "passes/cost/cluster_presets.inc"
};

}  // namespace

DeviceRates ClusterDevice::rates() const {
  const double wide = flops.f32.value_or(0);
  return {flops.bf16.value_or(flops.f16.value_or(wide)), wide, memoryBandwidth};
}

Cluster Cluster::withNodes(int64_t count) const {
  Cluster other = *this;
  other.nodes = count;
  if (!links.empty()) {
    other.links.back().devices = std::max(links.back().devices, other.devices());
  }
  return other;
}

absl::StatusOr<Cluster> readClusterText(const std::string& text, const std::string& name) {
  return ClusterReader(text, name).read();
}

std::vector<std::string> clusterPresets() {
  std::vector<std::string> names;
  for (const Preset& preset : kPresets) names.emplace_back(preset.name);
  return names;
}

std::optional<std::string> clusterPresetText(const std::string& name) {
  const auto* const found = std::find_if(std::begin(kPresets), std::end(kPresets),
                                         [&](const Preset& preset) { return preset.name == name; });
  if (found == std::end(kPresets)) return std::nullopt;
  return found->text;
}

absl::StatusOr<Cluster> findCluster(const std::string& fileOrName) {
  const size_t colon = fileOrName.find(':');
  const std::string name = fileOrName.substr(0, colon);
  if (const std::optional<std::string> text = clusterPresetText(name)) {
    absl::StatusOr<Cluster> cluster = readClusterText(*text, name);
    if (!cluster.ok() || colon == std::string::npos) return cluster;
    int64_t nodes = 0;
    if (!absl::SimpleAtoi(fileOrName.substr(colon + 1), &nodes) || nodes < 1 || nodes > kMaxNodes) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", fileOrName, "' must be a cluster's name and its nodes, from 1 to ",
                       kMaxNodes, ", e.g. ", name, ":4"));
    }
    cluster->name = fileOrName;
    return cluster->withNodes(nodes);
  }
  if (!absl::StrContains(fileOrName, '/') && !absl::StrContains(fileOrName, '.')) {
    return absl::NotFoundError(absl::StrCat("there is no file and no cluster '", name, "'",
                                            suggestion(name, clusterPresets())));
  }
  absl::StatusOr<std::string> text = readYamlText(fileOrName, "cluster");
  if (!text.ok()) return text.status();
  return readClusterText(*text, fileOrName);
}

const Cluster& defaultCluster() {
  static const Cluster cluster = findCluster("h100").value().withNodes(kMaxNodes);
  return cluster;
}

}  // namespace oriel
