#include "passes/propagate/joined_sums.h"

#include "ir/interfaces/interfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "mlir/IR/OpDefinition.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::OpOperand;
using mlir::Value;

// How far a look goes: ops behind a value; in front of what it is added to, levels of ops, and ops
// on all of them. What is further counts as not pending.
constexpr int kMaxBehind = 16;
constexpr int kMaxBefore = 8;
constexpr int kMaxGuesses = 64;

// The only use of a value by an op; null if there is none, or are more. Returns don't count: a
// stash is handed on pending, and an output is completed there anyway.
OpOperand* onlyUse(Value value) {
  OpOperand* only = nullptr;
  for (OpOperand& use : value.getUses()) {
    if (use.getOwner()->hasTrait<mlir::OpTrait::IsTerminator>()) continue;
    if (only) return nullptr;
    only = &use;
  }
  return only;
}

// The operands of the user that have to be pending where this one is, for the result to be; none if
// the op is not linear in it.
std::optional<llvm::SmallVector<Value>> summedWith(OpOperand& operand) {
  Operation* user = operand.getOwner();
  if (!llvm::isa<ir::ShardableOpInterface>(user) || user->getNumResults() != 1) return std::nullopt;
  const ir::ShardingRule rule = ruleOf(user);
  const auto group = llvm::find_if(rule.linear, [&](llvm::ArrayRef<unsigned> members) {
    return llvm::is_contained(members, operand.getOperandNumber());
  });
  if (group == rule.linear.end()) return std::nullopt;
  llvm::SmallVector<Value> others;
  for (unsigned member : *group) {
    if (member != operand.getOperandNumber()) others.push_back(user->getOperand(member));
  }
  return others;
}

void intersect(AxisList& axes, const AxisList& others) {
  llvm::erase_if(axes, [&](int axis) { return !llvm::is_contained(others, axis); });
}

void insertAll(AxisList& axes, const AxisList& others) {
  for (int axis : others) insertSorted(axes, axis);
}

}  // namespace

AxisList JoinedSums::joinedAxes(Value value) {
  opsLeft_ = kMaxGuesses;
  AxisList sum, possible = llvm::to_vector<2>(llvm::seq(planner_.sizes().count()));
  for (int i = 0; i < kMaxBehind; ++i) {
    OpOperand* use = onlyUse(value);
    if (!use) break;
    const std::optional<llvm::SmallVector<Value>> others = summedWith(*use);
    if (!others) break;
    AxisList left = possible, more = sum;
    for (Value other : *others) {
      Expected expected = expect(other, kMaxBefore);
      intersect(left, expected.possible);
      insertAll(more, expected.sum);
    }
    // Whatever is pending is completed here.
    if (left.empty()) break;
    possible = std::move(left);
    sum = std::move(more);
    value = use->getOwner()->getResult(0);
  }
  for (Value guess : guesses_) versions_.forget(guess);
  guesses_.clear();
  outOfReach_.clear();
  intersect(sum, possible);
  return sum;
}

JoinedSums::Expected JoinedSums::expect(Value value, int depth) {
  if (versions_.isDefined(value)) {
    const AxisList& sum = versions_.seen(value).sum;
    return {sum, sum};
  }
  Operation* op = value.getDefiningOp();
  const std::optional<std::vector<SplitCandidate>> ways = candidates(op, depth);
  if (!ways) return {};
  const unsigned index = llvm::cast<mlir::OpResult>(value).getResultNumber();
  // At what price does not matter here: if none of them is the cheapest, this guess was wrong, and
  // the value is completed by itself.
  Expected expected{ways->front().results[index].sum, {}};
  for (const SplitCandidate& way : *ways) insertAll(expected.possible, way.results[index].sum);
  return expected;
}

// Whether it is, or can be guessed.
bool JoinedSums::define(Value value, int depth) {
  if (versions_.isDefined(value)) return true;
  Operation* op = value.getDefiningOp();
  const std::optional<std::vector<SplitCandidate>> ways = candidates(op, depth);
  if (!ways) return false;
  for (auto [result, sharding] : llvm::zip_equal(op->getResults(), ways->front().results)) {
    versions_.define(result, sharding);
    guesses_.push_back(result);
  }
  return true;
}

// Null for what is not split, or too far.
std::optional<std::vector<SplitCandidate>> JoinedSums::candidates(Operation* op, int depth) {
  if (!op) return std::nullopt;
  const auto known = outOfReach_.find(op);
  if (known != outOfReach_.end() && known->second >= depth) return std::nullopt;
  const bool isNear =
      depth > 0 && llvm::isa<ir::ShardableOpInterface>(op) &&
      llvm::all_of(op->getOperands(), [&](Value operand) { return define(operand, depth - 1); });
  if (!isNear) {
    outOfReach_[op] = depth;
    return std::nullopt;
  }
  if (--opsLeft_ < 0) return std::nullopt;
  return splitCandidates(problemOf_(op), versions_, planner_);
}

}  // namespace oriel
