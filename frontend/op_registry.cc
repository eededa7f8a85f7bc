#include "frontend/op_registry.h"

#include <algorithm>

#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "onnx/onnx_pb.h"

namespace oriel {
namespace {

// "ai.onnx" is an alias of the empty domain.
llvm::StringRef canonical(llvm::StringRef domain) {
  return domain == "ai.onnx" ? llvm::StringRef() : domain;
}

}  // namespace

const OpRegistry& OpRegistry::standard() {
  static const OpRegistry* registry = [] {
    auto* built = new OpRegistry;
    registerActivationOps(*built);
    registerAttentionOps(*built);
    registerConstantOps(*built);
    registerContribAttention(*built);
    registerConvOps(*built);
    registerDropout(*built);
    registerEinsum(*built);
    registerElementwiseOps(*built);
    registerFoldOps(*built);
    registerFourierOps(*built);
    registerGridSample(*built);
    registerIndexingOps(*built);
    registerLinearAttention(*built);
    registerLinearOps(*built);
    registerLosses(*built);
    registerMaskingOps(*built);
    registerNormalizationOps(*built);
    registerPad(*built);
    registerPoolOps(*built);
    registerRecurrentOps(*built);
    registerReduceOps(*built);
    registerResize(*built);
    registerRotaryEmbedding(*built);
    registerScatterOps(*built);
    registerSequenceOps(*built);
    registerShapeOps(*built);
    return built;
  }();
  return *registry;
}

void OpRegistry::add(llvm::StringRef op, int64_t sinceVersion, NodeHandler handler,
                     llvm::StringRef domain) {
  handlers_[{domain.str(), op.str()}][sinceVersion] = handler;
}

void OpRegistry::takeOver(const OpRegistry& before) {
  for (auto& [key, own] : handlers_) {
    const auto known = before.handlers_.find(key);
    if (known == before.handlers_.end()) continue;
    bool isTaken = false;
    for (auto entry = own.begin(); entry != own.end();) {
      const auto old = known->second.find(entry->first);
      const bool isOld = old != known->second.end() && old->second == entry->second;
      isTaken |= !isOld;
      entry = isTaken && isOld ? own.erase(entry) : std::next(entry);
    }
  }
}

void OpRegistry::addConstantOperands(llvm::StringRef op, llvm::ArrayRef<unsigned> operands,
                                     llvm::StringRef domain) {
  constantOperands_[{domain.str(), op.str()}].insert(operands.begin(), operands.end());
}

bool OpRegistry::isConstantOperand(llvm::StringRef domain, llvm::StringRef op,
                                   unsigned operand) const {
  auto found = constantOperands_.find({canonical(domain).str(), op.str()});
  return found != constantOperands_.end() && found->second.count(operand) > 0;
}

bool OpRegistry::leavesToBody(const onnx::NodeProto& node) const {
  auto found = leftToBody_.find(node.op_type());
  return canonical(node.domain()).empty() && found != leftToBody_.end() && found->second(node);
}

bool OpRegistry::takesSequences(llvm::StringRef domain, llvm::StringRef op) const {
  return canonical(domain).empty() && takeSequences_.count(op.str()) > 0;
}

NodeHandler OpRegistry::find(llvm::StringRef domain, llvm::StringRef op, int64_t version) const {
  domain = canonical(domain);
  auto found = handlers_.find({domain.str(), op.str()});
  if (found == handlers_.end()) {
    return nullptr;
  }
  const auto& byVersion = found->second;
  if (!domain.empty() && version == 0) {
    return byVersion.rbegin()->second;
  }
  auto later = byVersion.upper_bound(version);
  return later == byVersion.begin() ? nullptr : std::prev(later)->second;
}

std::string OpRegistry::nameOf(const Key& key) {
  return key.first.empty() ? key.second : key.first + "::" + key.second;
}

std::string OpRegistry::nearest(llvm::StringRef op) const {
  std::string best;
  unsigned bestDistance = std::max<size_t>(1, op.size() / 3) + 1;
  for (const auto& [key, unused] : handlers_) {
    if (key.first == kOrielDomain) {
      continue;
    }
    unsigned distance = op.edit_distance_insensitive(key.second);
    if (distance < bestDistance) {
      bestDistance = distance;
      best = nameOf(key);
    }
  }
  return best;
}

std::vector<std::string> OpRegistry::names() const {
  std::vector<std::string> names;
  for (const auto& [key, unused] : handlers_) {
    if (key.first == kOrielDomain) {
      continue;
    }
    names.push_back(nameOf(key));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<int64_t> OpRegistry::versions(llvm::StringRef name) const {
  size_t split = name.rfind("::");
  Key key = split == llvm::StringRef::npos
                ? Key("", name.str())
                : Key(name.take_front(split).str(), name.drop_front(split + 2).str());
  std::vector<int64_t> versions;
  if (auto found = handlers_.find(key); found != handlers_.end()) {
    for (const auto& [version, unused] : found->second) {
      versions.push_back(version);
    }
  }
  return versions;
}

}  // namespace oriel
