#include "passes/strategize/cluster_attribute.h"

#include "mlir/IR/Builders.h"

namespace oriel {

namespace {

constexpr char kCluster[] = "oriel.cluster";
constexpr char kHalfFlops[] = "half_flops";
constexpr char kFloatFlops[] = "float_flops";
constexpr char kMemoryBandwidth[] = "memory_bandwidth";
constexpr char kLinks[] = "links";
constexpr char kDevices[] = "devices";
constexpr char kBandwidth[] = "bandwidth";
constexpr char kLatency[] = "latency";

double number(mlir::DictionaryAttr attribute, llvm::StringRef name) {
  auto value = attribute.getAs<mlir::FloatAttr>(name);
  return value ? value.getValueAsDouble() : 0;
}

mlir::DictionaryAttr clusterOf(mlir::Operation* op) {
  for (; op; op = op->getParentOp()) {
    if (auto cluster = op->getAttrOfType<mlir::DictionaryAttr>(kCluster)) return cluster;
  }
  return {};
}

}  // namespace

void setCluster(mlir::ModuleOp module, const Cluster& cluster) {
  mlir::Builder builder(module.getContext());
  auto named = [&](const char* name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  };
  const PeakRates& flops = cluster.device.flops;
  const double wide = flops.f32.value_or(0);
  std::vector<mlir::Attribute> links;
  for (const LinkLevel& level : cluster.links) {
    links.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(kDevices, builder.getI64IntegerAttr(level.devices)),
         named(kBandwidth, level.usableBandwidth()), named(kLatency, level.latency)}));
  }
  module->setAttr(kCluster, builder.getDictionaryAttr(
                                {named(kHalfFlops, flops.bf16.value_or(flops.f16.value_or(wide))),
                                 named(kFloatFlops, wide),
                                 named(kMemoryBandwidth, cluster.device.memoryBandwidth),
                                 builder.getNamedAttr(kLinks, builder.getArrayAttr(links))}));
}

std::optional<DeviceRates> deviceRatesOf(mlir::Operation* op) {
  mlir::DictionaryAttr cluster = clusterOf(op);
  if (!cluster) return std::nullopt;
  return DeviceRates{number(cluster, kHalfFlops), number(cluster, kFloatFlops),
                     number(cluster, kMemoryBandwidth)};
}

std::vector<LinkLevel> linkLevelsOf(mlir::Operation* op) {
  std::vector<LinkLevel> levels;
  mlir::DictionaryAttr cluster = clusterOf(op);
  auto links = cluster ? cluster.getAs<mlir::ArrayAttr>(kLinks) : mlir::ArrayAttr();
  if (!links) return levels;
  for (auto link : links.getAsRange<mlir::DictionaryAttr>()) {
    LinkLevel level;
    if (auto devices = link.getAs<mlir::IntegerAttr>(kDevices)) level.devices = devices.getInt();
    level.bandwidth = number(link, kBandwidth);
    level.latency = number(link, kLatency);
    levels.push_back(level);
  }
  return levels;
}

}  // namespace oriel
