#include "passes/propagate/versions.h"

#include "ir/interfaces/tensor_type.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

bool canBecome(const Sharding& from, const Sharding& to) {
  auto within = [](const AxisList& axes, const AxisList& all) {
    return llvm::all_of(axes, [&](int axis) { return llvm::is_contained(all, axis); });
  };
  return within(to.sum, from.sum) && within(to.max, from.max);
}

void Versions::define(mlir::Value value, const Sharding& sharding, mlir::Value local) {
  Entry& entry = entries_[value];
  entry.versions = {{sharding, local}};
}

void Versions::set(mlir::Value value, const Sharding& sharding, mlir::Value local) {
  Entry& entry = entries_[value];
  for (Version& version : entry.versions) {
    if (version.sharding == sharding) {
      version.local = local;
      return;
    }
  }
  entry.versions.push_back({sharding, local});
}

mlir::Value Versions::local(mlir::Value value, const Sharding& sharding) const {
  const Version* version = find(entries_.at(value), sharding);
  return version ? version->local : mlir::Value();
}

void Versions::setView(mlir::Value value, const Sharding& view) { entries_[value].view = view; }

const Sharding& Versions::seen(mlir::Value value) const {
  const Entry& entry = entries_.at(value);
  return entry.view ? *entry.view : entry.versions.front().sharding;
}

const Sharding& Versions::settled(mlir::Value value) const {
  const Sharding* best = &seen(value);
  if (!best->isPending()) return *best;
  auto pieces = [&](const Sharding& sharding) {
    return planner_.sizes().product(sharding.cutting());
  };
  for (const Version& version : entries_.at(value).versions) {
    if (version.sharding.isPending()) continue;
    if (best->isPending() || pieces(version.sharding) > pieces(*best)) best = &version.sharding;
  }
  return *best;
}

const Versions::Version* Versions::find(const Entry& entry, const Sharding& sharding) {
  for (const Version& version : entry.versions) {
    if (version.sharding == sharding) return &version;
  }
  return nullptr;
}

const Versions::Version& Versions::source(mlir::Value value, const Entry& entry,
                                          const Sharding& to) const {
  const Version* best = nullptr;
  double bestCost = 0;
  for (const Version& version : entry.versions) {
    if (!canBecome(version.sharding, to)) continue;
    double cost = planner_.plan(ir::tensorType(value), version.sharding, to).cost;
    if (best && bestCost <= cost) continue;
    best = &version;
    bestCost = cost;
  }
  return *best;
}

const Reshard& Versions::way(mlir::Value value, const Sharding& to) const {
  const Entry& entry = entries_.at(value);
  bool startsAtView = entry.view && !find(entry, *entry.view);
  return planner_.plan(ir::tensorType(value),
                       startsAtView ? *entry.view : source(value, entry, to).sharding, to);
}

mlir::Value Versions::take(mlir::Value value, const Sharding& to, Emit emit) {
  Entry& entry = entries_[value];
  if (entry.view && *entry.view != to && !find(entry, *entry.view)) take(value, *entry.view, emit);
  if (const Version* version = find(entry, to)) return version->local;
  Version from = source(value, entry, to);
  for (const ReshardStep& step : planner_.plan(ir::tensorType(value), from.sharding, to).steps) {
    from = {step.result, emit(step, from.local)};
    entry.versions.push_back(from);
  }
  return from.local;
}

}  // namespace oriel
