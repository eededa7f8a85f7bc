#include "passes/propagate/split_choice.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

namespace {

using ir::ShardingRule;

// How much dearer it is to send a parameter, or its gradient, to another sharding than its own.
constexpr double kParameterPriority = 1000;

// What it costs to do again on other ranks what one could do alone, per byte that the op touches:
// more than to cut a value that is there, far less than to send it.
constexpr double kRepeated = 0.1;

// More than any way to bring the other operands to a sum that is kept where it is.
constexpr double kNever = 1e30;

enum class PassRule { kData, kAll, kNone };

class Choice {
 public:
  Choice(const SplitProblem& problem, const Versions& versions, ReshardPlanner& planner)
      : problem_(problem),
        rule_(problem.rule),
        versions_(versions),
        planner_(planner),
        sizes_(planner.sizes()) {}

  std::vector<SplitCandidate> candidates() {
    std::vector<Proposal> operands, scattered, hints;
    for (size_t i = 0; i < problem_.operands.size(); ++i) {
      operands.push_back({&rule_.operands[i], problem_.wishes[i]});
      if (problem_.scattered[i]) {
        scattered.push_back({&rule_.operands[i], *problem_.scattered[i]});
      }
    }
    for (size_t i = 0; i < problem_.results.size(); ++i) {
      if (problem_.hints[i]) hints.push_back({&rule_.results[i], *problem_.hints[i]});
    }
    auto add = [&](std::initializer_list<llvm::ArrayRef<Proposal>> lists) {
      std::vector<Proposal> proposals;
      for (llvm::ArrayRef<Proposal> list : lists) {
        proposals.insert(proposals.end(), list.begin(), list.end());
      }
      addFactors(combineProposals(rule_, sizes_, proposals));
    };
    add({operands, hints});
    add({hints, operands});
    for (const Proposal& first : operands) add({first, operands, hints});
    for (size_t i = 0; i < operands.size(); ++i) {
      if (problem_.kept[i]) add({operands[i]});
    }
    for (const Proposal& first : scattered) add({first, operands, hints});
    for (const Proposal& last : scattered) add({operands, last, hints});
    add({});
    llvm::stable_sort(
        found_, [](const SplitCandidate& a, const SplitCandidate& b) { return a.cost < b.cost; });
    return std::move(found_);
  }

 private:
  void addFactors(std::vector<AxisList> factors) {
    for (PassRule pass : {PassRule::kData, PassRule::kAll, PassRule::kNone}) {
      OpSplit split{factors, {}};
      addPasses(split, pass);
      if (llvm::any_of(found_, [&](const SplitCandidate& c) { return c.split == split; })) continue;
      double cost = costOf(split);
      found_.push_back({std::move(split), cost});
    }
  }

  bool isData(int axis) const { return llvm::is_contained(problem_.axes->data, axis); }

  void addPasses(OpSplit& split, PassRule pass) const {
    if (pass == PassRule::kNone) return;
    AxisList pending;
    for (mlir::Value operand : problem_.operands) {
      for (int axis : versions_.seen(operand).sum) insertSorted(pending, axis);
    }
    for (int axis : pending) {
      if (pass == PassRule::kData && !isData(axis)) continue;
      bool cut = llvm::any_of(split.factors,
                              [&](const AxisList& axes) { return llvm::is_contained(axes, axis); });
      if (cut) continue;
      for (auto [group, members] : llvm::enumerate(rule_.linear)) {
        if (!isLinear(members, axis)) continue;
        split.passes.push_back({axis, static_cast<unsigned>(group)});
        break;
      }
    }
  }

  // Whether exactly the operands of the group are pending over the axis.
  bool isLinear(llvm::ArrayRef<unsigned> group, int axis) const {
    for (auto [i, operand] : llvm::enumerate(problem_.operands)) {
      bool pending = llvm::is_contained(versions_.seen(operand).sum, axis);
      if (pending != llvm::is_contained(group, static_cast<unsigned>(i))) return false;
    }
    return true;
  }

  double costOf(const OpSplit& split) const {
    double cost = 0;
    llvm::SmallVector<std::pair<mlir::Value, Sharding>> counted;
    for (auto [i, operand] : llvm::enumerate(problem_.operands)) {
      std::pair<mlir::Value, Sharding> need(operand, split.operand(rule_, i));
      if (llvm::is_contained(counted, need)) continue;
      counted.push_back(need);
      const Reshard& way = versions_.way(operand, need.second);
      if (problem_.kept[i] && !way.steps.empty()) cost += kNever;
      cost += costOf(way, versions_.hasView(operand));
    }
    for (auto [i, type] : llvm::enumerate(problem_.results)) cost += resultCost(split, i, type);
    return cost + repetitionCost(split);
  }

  static double costOf(const Reshard& way, bool hasPriority) {
    return hasPriority && way.communicates() ? way.cost * kParameterPriority : way.cost;
  }

  // Of axes that operands are cut by, or would be, and the op is not.
  double repetitionCost(const OpSplit& split) const {
    AxisList unused;
    for (const Sharding& wish : problem_.wishes) {
      for (int axis : wish.cutting()) insertSorted(unused, axis);
    }
    llvm::erase_if(unused, [&](int axis) {
      return llvm::any_of(split.factors,
                          [&](const AxisList& axes) { return llvm::is_contained(axes, axis); });
    });
    double bytes = 0;
    auto add = [&](mlir::RankedTensorType type, const Sharding& sharding) {
      bytes += static_cast<double>(ir::typeBytes(type)) /
               static_cast<double>(sizes_.product(sharding.cutting()));
    };
    for (auto [i, operand] : llvm::enumerate(problem_.operands)) {
      add(llvm::cast<mlir::RankedTensorType>(operand.getType()), split.operand(rule_, i));
    }
    for (auto [i, type] : llvm::enumerate(problem_.results)) add(type, split.result(rule_, i));
    return kRepeated * bytes * (1 - 1.0 / static_cast<double>(sizes_.product(unused)));
  }

  // To complete the result. Sums over the data axes are for free: they are not completed before
  // the update.
  double resultCost(const OpSplit& split, unsigned index, mlir::RankedTensorType type) const {
    Sharding result = split.result(rule_, index);
    double cost = 0;
    if (const std::optional<Sharding>& hint = problem_.hints[index]) {
      Sharding from = result, to = *hint;
      llvm::erase_if(from.sum, [&](int axis) { return isData(axis) || !to.cuts(axis); });
      from.max.clear();
      // Axes of data in the dimensions stay out of it as well.
      if (canBecome(from, to)) {
        cost += costOf(planner_.plan(type, from, to), !to.isReplicated());
      }
      llvm::erase_if(result.sum, [&](int axis) { return to.cuts(axis); });
    }
    llvm::erase_if(result.sum, [&](int axis) { return isData(axis); });
    int64_t ranks = sizes_.product(result.sum) * sizes_.product(result.max);
    if (ranks == 1) return cost;
    auto bytes = static_cast<double>(ir::typeBytes(type)) /
                 static_cast<double>(sizes_.product(result.cutting()));
    return cost + allReduceBytes(bytes, ranks);
  }

  const SplitProblem& problem_;
  const ShardingRule& rule_;
  const Versions& versions_;
  ReshardPlanner& planner_;
  const AxisSizes& sizes_;
  std::vector<SplitCandidate> found_;
};

}  // namespace

std::vector<SplitCandidate> splitCandidates(const SplitProblem& problem, const Versions& versions,
                                            ReshardPlanner& planner) {
  return Choice(problem, versions, planner).candidates();
}

}  // namespace oriel
