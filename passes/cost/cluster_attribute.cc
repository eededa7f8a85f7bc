#include "passes/cost/cluster_attribute.h"

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
constexpr char kReached[] = "reached";
constexpr char kRamp[] = "ramp";
constexpr char kReduces[] = "reduces";
constexpr char kPair[] = "pair";
constexpr char kRing[] = "ring";
constexpr char kEfficiency[] = "efficiency";
constexpr char kStack[] = "oriel.stack";
constexpr char kCachesMemory[] = "caches_memory";
constexpr char kCapacity[] = "capacity";
constexpr char kStepGradients[] = "step_gradients";
constexpr char kKeepsGradients[] = "keeps_gradients";
constexpr char kKeepsOutputs[] = "keeps_outputs";
constexpr char kKernelOverhead[] = "kernel_overhead";
constexpr char kPointwise[] = "pointwise";
constexpr char kOverlap[] = "overlap";
constexpr char kAttention[] = "attention";

double number(mlir::DictionaryAttr attribute, llvm::StringRef name, double fallback = 0) {
  auto value = attribute.getAs<mlir::FloatAttr>(name);
  return value ? value.getValueAsDouble() : fallback;
}

// Of the op or of one around it.
mlir::DictionaryAttr attributeOf(mlir::Operation* op, llvm::StringRef name) {
  for (; op; op = op->getParentOp()) {
    if (auto attribute = op->getAttrOfType<mlir::DictionaryAttr>(name)) return attribute;
  }
  return {};
}

mlir::DictionaryAttr clusterOf(mlir::Operation* op) { return attributeOf(op, kCluster); }

}  // namespace

void setCluster(mlir::ModuleOp module, const Cluster& cluster) {
  mlir::Builder builder(module.getContext());
  auto named = [&](const char* name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  };
  const DeviceRates rates = cluster.device.rates();
  Efficiency efficiency = cluster.device.efficiency;
  std::vector<mlir::NamedAttribute> reached;
  for (const EfficiencyNumber& each : efficiencyNumbers(efficiency)) {
    reached.push_back(named(each.name, *each.value));
  }
  std::vector<mlir::Attribute> links;
  for (const LinkLevel& level : cluster.links) {
    links.push_back(builder.getDictionaryAttr(
        {builder.getNamedAttr(kDevices, builder.getI64IntegerAttr(level.devices)),
         named(kBandwidth, level.usableBandwidth()), named(kLatency, level.latency),
         named(kReached, level.reached), named(kRamp, level.ramp), named(kReduces, level.reduces),
         named(kPair, level.pair), builder.getNamedAttr(kRing, builder.getBoolAttr(level.ring))}));
  }
  module->setAttr(kCluster,
                  builder.getDictionaryAttr(
                      {named(kHalfFlops, rates.halfFlops), named(kFloatFlops, rates.floatFlops),
                       named(kMemoryBandwidth, rates.bytes),
                       builder.getNamedAttr(kLinks, builder.getArrayAttr(links)),
                       builder.getNamedAttr(kEfficiency, builder.getDictionaryAttr(reached))}));
}

Efficiency efficiencyOf(mlir::Operation* op) {
  mlir::DictionaryAttr cluster = clusterOf(op);
  if (!cluster) return defaultCluster().device.efficiency;
  Efficiency efficiency;
  auto numbers = cluster.getAs<mlir::DictionaryAttr>(kEfficiency);
  if (!numbers) return efficiency;
  for (const EfficiencyNumber& each : efficiencyNumbers(efficiency)) {
    *each.value = number(numbers, each.name, *each.value);
  }
  return efficiency;
}

DeviceRates deviceRatesOf(mlir::Operation* op) {
  mlir::DictionaryAttr cluster = clusterOf(op);
  if (!cluster) return defaultCluster().device.rates();
  return {number(cluster, kHalfFlops), number(cluster, kFloatFlops),
          number(cluster, kMemoryBandwidth)};
}

std::vector<LinkLevel> linkLevelsOf(mlir::Operation* op) {
  mlir::DictionaryAttr cluster = clusterOf(op);
  if (!cluster) return defaultCluster().links;
  std::vector<LinkLevel> levels;
  auto links = cluster.getAs<mlir::ArrayAttr>(kLinks);
  if (!links) return levels;
  for (auto link : links.getAsRange<mlir::DictionaryAttr>()) {
    LinkLevel level;
    if (auto devices = link.getAs<mlir::IntegerAttr>(kDevices)) level.devices = devices.getInt();
    level.bandwidth = number(link, kBandwidth);
    level.latency = number(link, kLatency);
    level.reached = number(link, kReached, level.reached);
    level.ramp = number(link, kRamp);
    level.reduces = number(link, kReduces);
    level.pair = number(link, kPair);
    if (auto ring = link.getAs<mlir::BoolAttr>(kRing)) level.ring = ring.getValue();
    levels.push_back(level);
  }
  return levels;
}

void setSoftwareStack(mlir::ModuleOp module, const SoftwareStack& stack) {
  mlir::Builder builder(module.getContext());
  auto named = [&](const char* name, double value) {
    return builder.getNamedAttr(name, builder.getF64FloatAttr(value));
  };
  const SoftwareMemory& memory = stack.memory;
  auto flag = [&](const char* name, bool value) {
    return builder.getNamedAttr(name, builder.getBoolAttr(value));
  };
  auto integer = [&](const char* name, int64_t value) {
    return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
  };
  module->setAttr(
      kStack, builder.getDictionaryAttr(
                  {named(kKernelOverhead, stack.kernelOverhead), named(kPointwise, stack.pointwise),
                   named(kOverlap, stack.overlap), named(kAttention, stack.attention),
                   flag(kCachesMemory, memory.isCached), integer(kCapacity, memory.capacity),
                   integer(kStepGradients, static_cast<int64_t>(memory.stepGradients)),
                   flag(kKeepsGradients, memory.keepsGradients),
                   flag(kKeepsOutputs, memory.keepsOutputs)}));
}

SoftwareStack softwareStackOf(mlir::Operation* op) {
  SoftwareStack stack;
  mlir::DictionaryAttr attribute = attributeOf(op, kStack);
  if (!attribute) return stack;
  stack.kernelOverhead = number(attribute, kKernelOverhead);
  stack.pointwise = number(attribute, kPointwise);
  stack.overlap = number(attribute, kOverlap);
  stack.attention = number(attribute, kAttention);
  auto flag = [&](const char* name) {
    auto value = attribute.getAs<mlir::BoolAttr>(name);
    return value && value.getValue();
  };
  stack.memory.isCached = flag(kCachesMemory);
  stack.memory.keepsGradients = flag(kKeepsGradients);
  stack.memory.keepsOutputs = flag(kKeepsOutputs);
  if (auto capacity = attribute.getAs<mlir::IntegerAttr>(kCapacity)) {
    stack.memory.capacity = capacity.getInt();
  }
  if (auto gradients = attribute.getAs<mlir::IntegerAttr>(kStepGradients)) {
    stack.memory.stepGradients = static_cast<StepGradients>(gradients.getInt());
  }
  return stack;
}

}  // namespace oriel
