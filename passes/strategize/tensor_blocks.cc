#include "passes/strategize/tensor_blocks.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/sharding.h"

namespace oriel {

namespace {

using ir::FactorKind;
using ir::FactorList;
using ir::ShardingRule;
using mlir::Operation;
using mlir::Value;

using OpCuts = llvm::MapVector<Operation*, std::map<int, RankRange>>;  // of factors

// What makes a value in pieces, and an op outside of the block that reads it.
struct OutsideUse {
  Operation* producer;
  Operation* user;
};

std::string whyNot(const OutsideUse& use) {
  return "what " + ir::opText(use.producer) + " makes is also used by " + ir::opText(use.user);
}

// A block as far as it alone says.
struct Candidate {
  TensorBlock block;
  OpCuts ops;
  std::vector<OutsideUse> outside;  // that other blocks must have
  int64_t ranks = 1;
  bool takesSteps = false;  // other ops stand for some of them (`decompose`)

  // Whether it splits as it is, whatever others do.
  bool isPlain() const { return outside.empty() && !takesSteps; }

  // Elements of the parameters that it cuts.
  int64_t elements() const {
    int64_t sum = 0;
    for (const TensorBlock::Cut& cut : block.cuts) {
      ir::ParameterOp parameter = cut.parameter;
      sum += llvm::cast<mlir::RankedTensorType>(parameter.getType()).getNumElements();
    }
    return sum;
  }

  // Whether it has this op, cut like that.
  bool has(Operation* op, const std::map<int, RankRange>& cuts) const {
    auto found = ops.find(op);
    return found != ops.end() && found->second == cuts;
  }
};

// Those of ops that several traces meet, each made once.
class RuleCache {
 public:
  const ShardingRule& of(Operation* op) {
    std::unique_ptr<ShardingRule>& rule = rules_[op];
    if (!rule) rule = std::make_unique<ShardingRule>(ruleOf(op));
    return *rule;
  }

 private:
  llvm::DenseMap<Operation*, std::unique_ptr<ShardingRule>> rules_;
};

bool isReduced(const ShardingRule& rule, int factor) {
  const ir::Factor& own = rule.factors[factor];
  if (own.size == 1 || (own.kind != FactorKind::kSum && own.kind != FactorKind::kSteps)) {
    return false;
  }
  for (unsigned i = 0; i < rule.results.size(); ++i) {
    if (rule.resultHas(i, factor)) return false;
  }
  return true;
}

bool reduces(const ShardingRule& rule) {
  for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
    if (isReduced(rule, factor)) return true;
  }
  return false;
}

// Follows the cut of one reduction's factor back to where it comes from.
class BlockFinder {
 public:
  BlockFinder(const SegmentValues& values, const TensorBlockOptions& options, RuleCache& rules)
      : values_(values), options_(options), rules_(rules) {}

  // None if the factor's pieces are not made of parameters' pieces; `why` says what is in the way.
  std::optional<Candidate> find(Operation* reduction, int factor, int64_t ranks, std::string& why) {
    block_.reduction = reduction;
    ranks_ = ranks;
    const ShardingRule& own = rule(reduction);
    if (!assign(reduction, factor, {1, ranks})) return std::nullopt;
    if (own.factors[factor].size % ranks != 0) {
      setIndivisible(own.factors[factor].size, reduction);
    }
    bool found = traceOperands(reduction) && needsInput();
    why = why_;
    if (!found || block_.cuts.empty()) return std::nullopt;
    std::vector<OutsideUse> outside = outsideUses();
    const bool bySteps = takesSteps();
    Candidate candidate{std::move(block_), std::move(ops_), std::move(outside), ranks, bySteps};
    // Where steps are taken, as for the norm of what is cut, the block is one by itself, or with
    // other products of what it reads, an adapter's say: else all that lies between layers would be
    // cut, too, from embedding to loss.
    auto other = llvm::find_if_not(candidate.outside,
                                   [&](const OutsideUse& use) { return reduces(rule(use.user)); });
    if (candidate.takesSteps && other != candidate.outside.end()) {
      why = whyNot(*other);
      return std::nullopt;
    }
    // Who chose these ranks did so for what splits by itself.
    const bool isImplied = !candidate.isPlain() || takesActivations_;
    if (isImplied && !candidate.block.indivisible.empty()) {
      why = "they do not divide the " + candidate.block.indivisible;
      return std::nullopt;
    }
    return candidate;
  }

 private:
  bool fail(const llvm::Twine& why) {
    why_ = why.str();
    return false;
  }

  const ShardingRule& rule(Operation* op) { return rules_.of(op); }

  void setIndivisible(int64_t size, Operation* op) {
    if (!block_.indivisible.empty()) return;
    block_.indivisible = std::to_string(size) + " elements or heads at " + ir::opText(op);
  }

  // Whether the range cuts this factor of the op, and no other one does.
  bool assign(Operation* op, int factor, RankRange range) {
    std::map<int, RankRange>& own = ops_[op];
    auto known = own.find(factor);
    if (known != own.end()) return known->second == range || fail("two cuts of one dimension");
    for (const auto& [other, taken] : own) {
      bool apart =
          taken.outer * taken.size <= range.outer || range.outer * range.size <= taken.outer;
      if (!apart) return fail("two dimensions of one op would be cut by the same ranks");
    }
    own.emplace(factor, range);
    assigned_.emplace_back(op, factor);
    return true;
  }

  // The cut of a dimension of a value comes from cuts of what its op takes.
  bool trace(Value value, int64_t dim, RankRange range) {
    if (range.size == 1) return true;
    auto [seen, isNew] = traced_.try_emplace({value, dim}, range);
    if (!isNew) return seen->second == range || fail("a value would be cut in two ways");
    tracedInOrder_.emplace_back(value, dim);
    // Each op on the way is a level of the recursion.
    constexpr int kMaxDepth = 2000;
    if (depth_ == kMaxDepth) {
      return fail("more than " + llvm::Twine(kMaxDepth) + " ops lie before another weight");
    }
    ++depth_;
    const bool isFine = traceDefinition(value, dim, range);
    --depth_;
    return isFine;
  }

  bool traceDefinition(Value value, int64_t dim, RankRange range) {
    if (llvm::isa<mlir::BlockArgument>(value)) return traceArgument(value, dim, range);
    auto result = llvm::cast<mlir::OpResult>(value);
    Operation* op = result.getOwner();
    // Each rank has all of a constant, and takes its piece.
    if (op->hasTrait<mlir::OpTrait::ConstantLike>()) return true;
    if (llvm::isa<ir::ReceiveOp>(op)) return fail("it comes from another stage, whole");
    const ShardingRule& rule = this->rule(op);
    const FactorList& factors = rule.results[result.getResultNumber()][dim];
    RankRange left = range;
    for (int factor : factors) {
      int64_t size = rule.factors[factor].size;
      if (size == 1) continue;
      int64_t part = size % left.size == 0 ? left.size : left.size % size == 0 ? size : 0;
      if (part == 0) {
        setIndivisible(size, op);
        part = left.size;
      }
      if (!assign(op, factor, {left.outer, part})) return false;
      left = {left.outer * part, left.size / part};
      if (left.size == 1) break;
    }
    if (left.size > 1) {
      // A dimension that does not split, or not into so many.
      if (factors.empty()) return blocked(op);
      setIndivisible(1, op);
    }
    return traceOperands(op);
  }

  bool blocked(Operation* op) { return fail(ir::opText(op) + " needs all of it"); }

  bool traceArgument(Value value, int64_t dim, RankRange range) {
    auto parameter = values_.parameters.find(value);
    if (parameter == values_.parameters.end()) return fail("it comes from an input");
    ir::ParameterOp op = parameter->second;
    if (options_.ranks(op) != ranks_) {
      return fail(uniqueName(op) + " is not split over these ranks");
    }
    std::optional<int64_t> forced = options_.dimension(op);
    if (forced && *forced != dim) {
      return fail("the strategy splits \"" + op.getOnnxName() + "\" along dimension " +
                  llvm::Twine(*forced));
    }
    if (!block_.cuts.empty() &&
        options_.module(op) != options_.module(block_.cuts.front().parameter)) {
      return fail("it spans two modules");
    }
    for (const TensorBlock::Cut& cut : block_.cuts) {
      if (cut.parameter != op) continue;
      bool same = cut.dim == dim && cut.range == range;
      return same || fail("\"" + uniqueName(op) + "\" would be cut in two ways");
    }
    block_.cuts.push_back({op, dim, range});
    return true;
  }

  bool traceOperands(Operation* op) {
    const ShardingRule& rule = this->rule(op);
    // By value: tracing adds to it.
    std::map<int, RankRange> cuts = ops_[op];
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      for (auto [dim, factors] : llvm::enumerate(rule.operands[i])) {
        RankRange range;
        bool outerIsWhole = true;  // cut to single elements
        for (int factor : factors) {
          auto cut = cuts.find(factor);
          if (cut == cuts.end() || cut->second.size == 1) {
            outerIsWhole &= rule.factors[factor].size == 1;
            continue;
          }
          bool follows = range.size == 1 || range.outer * range.size == cut->second.outer;
          if (!outerIsWhole || !follows) return blocked(op);
          if (range.size == 1) range.outer = cut->second.outer;
          range.size *= cut->second.size;
          outerIsWhole = cut->second.size == rule.factors[factor].size;
        }
        if (!traceOrTake(op, operand, static_cast<int64_t>(dim), range)) return false;
      }
    }
    return true;
  }

  // As `trace`, but each rank may have all of a value that is small beside another activation that
  // the op takes, and take its piece: the gates of a mixture of experts (Shazeer et al. 2017), one
  // for each token and expert.
  bool traceOrTake(Operation* op, Value value, int64_t dim, RankRange range) {
    if (range.size == 1 || !isSmallActivation(op, value)) return trace(value, dim, range);
    // In vain once each: the way back from one may lead through others.
    if (taken_.count({value, dim}) == 0) {
      const Mark before = mark();
      if (trace(value, dim, range)) return true;
      goBack(before);
      taken_.insert({value, dim});
    }
    takesActivations_ = true;
    return true;
  }

  // What has been found so far.
  struct Mark {
    size_t cuts, ops, assigned, traced;
    std::string indivisible, why;
  };

  Mark mark() const {
    return {block_.cuts.size(),    ops_.size(),        assigned_.size(),
            tracedInOrder_.size(), block_.indivisible, why_};
  }

  void goBack(const Mark& mark) {
    block_.cuts.resize(mark.cuts);
    block_.indivisible = mark.indivisible;
    why_ = mark.why;
    for (; assigned_.size() > mark.assigned; assigned_.pop_back()) {
      auto [op, factor] = assigned_.back();
      ops_[op].erase(factor);
    }
    while (ops_.size() > mark.ops) ops_.pop_back();
    for (; tracedInOrder_.size() > mark.traced; tracedInOrder_.pop_back()) {
      traced_.erase(tracedInOrder_.back());
    }
  }

  bool isSmallActivation(Operation* op, Value value) const {
    constexpr int64_t kSmall = 16;
    auto type = ir::tensorType(value);
    if (!llvm::isa<mlir::FloatType>(type.getElementType()) || !value.getDefiningOp() ||
        !values_.fromInputs.contains(value)) {
      return false;
    }
    return llvm::any_of(op->getOperands(), [&](Value other) {
      auto otherType = ir::tensorType(other);
      return values_.fromInputs.contains(other) &&
             otherType.getNumElements() / kSmall >= type.getNumElements();
    });
  }

  bool takesSteps() {
    return llvm::any_of(ops_, [&](const auto& entry) {
      const ShardingRule& rule = this->rule(entry.first);
      return entry.first != block_.reduction && llvm::any_of(entry.second, [&](const auto& cut) {
               return rule.factors[cut.first].kind == FactorKind::kSteps;
             });
    });
  }

  std::vector<OutsideUse> outsideUses() {
    std::vector<OutsideUse> uses;
    for (auto& [op, cuts] : ops_) {
      const ShardingRule& rule = this->rule(op);
      for (mlir::OpResult result : op->getResults()) {
        bool inPieces = llvm::any_of(cuts, [&](const auto& cut) {
          return rule.resultHas(result.getResultNumber(), cut.first);
        });
        if (!inPieces || op == block_.reduction) continue;
        for (Operation* user : result.getUsers()) {
          // What is returned is for the backward.
          if (ops_.contains(user) || user->hasTrait<mlir::OpTrait::IsTerminator>()) continue;
          uses.push_back({op, user});
        }
      }
    }
    return uses;
  }

  // There is no point in splitting what is the same for all samples.
  bool needsInput() {
    for (auto& [op, cuts] : ops_) {
      if (llvm::any_of(op->getOperands(),
                       [&](Value v) { return values_.fromInputs.contains(v); })) {
        return true;
      }
    }
    return fail("it does not depend on an input");
  }

  const SegmentValues& values_;
  const TensorBlockOptions& options_;
  RuleCache& rules_;
  int64_t ranks_ = 1;
  TensorBlock block_;
  std::string why_;
  int depth_ = 0;                  // of trace()
  bool takesActivations_ = false;  // that are whole on each rank, in pieces
  OpCuts ops_;
  struct Less {
    bool operator()(const std::pair<Value, int64_t>& a, const std::pair<Value, int64_t>& b) const {
      return std::pair(a.first.getAsOpaquePointer(), a.second) <
             std::pair(b.first.getAsOpaquePointer(), b.second);
    }
  };
  std::map<std::pair<Value, int64_t>, RankRange, Less> traced_;
  // In the order in which they came into `ops_` and `traced_`.
  std::vector<std::pair<Operation*, int>> assigned_;
  std::vector<std::pair<Value, int64_t>> tracedInOrder_;
  std::set<std::pair<Value, int64_t>, Less> taken_;  // small activations whose trace ended nowhere
};

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
  Operation* conflict(const Candidate& candidate) const {
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

  void add(const Candidate& candidate) {
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
    std::vector<Candidate> candidates;

    int64_t elements() const {
      int64_t most = 0;
      for (const Candidate& candidate : candidates) most = std::max(most, candidate.elements());
      return most;
    }
  };

  explicit BlockChoice(std::vector<Alternatives> all) : all_(std::move(all)) {}

  void run() {
    std::vector<const Candidate*> every;
    for (const Alternatives& alternatives : all_) {
      for (const Candidate& candidate : alternatives.candidates) every.push_back(&candidate);
    }
    do {
      // First those with a reader that is in no block: they may be in the way of others.
      while (dropLonely(every, /*most=*/every.size())) {
      }
      chooseInOrder();
    } while (dropLonely(chosen_, /*most=*/1));
    noteConflicts();
  }

  const std::vector<const Candidate*>& chosen() const { return chosen_; }
  bool isCut(ir::ParameterOp parameter) const { return cuts_.have(parameter); }
  // Why candidates were not chosen, by their reductions.
  const std::vector<std::pair<Operation*, std::string>>& notes() const { return notes_; }

 private:
  void chooseInOrder() {
    chosen_.clear();
    cuts_ = Cuts();
    for (const Alternatives& alternatives : all_) {
      for (const Candidate& candidate : alternatives.candidates) {
        if (dropped_.count(&candidate) > 0 || cuts_.conflict(candidate)) continue;
        cuts_.add(candidate);
        chosen_.push_back(&candidate);
        break;
      }
    }
  }

  void noteConflicts() {
    for (const Alternatives& alternatives : all_) {
      for (const Candidate& candidate : alternatives.candidates) {
        Operation* op = dropped_.count(&candidate) > 0 ? nullptr : cuts_.conflict(candidate);
        if (!op) continue;
        auto parameter = llvm::dyn_cast<ir::ParameterOp>(op);
        const std::string name = parameter ? '"' + uniqueName(parameter) + '"' : ir::opText(op);
        note(candidate, name + " is cut otherwise");
      }
    }
  }

  void note(const Candidate& candidate, const std::string& why) {
    notes_.emplace_back(candidate.block.reduction,
                        "over " + std::to_string(candidate.ranks) + " ranks: " + why);
  }

  // Drops those of `candidates`, so many at most, with a reader that none of them has. Whether
  // there were any.
  bool dropLonely(llvm::ArrayRef<const Candidate*> candidates, size_t most) {
    llvm::DenseMap<Operation*, std::vector<const Candidate*>> having;
    for (const Candidate* candidate : candidates) {
      if (dropped_.count(candidate) > 0) continue;
      for (const auto& [op, cuts] : candidate->ops) having[op].push_back(candidate);
    }
    size_t count = 0;
    for (const Candidate* candidate : candidates) {
      if (dropped_.count(candidate) > 0 || count == most) continue;
      auto lonely = llvm::find_if(candidate->outside, [&](const OutsideUse& use) {
        const std::map<int, RankRange>& cuts = candidate->ops.find(use.producer)->second;
        auto found = having.find(use.user);
        return found == having.end() || llvm::none_of(found->second, [&](const Candidate* other) {
                 return other->has(use.producer, cuts);
               });
      });
      if (lonely == candidate->outside.end()) continue;
      drop(candidate, *lonely);
      ++count;
    }
    return count > 0;
  }

  void drop(const Candidate* candidate, const OutsideUse& use) {
    dropped_.insert(candidate);
    note(*candidate, whyNot(use));
  }

  const std::vector<Alternatives> all_;
  std::set<const Candidate*> dropped_;
  std::vector<const Candidate*> chosen_;
  Cuts cuts_;  // of those that are chosen
  std::vector<std::pair<Operation*, std::string>> notes_;
};

// Of what is in each other's way the largest comes first: two small products beside a large one (Hu
// et al. 2021, section 4.1) would else be a block of the few columns between them, and the large
// one whole.
void sortBySize(std::vector<BlockChoice::Alternatives>& all) {
  llvm::stable_sort(all, [](const auto& a, const auto& b) { return a.elements() > b.elements(); });
}

// Moves those of `plain` to `later` that are in the way of something in `larger` that is so many
// times as large.
void yieldToLarger(std::vector<BlockChoice::Alternatives>& plain,
                   const std::vector<BlockChoice::Alternatives>& larger, int64_t times,
                   std::vector<BlockChoice::Alternatives>& later) {
  struct Other {
    int64_t elements;
    Cuts cuts;
  };
  std::vector<Other> others;
  for (const BlockChoice::Alternatives& alternatives : larger) {
    for (const Candidate& candidate : alternatives.candidates) {
      others.push_back({candidate.elements() / times, Cuts()});
      others.back().cuts.add(candidate);
    }
  }
  const auto yields = [&](const BlockChoice::Alternatives& alternatives) {
    return llvm::any_of(alternatives.candidates, [&](const Candidate& own) {
      return llvm::any_of(others, [&, elements = own.elements()](const Other& other) {
        return other.elements > elements && other.cuts.conflict(own);
      });
    });
  };
  std::vector<BlockChoice::Alternatives> first;
  for (BlockChoice::Alternatives& alternatives : plain) {
    (yields(alternatives) ? later : first).push_back(std::move(alternatives));
  }
  plain = std::move(first);
}

}  // namespace

std::vector<TensorBlock> findTensorBlocks(mlir::func::FuncOp forward,
                                          const TensorBlockOptions& options,
                                          std::vector<std::string>* notes) {
  SegmentValues values = readValues(forward);
  const std::set<int64_t> counts = rankCounts(values, options);
  // In the order of preference: what splits by itself, together with others, in steps.
  std::vector<BlockChoice::Alternatives> all, together, bySteps;
  std::vector<std::pair<Operation*, std::string>> unsplit;  // and why
  RuleCache rules;
  for (Operation& op : forward.getBody().front()) {
    const ShardingRule& rule = rules.of(&op);
    for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
      if (!isReduced(rule, factor)) continue;
      BlockChoice::Alternatives alternatives{&op, {}};
      for (int64_t ranks : counts) {
        std::string why;
        std::optional<Candidate> candidate =
            BlockFinder(values, options, rules).find(&op, factor, ranks, why);
        if (candidate) {
          alternatives.candidates.push_back(*std::move(candidate));
        } else if (!why.empty()) {
          unsplit.emplace_back(&op, "over " + std::to_string(ranks) + " ranks: " + why);
        }
      }
      if (alternatives.candidates.empty()) continue;
      const Candidate& first = alternatives.candidates.front();
      auto& list = first.isPlain() ? all : first.takesSteps ? bySteps : together;
      list.push_back(std::move(alternatives));
    }
  }
  std::vector<BlockChoice::Alternatives> small;
  sortBySize(all);
  sortBySize(together);
  yieldToLarger(all, together, /*times=*/1, small);
  // Steps are further reductions, of small rows: a block by them has to split clearly more. So do
  // the heads of a state space (Dao & Gu 2024, section 8.1) beside keys and queries that they
  // share.
  constexpr int64_t kClearlyMore = 4;
  yieldToLarger(all, bySteps, kClearlyMore, small);
  yieldToLarger(together, bySteps, kClearlyMore, small);
  for (auto* later : {&together, &bySteps, &small}) llvm::move(*later, std::back_inserter(all));
  BlockChoice choice(std::move(all));
  choice.run();
  std::vector<TensorBlock> blocks;
  for (const Candidate* candidate : choice.chosen()) blocks.push_back(candidate->block);
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
