#include "passes/propagate/split_choice.h"

#include <algorithm>

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/tensor_type.h"
#include "llvm/ADT/STLExtras.h"

namespace oriel {

namespace {

using ir::ShardingRule;

// How much dearer it is to send a parameter, or its gradient, to another sharding than its own.
constexpr double kParameterPriority = 1000;

// What it costs to do again on other ranks what one could do alone, per byte that the op touches:
// more than to cut a value that is there, far less than to send it.
constexpr double kRepeated = 0.1;

// Of products and attention, that take as long as to send a byte: 989 TFLOP/s, half of it reached,
// over 450 GB/s (H100). It decides only where positions are exchanged, or not, for any cluster
// alike: shardings follow from the strategy.
constexpr double kFlopsPerByte = 1000;

// What it costs to complete a sum of a gradient, per byte: the update does it, once for all
// microbatches of a step and for all gradients together. A guess: how many microbatches there are
// must not matter, since a simulation has fewer. Of ops that give nothing else: others would hand
// on a pending sum for its sake.
constexpr double kOncePerStep = 1.0 / 8;

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
    // What splits in steps alone does not split by itself, whatever its operands: of the squares of
    // all gradients there are many.
    if (llvm::all_of(rule_.factors, isInSteps)) {
      addFactors(std::vector<AxisList>(rule_.factors.size()));
    } else {
      addProposals();
    }
    llvm::stable_sort(
        found_, [](const SplitCandidate& a, const SplitCandidate& b) { return a.cost < b.cost; });
    return std::move(found_);
  }

 private:
  void addProposals() {
    std::vector<Proposal> operands, scattered, hints, rows, positions;
    for (size_t i = 0; i < problem_.operands.size(); ++i) {
      operands.push_back({&rule_.operands[i], problem_.wishes[i]});
      if (problem_.scattered[i]) {
        scattered.push_back({&rule_.operands[i], *problem_.scattered[i]});
      }
    }
    for (size_t i = 0; i < problem_.results.size(); ++i) {
      if (problem_.hints[i]) hints.push_back({&rule_.results[i], *problem_.hints[i]});
      if (problem_.rows[i]) rows.push_back({&rule_.results[i], *problem_.rows[i]});
      if (problem_.positions[i]) positions.push_back({&rule_.results[i], *problem_.positions[i]});
    }
    auto add = [&](std::initializer_list<llvm::ArrayRef<Proposal>> lists) {
      std::vector<Proposal> proposals;
      for (llvm::ArrayRef<Proposal> list : lists) {
        proposals.insert(proposals.end(), list.begin(), list.end());
      }
      addFactors(combineProposals(rule_, sizes_, proposals));
    };
    add({operands, hints, positions});
    add({hints, operands, positions});
    for (const Proposal& first : operands) {
      if (!first.sharding.cutting().empty()) add({first, operands, hints, positions});
    }
    for (size_t i = 0; i < operands.size(); ++i) {
      if (problem_.kept[i]) add({operands[i]});
    }
    for (const Proposal& first : scattered) add({first, operands, hints, positions});
    for (const Proposal& last : scattered) add({operands, last, hints, positions});
    for (const Proposal& first : rows) add({first, operands, hints, positions});
    for (const Proposal& first : exchanged()) {
      const size_t before = found_.size();
      add({first, withoutContext(operands), hints});
      for (SplitCandidate& own : llvm::drop_begin(found_, before)) own.isExchange = true;
    }
    add({});
  }

  void addFactors(std::vector<AxisList> factors) {
    // Steps have been made where an operand is cut so; what is wished of results is no reason.
    for (auto [axes, factor] : llvm::zip_equal(factors, rule_.factors)) {
      if (isInSteps(factor)) axes.clear();
    }
    for (PassRule pass : {PassRule::kData, PassRule::kAll, PassRule::kNone}) {
      OpSplit split{factors, {}};
      addPasses(split, pass);
      if (llvm::any_of(found_, [&](const SplitCandidate& c) { return c.split == split; })) continue;
      std::vector<Sharding> results;
      for (size_t i = 0; i < problem_.results.size(); ++i) results.push_back(kept(split, i));
      double cost = costOf(split, results);
      found_.push_back({std::move(split), std::move(results), /*isExchange=*/false, cost});
    }
  }

  static bool isInSteps(const ir::Factor& factor) { return factor.kind == ir::FactorKind::kSteps; }
  bool isContext(int axis) const { return llvm::is_contained(problem_.axes->context, axis); }

  // Of operands whose positions are cut, where the op needs all of them: the same with another
  // dimension cut instead (DeepSpeed-Ulysses, Jacobs et al. 2023, has heads for positions).
  std::vector<Proposal> exchanged() const {
    std::vector<Proposal> proposals;
    for (auto [i, wish] : llvm::enumerate(problem_.wishes)) {
      for (auto [positions, axes] : llvm::enumerate(wish.dims)) {
        const bool needsAll = rule_.operands[i][positions].empty();
        if (!needsAll || llvm::none_of(axes, [&](int axis) { return isContext(axis); })) continue;
        for (size_t dim = 0; dim < wish.dims.size(); ++dim) {
          if (dim == positions || rule_.operands[i][dim].empty()) continue;
          Sharding other = wish;
          dropCuts(problem_.axes->context, &other);
          llvm::copy_if(axes, std::back_inserter(other.dims[dim]),
                        [&](int axis) { return isContext(axis); });
          Proposal proposal{&rule_.operands[i], std::move(other)};
          // Steps are made before the op is split, where an operand is cut so already.
          if (wouldCut(rule_, sizes_, proposal, ir::FactorKind::kSteps)) continue;
          proposals.push_back(std::move(proposal));
        }
      }
    }
    return proposals;
  }

  std::vector<Proposal> withoutContext(std::vector<Proposal> proposals) const {
    for (Proposal& proposal : proposals) {
      dropCuts(problem_.axes->context, &proposal.sharding);
    }
    return proposals;
  }

  // Where an op could not be split as its operand of the same type was, the ops behind it still
  // can: a rank keeps its piece, and positions that were exchanged for something else come back.
  Sharding kept(const OpSplit& split, unsigned index) const {
    const Sharding natural = split.result(rule_, index);
    // What is made of nothing is made where it is used, in the pieces that are used.
    if (problem_.operands.empty() || llvm::is_contained(problem_.kept, true)) return natural;
    Sharding result = natural;
    // Sums of gradients are for the update to complete.
    auto isExchanged = [&](int axis) { return isContext(axis) && !problem_.hints[index]; };
    auto keep = [&](const Sharding& wish) {
      for (auto [axes, wished] : llvm::zip_equal(result.dims, wish.dims)) {
        if (!axes.empty()) continue;
        const bool isFree = llvm::all_of(wished, [&](int axis) {
          return !natural.uses(axis) ||
                 (isExchanged(axis) && !llvm::is_contained(natural.max, axis));
        });
        if (!isFree) continue;
        dropCuts(wished, &result);
        llvm::erase_if(result.sum, [&](int axis) { return llvm::is_contained(wished, axis); });
        axes = wished;
      }
    };
    for (auto [operand, wish] : llvm::zip_equal(problem_.operands, problem_.wishes)) {
      if (operand.getType() != problem_.results[index]) continue;
      keep(wish);
      break;
    }
    if (problem_.positions[index]) keep(*problem_.positions[index]);
    // What is pending over others is for the ops behind it to complete.
    const bool isPending = natural.isPending() && result.isPending();
    return isPending || !sizes_.divides(problem_.results[index].getShape(), result) ? natural
                                                                                    : result;
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

  double costOf(const OpSplit& split, llvm::ArrayRef<Sharding> results) const {
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
    for (auto [i, type] : llvm::enumerate(problem_.results)) {
      const Reshard& way = planner_.plan(type, split.result(rule_, i), results[i]);
      cost += way.communicates() ? way.cost : resultCost(split, i, type);
    }
    return cost + repetitionCost(split);
  }

  static double costOf(const Reshard& way, bool hasPriority) {
    return hasPriority && way.communicates() ? way.cost * kParameterPriority : way.cost;
  }

  // Of axes that operands are cut by, or would be, and the op is not.
  double repetitionCost(const OpSplit& split) const {
    AxisList unused;
    auto addCuts = [&](const Sharding& wish) {
      for (int axis : wish.cutting()) insertSorted(unused, axis);
    };
    llvm::for_each(problem_.wishes, addCuts);
    for (const std::optional<Sharding>& wish : problem_.positions) {
      if (wish) addCuts(*wish);
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
      add(ir::tensorType(operand), split.operand(rule_, i));
    }
    for (auto [i, type] : llvm::enumerate(problem_.results)) add(type, split.result(rule_, i));
    const double repeated = 1 - 1.0 / static_cast<double>(sizes_.product(unused));
    llvm::erase_if(unused, [&](int axis) { return !isContext(axis); });
    const double flops = problem_.flops / static_cast<double>(sizes_.product(split.cutting())) *
                         (1 - 1.0 / static_cast<double>(sizes_.product(unused)));
    return kRepeated * bytes * repeated + flops / kFlopsPerByte;
  }

  // To complete the result. Sums over the data axes are for free: they are not completed before
  // the update. So are those of gradients over positions, and sums that join another one.
  double resultCost(const OpSplit& split, unsigned index, mlir::RankedTensorType type) const {
    Sharding result = split.result(rule_, index);
    double cost = 0;
    const std::optional<Sharding>& hint = problem_.hints[index];
    auto isFree = [&](int axis) { return isData(axis) || (hint && isContext(axis)); };
    if (hint) {
      Sharding from = result, to = *hint;
      llvm::erase_if(from.sum, [&](int axis) { return isFree(axis) || !to.cuts(axis); });
      from.max.clear();
      // Axes of data in the dimensions stay out of it as well.
      if (canBecome(from, to)) {
        cost += costOf(planner_.plan(type, from, to), !to.isReplicated());
      }
      llvm::erase_if(result.sum, [&](int axis) { return to.cuts(axis); });
    }
    llvm::erase_if(result.sum, [&](int axis) {
      return isFree(axis) || llvm::is_contained(problem_.joined[index], axis);
    });
    int64_t ranks = sizes_.product(result.sum) * sizes_.product(result.max);
    if (ranks == 1) return cost;
    auto bytes = static_cast<double>(ir::typeBytes(type)) /
                 static_cast<double>(sizes_.product(result.cutting()));
    const bool areAllGradients =
        llvm::all_of(problem_.hints, [](const auto& other) { return other.has_value(); });
    return cost + allReduceBytes(bytes, ranks) * (areAllGradients ? kOncePerStep : 1);
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
