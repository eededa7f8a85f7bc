#include "passes/strategize/tensor_blocks.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/strategize/block_candidate.h"
#include "passes/strategize/block_groups.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

using ir::ShardingRule;
using mlir::Operation;
using mlir::Value;

// The sizes of tensor parallelism that parameters have.
std::set<int64_t> rankCounts(const SegmentValues& values, const TensorBlockOptions& options) {
  std::set<int64_t> counts;
  for (const auto& [value, parameter] : values.parameters) {
    int64_t ranks = options.ranks(parameter);
    if (ranks > 1) counts.insert(ranks);
  }
  return counts;
}

// How parameters and ops are cut by some candidates.
class Cuts {
 public:
  // One of the candidate's that this cuts otherwise; null if there is none.
  Operation* conflict(const BlockCandidate& candidate) const {
    for (const TensorBlock::Cut& cut : candidate.block.cuts) {
      auto known = ofParameter_.find(nameOf(cut.parameter));
      if (known == ofParameter_.end()) continue;
      if (known->second != std::pair(cut.dim, cut.range)) return cut.parameter;
    }
    for (const auto& [op, cuts] : candidate.ops) {
      auto known = ofOp_.find(op);
      if (known != ofOp_.end() && known->second != cuts) return op;
    }
    return nullptr;
  }

  void add(const BlockCandidate& candidate) {
    for (const auto& [op, cuts] : candidate.ops) ofOp_[op] = cuts;
    for (const TensorBlock::Cut& cut : candidate.block.cuts) {
      ofParameter_.try_emplace(nameOf(cut.parameter), std::pair(cut.dim, cut.range));
    }
  }

  bool have(ir::ParameterOp parameter) const { return ofParameter_.count(nameOf(parameter)) > 0; }

 private:
  static std::string nameOf(ir::ParameterOp parameter) { return parameter.getSymName().str(); }

  llvm::DenseMap<Operation*, std::map<int, RankRange>> ofOp_;
  std::map<std::string, std::pair<int64_t, RankRange>> ofParameter_;
};

// Chooses of candidates those that can be together. What one makes in pieces may be read by another
// one that takes it in these pieces: then both are there, or none.
class BlockChoice {
 public:
  // Of a factor of a reduction, by numbers of ranks: one of them at most.
  struct Alternatives {
    Operation* reduction;
    std::vector<BlockCandidate> candidates;
  };

  // `layers`: by themselves.
  BlockChoice(const SegmentValues& values, std::vector<Alternatives> all,
              std::vector<BlockCandidate> layers)
      : values_(values), all_(std::move(all)), layers_(std::move(layers)) {
    for (const Alternatives& alternatives : all_) {
      for (const BlockCandidate& candidate : alternatives.candidates) every_.push_back(&candidate);
    }
    // First those with a reader that is in no block: they would be in the way of others.
    dropAllLonely();
  }

  // What splits by itself comes before what splits together with others, unless the other way round
  // splits more.
  void run() {
    const State before = state_;
    choose(/*yields=*/false);
    State own = std::move(state_);
    state_ = before;
    choose(/*yields=*/true);
    if (elementsCutBy(state_.chosen) <= elementsCutBy(own.chosen)) state_ = std::move(own);
    for (const BlockCandidate& layer : layers_) {
      const bool isCut = llvm::any_of(layer.block.cuts, [&](const TensorBlock::Cut& cut) {
        return state_.cuts.have(cut.parameter);
      });
      if (!isCut && !state_.cuts.conflict(layer)) add(layer);
    }
    noteConflicts();
  }

  const std::vector<const BlockCandidate*>& chosen() const { return state_.chosen; }
  bool isCut(ir::ParameterOp parameter) const { return state_.cuts.have(parameter); }
  // Why candidates were not chosen, by their reductions.
  const std::vector<std::pair<Operation*, std::string>>& notes() const { return state_.notes; }

 private:
  using Order = std::vector<const Alternatives*>;

  struct State {
    std::set<const BlockCandidate*> dropped;
    std::vector<const BlockCandidate*> chosen;
    Cuts cuts;  // of those that are chosen
    std::vector<std::pair<Operation*, std::string>> notes;
  };

  bool isDropped(const BlockCandidate& candidate) const {
    return state_.dropped.count(&candidate) > 0;
  }

  // `yields`: what splits by itself gives way to groups that split more.
  void choose(bool yields) {
    const Order order = orderOf(yields);
    do {
      dropAllLonely();
      chooseInOrder(order);
    } while (dropLonely(state_.chosen, /*most=*/1));
    chooseWithGathers();
  }

  // By preference: what splits by itself, together with others, in steps.
  Order orderOf(bool yields) const {
    const BlockGroups groups(live(every_));
    Order plain, together, bySteps, small, all;
    for (const Alternatives& alternatives : all_) {
      auto first = llvm::find_if(alternatives.candidates, [&](const BlockCandidate& candidate) {
        return !isDropped(candidate);
      });
      if (first == alternatives.candidates.end()) continue;
      (first->isPlain() ? plain : first->takesSteps ? bySteps : together).push_back(&alternatives);
    }
    for (Order* own : {&plain, &together, &bySteps}) sortBySize(*own);
    if (yields) yieldToLarger(groups, plain, together, /*times=*/1, small);
    // Steps are further reductions, of small rows: a block by them has to split clearly more. So do
    // the heads of a state space (Dao & Gu 2024, section 8.1) beside keys and queries that they
    // share.
    constexpr int64_t kClearlyMore = 4;
    yieldToLarger(groups, plain, bySteps, kClearlyMore, small);
    yieldToLarger(groups, together, bySteps, kClearlyMore, small);
    for (const Order& own : {plain, together, bySteps, small}) llvm::append_range(all, own);
    return all;
  }

  // Of what is in each other's way the largest comes first: two small products beside a large one
  // (Hu et al. 2021, section 4.1) would else be a block of the few columns between them, and the
  // large one whole.
  void sortBySize(Order& order) const {
    llvm::stable_sort(order, [&](const Alternatives* a, const Alternatives* b) {
      return elementsOf(*a) > elementsOf(*b);
    });
  }

  int64_t elementsOf(const Alternatives& alternatives) const {
    int64_t most = 0;
    for (const BlockCandidate& candidate : alternatives.candidates) {
      if (!isDropped(candidate)) most = std::max(most, candidate.elements());
    }
    return most;
  }

  std::set<int> groupsOf(const BlockGroups& groups, const Alternatives& alternatives) const {
    std::set<int> found;
    for (const BlockCandidate& candidate : alternatives.candidates) {
      if (!isDropped(candidate)) found.insert(groups.of(candidate));
    }
    return found;
  }

  // Moves those of `order` to `later` that are in the way of a group in `larger` that is so many
  // times as large as all that are.
  void yieldToLarger(const BlockGroups& groups, Order& order, const Order& larger, int64_t times,
                     Order& later) const {
    std::set<int> candidates, yielding;
    for (const Alternatives* alternatives : order) {
      candidates.merge(groupsOf(groups, *alternatives));
    }
    std::set<int> others;
    for (const Alternatives* alternatives : larger) others.merge(groupsOf(groups, *alternatives));
    for (int other : others) {
      std::vector<Cuts> cuts;
      for (const BlockCandidate* member : groups.members(other)) cuts.emplace_back().add(*member);
      const auto isInConflict = [&](const BlockCandidate* own) {
        return llvm::any_of(cuts, [&](const Cuts& taken) { return taken.conflict(*own); });
      };
      std::set<int> inTheWay;
      for (int group : candidates) {
        if (group == other || !llvm::any_of(groups.members(group), isInConflict)) continue;
        inTheWay.insert(group);
      }
      if (groups.elements(other) > times * groups.elements(inTheWay)) yielding.merge(inTheWay);
    }
    Order first;
    for (const Alternatives* alternatives : order) {
      const bool yields = llvm::any_of(groupsOf(groups, *alternatives),
                                       [&](int group) { return yielding.count(group) > 0; });
      (yields ? later : first).push_back(alternatives);
    }
    order = std::move(first);
  }

  void dropAllLonely() {
    while (dropLonely(every_, /*most=*/every_.size())) {
    }
  }

  void chooseInOrder(const Order& order) {
    state_.chosen.clear();
    state_.cuts = Cuts();
    for (const Alternatives* alternatives : order) {
      for (const BlockCandidate& candidate : alternatives->candidates) {
        if (isDropped(candidate) || state_.cuts.conflict(candidate)) continue;
        add(candidate);
        break;
      }
    }
  }

  void add(const BlockCandidate& candidate) {
    state_.cuts.add(candidate);
    state_.chosen.push_back(&candidate);
  }

  // Of what is left, layers with others that read pieces of theirs as a whole, as keys and values
  // that another tower takes columns of: where gathering these sends no more than the reduction.
  void chooseWithGathers() {
    const auto isChosen = [&](const BlockCandidate& candidate) {
      return llvm::is_contained(state_.chosen, &candidate);
    };
    std::vector<const BlockCandidate*> left;
    for (const Alternatives& alternatives : all_) {
      const bool isLayer = llvm::any_of(alternatives.reduction->getOperands(), [&](Value operand) {
        return values_.parameters.contains(operand);
      });
      if (!isLayer || llvm::any_of(alternatives.candidates, isChosen)) continue;
      for (const BlockCandidate& candidate : alternatives.candidates) {
        if (!candidate.takesSteps) left.push_back(&candidate);
      }
    }
    llvm::stable_sort(left, [](const BlockCandidate* a, const BlockCandidate* b) {
      return a->elements() > b->elements();
    });
    for (const BlockCandidate* candidate : left) {
      if (state_.cuts.conflict(*candidate) || !isWorthGathers(*candidate)) continue;
      add(*candidate);
    }
  }

  bool isWorthGathers(const BlockCandidate& candidate) const {
    const auto elementsOfResults = [](Operation* op) {
      int64_t elements = 0;
      for (Value result : op->getResults()) elements += ir::tensorType(result).getNumElements();
      return elements;
    };
    const BlockReaders readers(state_.chosen);
    llvm::SmallPtrSet<Operation*, 4> gathered;
    int64_t elements = 0;
    for (const BlockCandidate::OutsideUse& use : candidate.outside) {
      if (!readers.of(candidate, use).empty() || !gathered.insert(use.producer).second) continue;
      elements += elementsOfResults(use.producer);
    }
    // A gather sends half of what a reduction to all ranks does.
    return elements <= 2 * elementsOfResults(candidate.block.reduction);
  }

  void noteConflicts() {
    for (const Alternatives& alternatives : all_) {
      for (const BlockCandidate& candidate : alternatives.candidates) {
        Operation* op = isDropped(candidate) ? nullptr : state_.cuts.conflict(candidate);
        if (!op) continue;
        auto parameter = llvm::dyn_cast<ir::ParameterOp>(op);
        const std::string name = parameter ? '"' + uniqueName(parameter) + '"' : ir::opText(op);
        note(candidate, name + " is cut otherwise");
      }
    }
  }

  void note(const BlockCandidate& candidate, const std::string& why) {
    state_.notes.emplace_back(candidate.block.reduction,
                              "over " + std::to_string(candidate.ranks) + " ranks: " + why);
  }

  // Those of `candidates` that are not dropped.
  std::vector<const BlockCandidate*> live(llvm::ArrayRef<const BlockCandidate*> candidates) const {
    std::vector<const BlockCandidate*> found;
    llvm::copy_if(candidates, std::back_inserter(found),
                  [&](const BlockCandidate* candidate) { return !isDropped(*candidate); });
    return found;
  }

  // Drops those of `candidates`, so many at most, with a reader that none of them has. Whether
  // there were any.
  bool dropLonely(llvm::ArrayRef<const BlockCandidate*> candidates, size_t most) {
    const std::vector<const BlockCandidate*> known = live(candidates);
    const BlockReaders readers(known);
    size_t count = 0;
    for (const BlockCandidate* candidate : known) {
      if (count == most) break;
      auto lonely = llvm::find_if(candidate->outside, [&](const BlockCandidate::OutsideUse& use) {
        return readers.of(*candidate, use).empty();
      });
      if (lonely == candidate->outside.end()) continue;
      drop(candidate, *lonely);
      ++count;
    }
    return count > 0;
  }

  void drop(const BlockCandidate* candidate, const BlockCandidate::OutsideUse& use) {
    state_.dropped.insert(candidate);
    note(*candidate, use.whyNot());
  }

  const SegmentValues& values_;
  const std::vector<Alternatives> all_;
  const std::vector<BlockCandidate> layers_;
  std::vector<const BlockCandidate*> every_;
  State state_;
};

}  // namespace

TensorBlockOptions blockOptionsOf(const Strategy& strategy) {
  TensorBlockOptions options;
  options.ranks = [&](ir::ParameterOp parameter) -> int64_t {
    const std::string name = parameter.getOnnxName().str();
    const Strategy::Sharding* forced = shardingOf(strategy, name);
    if (forced && !forced->tp) return 1;
    return strategy.commonTensorParallel(moduleOf(strategy, name));
  };
  options.dimension = [&](ir::ParameterOp parameter) {
    const Strategy::Sharding* forced = shardingOf(strategy, parameter.getOnnxName().str());
    return forced ? forced->tp : std::nullopt;
  };
  options.module = [&](ir::ParameterOp parameter) {
    const Strategy::Module* module = moduleOf(strategy, parameter.getOnnxName().str());
    return module ? module->name : std::string();
  };
  return options;
}

std::vector<TensorBlock> findTensorBlocks(mlir::func::FuncOp forward,
                                          const TensorBlockOptions& options,
                                          std::vector<std::string>* notes) {
  SegmentValues values = readValues(forward);
  const std::set<int64_t> counts = rankCounts(values, options);
  std::vector<BlockChoice::Alternatives> all;
  std::vector<BlockCandidate> layers;
  std::vector<std::pair<Operation*, std::string>> unsplit;  // and why
  RuleCache rules;
  const llvm::DenseSet<Operation*> upToLastWeights = opsUpToLastWeights(forward, values);
  const BlockScope scope{values, options, upToLastWeights, rules};
  for (Operation& op : forward.getBody().front()) {
    const ShardingRule& rule = rules.of(&op);
    for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
      if (!isReduced(rule, factor)) continue;
      BlockChoice::Alternatives alternatives{&op, {}};
      for (int64_t ranks : counts) {
        std::string why;
        std::optional<BlockCandidate> candidate =
            findBlockCandidate(scope, &op, factor, ranks, why);
        if (candidate) {
          alternatives.candidates.push_back(*std::move(candidate));
        } else if (!why.empty()) {
          unsplit.emplace_back(&op, "over " + std::to_string(ranks) + " ranks: " + why);
        }
        if (auto layer = findLayerCandidate(scope, &op, factor, ranks)) {
          layers.push_back(*std::move(layer));
        }
      }
      if (!alternatives.candidates.empty()) all.push_back(std::move(alternatives));
    }
  }
  BlockChoice choice(values, std::move(all), std::move(layers));
  choice.run();
  std::vector<TensorBlock> blocks;
  for (const BlockCandidate* candidate : choice.chosen()) blocks.push_back(candidate->block);
  llvm::sort(blocks, [](const TensorBlock& a, const TensorBlock& b) {
    return a.reduction->isBeforeInBlock(b.reduction);
  });
  if (!notes) return blocks;
  for (const auto& [op, why] : choice.notes()) unsplit.emplace_back(op, why);
  // A product of a parameter that is cut otherwise needs no excuse.
  for (auto& [op, note] : unsplit) {
    bool isCut = llvm::any_of(op->getOperands(), [&](Value operand) {
      auto parameter = values.parameters.find(operand);
      return parameter != values.parameters.end() && choice.isCut(parameter->second);
    });
    if (!isCut) notes->push_back(ir::opText(op) + " is not split " + note);
  }
  return blocks;
}

}  // namespace oriel
