#include "passes/strategize/blocks/block_choice.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/view.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "passes/strategize/blocks/block_groups.h"
#include "passes/strategize/parameter_part.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

// How parameters and ops are cut by some candidates.
class Cuts {
 public:
  // One of the candidate's that some of these cut otherwise; null if there is none.
  Operation* conflict(const BlockCandidate& candidate) const {
    for (const TensorBlock::Cut& cut : candidate.block.cuts) {
      auto known = ofParameter_.find(cut.parameter);
      if (known != ofParameter_.end() && isOther(known->second, {cut.dim, cut.range})) {
        return cut.parameter;
      }
    }
    for (const auto& [op, cuts] : candidate.ops) {
      auto known = ofOp_.find(op);
      if (known != ofOp_.end() && isOther(known->second, cuts)) return op;
    }
    return nullptr;
  }

  void add(const BlockCandidate& candidate) {
    for (const auto& [op, cuts] : candidate.ops) addTo(ofOp_[op], cuts);
    for (const TensorBlock::Cut& cut : candidate.block.cuts) {
      addTo(ofParameter_[cut.parameter], {cut.dim, cut.range});
    }
  }

  bool have(ir::ParameterOp parameter) const { return ofParameter_.count(parameter) > 0; }

 private:
  // One way in which all cut it, mostly.
  template <typename Way>
  using Ways = llvm::SmallVector<Way, 1>;

  template <typename Way>
  static bool isOther(const Ways<Way>& ways, const Way& own) {
    return llvm::any_of(ways, [&](const Way& way) { return !(way == own); });
  }
  template <typename Way>
  static void addTo(Ways<Way>& ways, const Way& own) {
    if (!llvm::is_contained(ways, own)) ways.push_back(own);
  }

  llvm::DenseMap<Operation*, Ways<std::map<int, RankRange>>> ofOp_;
  llvm::DenseMap<Operation*, Ways<std::pair<int64_t, RankRange>>> ofParameter_;
};

llvm::SmallVector<const BlockCandidate*> pointersTo(const std::vector<BlockAlternatives>& all) {
  llvm::SmallVector<const BlockCandidate*> pointers;
  for (const BlockAlternatives& alternatives : all) {
    for (const BlockCandidate& candidate : alternatives.candidates) pointers.push_back(&candidate);
  }
  return pointers;
}

class BlockChoice {
 public:
  BlockChoice(const SegmentValues& values, const std::vector<BlockAlternatives>& all,
              const std::vector<BlockCandidate>& layers)
      : values_(values), all_(all), layers_(layers), every_(pointersTo(all)), uses_(every_) {
    // First those with a reader that is in no block: they would be in the way of others.
    dropAllLonely();
  }

  // What splits by itself comes before what splits together with others, unless the other way round
  // splits more than it leaves whole, by an eighth: it may have more reductions.
  ChosenBlocks run() {
    const State before = state_;
    choose(/*yields=*/false);
    State own = std::move(state_);
    state_ = before;
    choose(/*yields=*/true);
    const int64_t gained = elementsOnlyIn(state_, own), lost = elementsOnlyIn(own, state_);
    if (8 * gained <= 9 * lost) state_ = std::move(own);
    for (const BlockCandidate& layer : layers_) {
      const bool isCut = llvm::any_of(layer.block.cuts, [&](const TensorBlock::Cut& cut) {
        return state_.cuts.have(cut.parameter);
      });
      if (!isCut && !state_.cuts.conflict(layer)) add(layer);
    }
    noteConflicts();
    ChosenBlocks chosen;
    llvm::DenseSet<Operation*> reductions;
    for (const BlockCandidate* candidate : state_.chosen) {
      chosen.candidates.push_back(*candidate);
      reductions.insert(candidate->block.reduction);
    }
    llvm::copy_if(state_.notes, std::back_inserter(chosen.notes),
                  [&](const auto& note) { return !reductions.contains(note.first); });
    llvm::sort(chosen.candidates, [](const BlockCandidate& a, const BlockCandidate& b) {
      return a.block.reduction->isBeforeInBlock(b.block.reduction);
    });
    return chosen;
  }

 private:
  using Order = std::vector<const BlockAlternatives*>;

  struct State {
    std::set<const BlockCandidate*> dropped;
    std::vector<const BlockCandidate*> chosen;
    Cuts cuts;               // of those that are chosen
    std::vector<bool> read;  // the outside uses that these are readers of
    std::vector<std::pair<Operation*, std::string>> notes;
  };

  // Of the parameters that one has cut and the other has not.
  static int64_t elementsOnlyIn(const State& one, const State& other) {
    std::vector<const BlockCandidate*> both = other.chosen;
    llvm::append_range(both, one.chosen);
    return elementsCutBy(both) - elementsCutBy(other.chosen);
  }

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
    const BlockGroups groups(live(every_), uses_);
    Order plain, together, bySteps, small, all;
    for (const BlockAlternatives& alternatives : all_) {
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
    llvm::stable_sort(order, [&](const BlockAlternatives* a, const BlockAlternatives* b) {
      return elementsOf(*a) > elementsOf(*b);
    });
  }

  int64_t elementsOf(const BlockAlternatives& alternatives) const {
    int64_t most = 0;
    for (const BlockCandidate& candidate : alternatives.candidates) {
      if (!isDropped(candidate)) most = std::max(most, candidate.elements());
    }
    return most;
  }

  std::set<int> groupsOf(const BlockGroups& groups, const BlockAlternatives& alternatives) const {
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
    for (const BlockAlternatives* alternatives : order) {
      candidates.merge(groupsOf(groups, *alternatives));
    }
    std::set<int> others;
    for (const BlockAlternatives* alternatives : larger)
      others.merge(groupsOf(groups, *alternatives));
    for (int other : others) {
      Cuts cuts;
      for (const BlockCandidate* member : groups.members(other)) cuts.add(*member);
      std::set<int> inTheWay;
      for (int group : candidates) {
        const bool isInConflict = llvm::any_of(
            groups.members(group),
            [&](const BlockCandidate* member) { return cuts.conflict(*member) != nullptr; });
        if (group != other && isInConflict) inTheWay.insert(group);
      }
      if (groups.elements(other) > times * groups.elements(inTheWay)) yielding.merge(inTheWay);
    }
    Order first;
    for (const BlockAlternatives* alternatives : order) {
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
    state_.read.assign(uses_.count(), false);
    for (const BlockAlternatives* alternatives : order) {
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
    for (int use : uses_.readBy(candidate)) state_.read[use] = true;
  }

  // Of what is left, layers of which only other layers read pieces as a whole, as another tower
  // does of keys and values: where gathering these sends no more than the reduction. A residual or
  // a norm would carry the pieces on instead, and gather in front of each of many layers.
  void chooseWithGathers() {
    const llvm::DenseSet<const BlockCandidate*> chosen(state_.chosen.begin(), state_.chosen.end());
    const auto isChosen = [&](const BlockCandidate& candidate) {
      return chosen.contains(&candidate);
    };
    std::vector<const BlockCandidate*> left;
    for (const BlockAlternatives& alternatives : all_) {
      if (!isLayer(alternatives.reduction) || llvm::any_of(alternatives.candidates, isChosen)) {
        continue;
      }
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

  bool isLayer(Operation* op) const {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return values_.parameters.contains(operand) && ir::rankOf(operand) > 1;
    });
  }

  // Whether all that is read of it ends in layers, behind views. A table of positions that is added
  // is a parameter, too, and carries pieces on.
  bool endsInLayers(Operation* op) const {
    if (isLayer(op) && !op->hasTrait<ir::Pointwise>()) return true;
    return ir::isView(op) && !op->use_empty() &&
           llvm::all_of(op->getUsers(), [&](Operation* user) { return endsInLayers(user); });
  }

  bool isWorthGathers(const BlockCandidate& candidate) const {
    const auto elementsOfResults = [](Operation* op) {
      int64_t elements = 0;
      for (Value result : op->getResults()) elements += ir::tensorType(result).getNumElements();
      return elements;
    };
    llvm::SmallPtrSet<Operation*, 4> gathered;
    int64_t elements = 0;
    for (auto [use, number] : llvm::zip_equal(candidate.outside, uses_.of(candidate))) {
      if (state_.read[number]) continue;
      if (!endsInLayers(use.user)) return false;
      if (gathered.insert(use.producer).second) elements += elementsOfResults(use.producer);
    }
    // A gather sends half of what a reduction to all ranks does.
    return elements <= 2 * elementsOfResults(candidate.block.reduction);
  }

  void noteConflicts() {
    for (const BlockAlternatives& alternatives : all_) {
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
    std::vector<bool> read(uses_.count());
    for (const BlockCandidate* candidate : known) {
      for (int use : uses_.readBy(*candidate)) read[use] = true;
    }
    size_t count = 0;
    for (const BlockCandidate* candidate : known) {
      if (count == most) break;
      llvm::ArrayRef<int> uses = uses_.of(*candidate);
      const int* lonely = llvm::find_if(uses, [&](int use) { return !read[use]; });
      if (lonely == uses.end()) continue;
      drop(candidate, candidate->outside[lonely - uses.begin()]);
      ++count;
    }
    return count > 0;
  }

  void drop(const BlockCandidate* candidate, const BlockCandidate::OutsideUse& use) {
    state_.dropped.insert(candidate);
    note(*candidate, use.whyNot());
  }

  const SegmentValues& values_;
  const std::vector<BlockAlternatives>& all_;
  const std::vector<BlockCandidate>& layers_;
  const llvm::SmallVector<const BlockCandidate*> every_;
  const OutsideUses uses_;
  State state_;
};

}  // namespace

bool ChosenBlocks::isCut(ir::ParameterOp parameter) const {
  return llvm::any_of(candidates, [&](const BlockCandidate& candidate) {
    return llvm::any_of(candidate.block.cuts,
                        [&](const TensorBlock::Cut& cut) { return cut.parameter == parameter; });
  });
}

ChosenBlocks chooseBlocks(const SegmentValues& values, const std::vector<BlockAlternatives>& all,
                          const std::vector<BlockCandidate>& layers) {
  return BlockChoice(values, all, layers).run();
}

}  // namespace oriel
