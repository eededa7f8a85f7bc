#include "passes/train/segment_builder.h"

#include <algorithm>
#include <numeric>
#include <tuple>

using namespace mlir;

namespace oriel {
namespace {

using ir::ValueKind;
using ir::ValueRole;

// Order of the arguments and results of every segment.
int kindOrder(ValueKind kind) {
  switch (kind) {
    case ValueKind::kStash:
      return 0;
    case ValueKind::kInput:
      return 1;
    case ValueKind::kParameter:
      return 2;
    case ValueKind::kOptimizerState:
      return 3;
    case ValueKind::kGradient:
      return 4;
    case ValueKind::kAccumulator:
      return 5;
    case ValueKind::kScalar:
      return 6;
    case ValueKind::kOutput:
      return 7;
  }
  return 8;
}

func::FuncOp createFunction(ModuleOp module, StringRef name, Location loc) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  return func::FuncOp::create(builder, loc, name, builder.getFunctionType({}, {}));
}

// The permutation that sorts `roles`.
SmallVector<unsigned> sortedOrder(ArrayRef<ValueRole> roles,
                                  const llvm::StringMap<unsigned>& rank) {
  SmallVector<unsigned> order(roles.size());
  std::iota(order.begin(), order.end(), 0u);
  auto key = [&](unsigned i) {
    return std::make_tuple(kindOrder(roles[i].kind), rank.lookup(roles[i].ref));
  };
  llvm::stable_sort(order, [&](unsigned a, unsigned b) { return key(a) < key(b); });
  return order;
}

}  // namespace

SegmentBuilder::SegmentBuilder(ModuleOp module, StringRef name, Location loc)
    : function_(createFunction(module, name, loc)),
      block_(function_.addEntryBlock()),
      builder_(OpBuilder::atBlockEnd(block_)) {}

Value SegmentBuilder::argument(const ValueRole& role, Type type, Location loc) {
  if (Value known = find(role)) return known;
  arguments_[role] = argumentRoles_.size();
  argumentRoles_.push_back(role);
  return block_->addArgument(type, loc);
}

Value SegmentBuilder::find(const ValueRole& role) const {
  auto it = arguments_.find(role);
  return it == arguments_.end() ? Value() : block_->getArgument(it->second);
}

const ValueRole& SegmentBuilder::roleOf(BlockArgument argument) const {
  return argumentRoles_[argument.getArgNumber()];
}

void SegmentBuilder::addResult(Value value, const ValueRole& role) {
  results_.emplace_back(value, role);
}

bool SegmentBuilder::hasResult(const ValueRole& role) const {
  return llvm::any_of(results_, [&](const auto& result) { return result.second == role; });
}

func::FuncOp SegmentBuilder::finish(const llvm::StringMap<unsigned>& rank) {
  unsigned count = block_->getNumArguments();
  SmallVector<ValueRole> argumentRoles;
  SmallVector<Type> argumentTypes, resultTypes;
  llvm::DenseMap<Value, Value> moved;
  for (unsigned i : sortedOrder(argumentRoles_, rank)) {
    BlockArgument old = block_->getArgument(i);
    BlockArgument sorted = block_->addArgument(old.getType(), old.getLoc());
    old.replaceAllUsesWith(sorted);
    moved[old] = sorted;
    argumentRoles.push_back(argumentRoles_[i]);
    argumentTypes.push_back(sorted.getType());
  }
  for (auto& result : results_) {
    if (Value sorted = moved.lookup(result.first)) result.first = sorted;
  }
  block_->eraseArguments(0, count);
  argumentRoles_ = std::move(argumentRoles);
  for (auto [i, role] : llvm::enumerate(argumentRoles_)) arguments_[role] = i;

  SmallVector<ValueRole> resultRoles, sortedRoles;
  SmallVector<Value> values;
  for (auto& result : results_) resultRoles.push_back(result.second);
  for (unsigned i : sortedOrder(resultRoles, rank)) {
    values.push_back(results_[i].first);
    resultTypes.push_back(results_[i].first.getType());
    sortedRoles.push_back(resultRoles[i]);
  }
  func::ReturnOp::create(builder_, function_.getLoc(), values);
  function_.setFunctionType(builder_.getFunctionType(argumentTypes, resultTypes));
  ir::setArgumentRoles(function_, argumentRoles_);
  ir::setResultRoles(function_, sortedRoles);
  return function_;
}

}  // namespace oriel
