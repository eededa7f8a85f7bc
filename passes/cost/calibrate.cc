#include "passes/cost/calibrate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <sstream>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "passes/config/yaml_reader.h"

namespace oriel {

namespace {

using Errors = std::function<double()>;

double square(double predicted, double measured) {
  const double error = std::log(predicted / measured);
  return error * error;
}

// Sets the values, one after the other and again, to what makes the error least; each between its
// bounds, on a grid in the logarithm that gets finer around the best.
struct Searched {
  double* value;
  double least, most;
};

void search(const std::vector<Searched>& values, const Errors& error) {
  constexpr int kRounds = 12, kPoints = 13;
  double width = 1;  // of the logarithms of the bounds
  for (int round = 0; round < kRounds; ++round, width *= 0.6) {
    for (const Searched& searched : values) {
      const double range = std::log(searched.most / searched.least) * width;
      const double middle = std::log(*searched.value);
      double best = error(), bestValue = *searched.value;
      for (int i = 0; i < kPoints; ++i) {
        const double at = std::exp(middle + range * (static_cast<double>(i) / (kPoints - 1) - 0.5));
        *searched.value = std::clamp(at, searched.least, searched.most);
        const double now = error();
        if (now < best) {
          best = now;
          bestValue = *searched.value;
        }
      }
      *searched.value = bestValue;
    }
  }
}

double flopsOf(const MatrixProduct& product) {
  return 2.0 * static_cast<double>(product.count * product.rows) *
         static_cast<double>(product.columns * product.depth);
}

double withFloor(const Efficiency& efficiency, double seconds) {
  return std::max(seconds, efficiency.kernelFloor);
}

class Calibration {
 public:
  explicit Calibration(const MachineMeasurements& measured) : measured_(measured) {
    cluster_.name = "measured";
    cluster_.devicesPerNode = measured.ranks;
    cluster_.device.name = "measured";
    cluster_.device.memory = std::max<int64_t>(measured.memory / measured.ranks, 1);
    efficiency_.name = "own";
    efficiency_.processors = 1;
    efficiency_.attentionRows = 64;
    for (AttentionEfficiency* each : {&efficiency_.forward, &efficiency_.backward}) {
      each->keyLatency = 20;
    }
  }

  absl::StatusOr<Cluster> run() {
    if (measured_.bytes.empty() ||
        std::none_of(measured_.products.begin(), measured_.products.end(),
                     [](const auto& each) { return each.product.wide; })) {
      return absl::InvalidArgumentError(
          "a cluster needs measured products of 32 bits and measured bytes");
    }
    fitOverlap();
    fitMemory();
    fitProducts();
    fitAttention();
    fitLinks();
    return cluster_;
  }

 private:
  // Of what could be hidden.
  void fitOverlap() {
    double most = 0, hidden = 0;
    for (const auto& each : measured_.overlaps) {
      most += std::min(each.computing, each.communicating);
      hidden += each.computing + each.communicating - each.both;
    }
    if (most > 0) efficiency_.overlap = std::clamp(hidden / most, 0., 1.);
  }

  void fitMemory() {
    double largest = 0;
    efficiency_.memoryShare = 1;
    efficiency_.kernelFloor = measured_.bytes.front().seconds;
    for (const auto& each : measured_.bytes) {
      largest = std::max(largest, each.bytes / each.seconds);
      efficiency_.kernelFloor = std::min(efficiency_.kernelFloor, each.seconds);
    }
    double& bandwidth = cluster_.device.memoryBandwidth = largest;
    efficiency_.memoryRamp = efficiency_.kernelFloor;
    search({{&bandwidth, largest / 30, largest * 3},
            {&efficiency_.memoryRamp, efficiency_.kernelFloor / 30, efficiency_.kernelFloor * 3}},
           [&] {
             double sum = 0;
             for (const auto& each : measured_.bytes) {
               sum += square(memorySeconds(efficiency_, rates(), each.bytes), each.seconds);
             }
             return sum;
           });
  }

  void fitProducts() {
    PeakRates& flops = cluster_.device.flops;
    for (const auto& each : measured_.products) {
      std::optional<double>& peak = each.product.wide ? flops.f32 : flops.bf16;
      peak = std::max(peak.value_or(0), flopsOf(each.product) / each.seconds);
    }
    efficiency_.halfShare = efficiency_.floatShare = 1;
    const auto error = [&] {
      double sum = 0;
      for (const auto& each : measured_.products) {
        sum += square(withFloor(efficiency_, productSeconds(efficiency_, rates(), each.product)),
                      each.seconds);
      }
      return sum;
    };
    Efficiency best = efficiency_;
    PeakRates bestFlops = flops;
    double least = -1;
    for (const double tile : {1.0, 0.5, 0.25, 0.125, 0.0625}) {
      efficiency_.tile = tile;
      efficiency_.depthLatency = 20;
      const double wide = *bestFlops.f32, half = bestFlops.bf16.value_or(wide);
      flops = bestFlops;
      std::vector<Searched> values = {{&*flops.f32, wide / 4, wide * 2},
                                      {&efficiency_.depthLatency, 0.5, 500}};
      if (flops.bf16) values.push_back({&*flops.bf16, half / 4, half * 2});
      search(values, error);
      const double now = error();
      if (least >= 0 && now >= least) continue;
      least = now;
      best = efficiency_;
      found_ = flops;
    }
    efficiency_ = best;
    flops = found_;
  }

  void fitAttention() {
    for (const bool backward : {false, true}) {
      AttentionEfficiency& direction = backward ? efficiency_.backward : efficiency_.forward;
      direction.share = 0.5;
      direction.score = 100;
      search({{&direction.share, 0.01, 1}, {&direction.score, 1, 3000}}, [&] {
        double sum = 0;
        for (const auto& each : measured_.attention) {
          if (each.work.backward != backward) continue;
          sum += square(withFloor(efficiency_, attentionSeconds(efficiency_, rates(), each.work)),
                        each.seconds);
        }
        return sum;
      });
    }
  }

  void fitLinks() {
    cluster_.device.efficiency = efficiency_;
    LinkLevel level;
    level.name = "measured";
    level.devices = measured_.ranks;
    level.reached = 1;
    level.bandwidth = 1e9;
    level.latency = 1e-5;
    cluster_.links = {level};
    const auto error = [&] {
      double sum = 0;
      for (const auto& each : measured_.collectives) sum += square(seconds(each), each.seconds);
      return sum;
    };
    LinkLevel& link = cluster_.links.front();
    double least = -1;
    for (const bool ring : {false, true}) {
      const LinkLevel before = link;
      link = level;
      link.ring = ring;
      search({{&link.bandwidth, 1e6, 1e12}, {&link.latency, 1e-8, 1}}, error);
      const double now = error();
      if (least >= 0 && now >= least) link = before;
      least = least < 0 ? now : std::min(least, now);
    }
  }

  double seconds(const MachineMeasurements::Collective& each) const {
    std::vector<int64_t> ranks(static_cast<size_t>(each.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    return linkSeconds(cluster_.links, ranks, each.use, each.sentBytes);
  }

  DeviceRates rates() const { return cluster_.device.rates(); }

  const MachineMeasurements& measured_;
  Cluster cluster_;
  Efficiency efficiency_;
  PeakRates found_;
};

class Mean {
 public:
  void add(double predicted, double measured) {
    sum_ += std::abs(predicted / measured - 1);
    ++count_;
  }
  std::string text() const {
    return count_ == 0 ? "none" : absl::StrFormat("%.0f %% of %d", 100 * sum_ / count_, count_);
  }

 private:
  double sum_ = 0;
  int count_ = 0;
};

}  // namespace

absl::StatusOr<Cluster> calibrate(const MachineMeasurements& measurements) {
  return Calibration(measurements).run();
}

std::string calibrationErrors(const Cluster& cluster, const MachineMeasurements& measurements) {
  const Efficiency& efficiency = cluster.device.efficiency;
  const DeviceRates rates = cluster.device.rates();
  Mean products, attention, bytes, collectives;
  for (const auto& each : measurements.products) {
    products.add(withFloor(efficiency, productSeconds(efficiency, rates, each.product)),
                 each.seconds);
  }
  for (const auto& each : measurements.attention) {
    attention.add(withFloor(efficiency, attentionSeconds(efficiency, rates, each.work)),
                  each.seconds);
  }
  for (const auto& each : measurements.bytes) {
    bytes.add(withFloor(efficiency, memorySeconds(efficiency, rates, each.bytes)), each.seconds);
  }
  for (const auto& each : measurements.collectives) {
    std::vector<int64_t> ranks(static_cast<size_t>(each.ranks));
    std::iota(ranks.begin(), ranks.end(), 0);
    collectives.add(linkSeconds(cluster.links, ranks, each.use, each.sentBytes), each.seconds);
  }
  return absl::StrCat("mean error: products ", products.text(), ", attention ", attention.text(),
                      ", bytes ", bytes.text(), ", collectives ", collectives.text());
}

std::string clusterText(const Cluster& cluster) {
  const ClusterDevice& device = cluster.device;
  const Efficiency& e = device.efficiency;
  const auto nanoseconds = [](double seconds) {
    return absl::StrFormat("%.1f ns", std::max(seconds * 1e9, 0.1));
  };
  std::string flops;
  const auto rate = [&](const char* name, const std::optional<double>& value) {
    if (!value) return;
    absl::StrAppend(&flops, flops.empty() ? "" : ", ",
                    absl::StrFormat("%s: %.4g GFLOP/s", name, *value / 1e9));
  };
  rate("bf16", device.flops.bf16);
  rate("f16", device.flops.f16);
  rate("f32", device.flops.f32);
  rate("f64", device.flops.f64);
  const auto direction = [](const AttentionEfficiency& each) {
    return absl::StrFormat("{share: %.4g, score: %.4g, key_latency: %.4g}", each.share, each.score,
                           each.keyLatency);
  };
  std::string text = absl::StrFormat(
      "nodes: %d\n"
      "devices_per_node: %d\n"
      "device:\n"
      "%s"
      "  memory: %d B\n"
      "  memory_bandwidth: %.4g MB/s\n"
      "  flops: {%s}\n"
      "  efficiency:\n"
      "    processors: %.4g\n"
      "    products: {half: %.4g, float: %.4g, depth_latency: %.4g, tile: %.4g}\n"
      "    attention:\n"
      "      rows: %.4g\n"
      "      forward: %s\n"
      "      backward: %s\n"
      "    memory: {share: %.4g, ramp: %s}\n"
      "    kernel_floor: %s\n"
      "    overlap: %.4g\n"
      "links:\n",
      cluster.nodes, cluster.devicesPerNode,
      device.name.empty() ? "" : absl::StrCat("  name: ", device.name, "\n"), device.memory,
      device.memoryBandwidth / 1e6, flops, e.processors, e.halfShare, e.floatShare, e.depthLatency,
      e.tile, e.attentionRows, direction(e.forward), direction(e.backward), e.memoryShare,
      nanoseconds(e.memoryRamp), nanoseconds(e.kernelFloor), e.overlap);
  for (const LinkLevel& level : cluster.links) {
    absl::StrAppend(&text, absl::StrFormat("  - {name: %s, devices: %d, bandwidth: %.4g MB/s, "
                                           "latency: %s, reached: %.4g, ring: %s}\n",
                                           level.name, level.devices, level.bandwidth / 1e6,
                                           nanoseconds(level.latency), level.reached,
                                           level.ring ? "true" : "false"));
  }
  return text;
}

absl::StatusOr<MachineMeasurements> readMeasurements(const std::string& text) {
  MachineMeasurements measured;
  std::istringstream lines(text);
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (line.empty()) continue;
    YamlDocument document(line, absl::StrCat("measurement ", number));
    if (!document.ok()) return document.status();
    YamlMap map(&document, document.root(), "");
    const std::string what = map.readString("measure", "");
    for (const std::string& key : map.keys()) {
      if (key == "measure") continue;
      const double value = map.readDouble(key, 0);
      if (!(value >= 0)) map.fail(key, absl::StrCat("'", key, "' must be 0 or more"));
    }
    const auto integer = [&](const char* key) { return map.readInt(key, 0, 0); };
    const double seconds = map.readDouble("seconds", 0);
    if (what != "machine" && !(seconds > 0)) {
      map.fail("seconds", "a measurement needs its 'seconds'");
    }
    if (what == "machine") {
      measured.ranks = map.readInt("ranks", 1, 1);
      measured.memory = integer("memory");
    } else if (what == "product") {
      MatrixProduct product{1, integer("rows"), integer("columns"), integer("depth")};
      product.operandBytes = product.resultBytes = map.readDouble("element_bytes", 4);
      product.wide = product.operandBytes > 2;
      measured.products.push_back({product, seconds});
    } else if (what == "attention") {
      AttentionWork work;
      work.batch = integer("batch");
      work.heads = work.keyHeads = integer("heads");
      work.queries = work.keys = integer("sequence");
      work.depth = work.valueDepth = integer("depth");
      work.causal = integer("causal") != 0;
      work.backward = integer("backward") != 0;
      work.elementBytes = map.readDouble("element_bytes", 4);
      work.wide = work.elementBytes > 2;
      measured.attention.push_back({work, seconds});
    } else if (what == "bytes") {
      measured.bytes.push_back({map.readDouble("bytes", 0), seconds});
    } else if (what == "overlap") {
      measured.overlaps.push_back(
          {map.readDouble("computing", 0), map.readDouble("communicating", 0), seconds});
    } else {
      const std::map<std::string, LinkUse> uses = {{"all_gather", LinkUse::kGather},
                                                   {"all_reduce", LinkUse::kAllReduce},
                                                   {"all_to_all", LinkUse::kExchange},
                                                   {"transfer", LinkUse::kTransfer}};
      const auto use = uses.find(what);
      if (use == uses.end()) {
        map.fail("measure", absl::StrCat("'", what, "' is no measurement"));
        return document.status();
      }
      measured.collectives.push_back(
          {use->second, map.readInt("ranks", 2, 2), map.readDouble("sent_bytes", 0), seconds});
    }
    if (!document.ok()) return document.status();
  }
  return measured;
}

}  // namespace oriel
