#include "passes/strategize/blocks/block_candidate.h"

#include <set>
#include <utility>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/sharding.h"

namespace oriel {

namespace {

using ir::FactorKind;
using ir::FactorList;
using ir::ShardingRule;
using mlir::Operation;
using mlir::Value;

bool reduces(const ShardingRule& rule) {
  for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
    if (isReduced(rule, factor)) return true;
  }
  return false;
}

// Follows the cut of one reduction's factor back to where it comes from.
class BlockFinder {
 public:
  explicit BlockFinder(const BlockScope& scope)
      : values_(scope.values),
        options_(scope.options),
        upToLastWeights_(scope.upToLastWeights),
        rules_(scope.rules),
        takesIndivisible_(scope.takesIndivisible) {}

  // None if the factor's pieces are not made of parameters' pieces; `why` says what is in the way.
  std::optional<BlockCandidate> find(Operation* reduction, int factor, int64_t ranks,
                                     std::string& why) {
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
    leaveOutData();
    std::vector<BlockCandidate::OutsideUse> outside = outsideUses();
    const bool bySteps = takesSteps();
    BlockCandidate candidate{std::move(block_), std::move(ops_), std::move(outside), ranks,
                             bySteps};
    // Where steps are taken, as for the norm of what is cut, the block is one by itself, or with
    // other products of what it reads, an adapter's say: else all that lies between layers would be
    // cut, too, from embedding to loss. Behind the last layers, as in a loss, nothing does.
    auto other = llvm::find_if_not(candidate.outside, [&](const BlockCandidate::OutsideUse& use) {
      return reduces(rule(use.user)) || !upToLastWeights_.contains(use.user);
    });
    if (candidate.takesSteps && other != candidate.outside.end()) {
      why = other->whyNot();
      return std::nullopt;
    }
    // Who chose these ranks did so for what splits by itself.
    const bool isImplied = !takesIndivisible_ && (!candidate.isPlain() || takesActivations_);
    if (isImplied && !candidate.block.indivisible.empty()) {
      why = "they do not divide the " + candidate.block.indivisible;
      return std::nullopt;
    }
    return candidate;
  }

  std::optional<BlockCandidate> findLayer(Operation* layer, int factor, int64_t ranks) {
    block_.reduction = layer;
    ranks_ = ranks;
    const ShardingRule& own = rule(layer);
    if (own.factors[factor].size % ranks != 0 || !assign(layer, factor, {1, ranks})) {
      return std::nullopt;
    }
    int64_t weights = 0, others = 0;
    const auto elements = [](Value value) { return ir::tensorType(value).getNumElements(); };
    for (Value result : layer->getResults()) others += elements(result);
    for (auto [i, operand] : llvm::enumerate(layer->getOperands())) {
      const auto* dim = llvm::find_if(own.operands[i], [&](const FactorList& factors) {
        return llvm::is_contained(factors, factor);
      });
      if (dim == own.operands[i].end()) continue;
      if (dim->size() > 1) return std::nullopt;
      if (!values_.parameters.contains(operand)) {
        others += elements(operand);
      } else if (operand.hasOneUse() &&
                 traceArgument(operand, dim - own.operands[i].begin(), {1, ranks})) {
        weights += elements(operand);
      } else {
        return std::nullopt;
      }
    }
    constexpr int64_t kManyTimes = 8;
    if (weights < kManyTimes * others || !needsInput()) return std::nullopt;
    return BlockCandidate{std::move(block_), std::move(ops_), /*outside=*/{}, ranks,
                          /*takesSteps=*/false};
  }

  bool comesInPieces(Value value, int64_t dim, int64_t ranks, Operation* reader) {
    ranks_ = ranks;
    const bool isFound = trace(value, DimCut{dim, {1, ranks}}) && !block_.cuts.empty();
    const bool isDivided = takesIndivisible_ || block_.indivisible.empty();
    if (!isFound || !isDivided || takesSteps() || !needsInput()) return false;
    leaveOutData();
    return llvm::all_of(outsideUses(),
                        [&](const BlockCandidate::OutsideUse& use) { return use.user == reader; });
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

  struct DimCut {
    int64_t dim;
    RankRange range;
  };

  // The cuts of dimensions of a value come from cuts of what its op takes: of all at once, since
  // that may be one dimension of what it takes.
  bool trace(Value value, llvm::ArrayRef<DimCut> cuts) {
    llvm::SmallVector<DimCut> unknown;
    for (const DimCut& cut : cuts) {
      auto [seen, isNew] = traced_.try_emplace({value, cut.dim}, cut.range);
      if (!isNew && !(seen->second == cut.range)) return fail("a value would be cut in two ways");
      if (!isNew) continue;
      tracedInOrder_.emplace_back(value, cut.dim);
      unknown.push_back(cut);
    }
    if (unknown.empty()) return true;
    // Each op on the way is a level of the recursion.
    constexpr int kMaxDepth = 2000;
    if (depth_ == kMaxDepth) {
      return fail("more than " + llvm::Twine(kMaxDepth) + " ops lie before another weight");
    }
    ++depth_;
    const bool isFine = traceDefinition(value, unknown);
    --depth_;
    return isFine;
  }

  bool traceDefinition(Value value, llvm::ArrayRef<DimCut> cuts) {
    if (llvm::isa<mlir::BlockArgument>(value)) {
      return llvm::all_of(
          cuts, [&](const DimCut& cut) { return traceArgument(value, cut.dim, cut.range); });
    }
    auto result = llvm::cast<mlir::OpResult>(value);
    Operation* op = result.getOwner();
    // Each rank has all of a constant, and takes its piece.
    if (op->hasTrait<mlir::OpTrait::ConstantLike>()) return true;
    if (llvm::isa<ir::ReceiveOp>(op)) return fail("it comes from another stage, whole");
    const bool areAssigned = llvm::all_of(cuts, [&](const DimCut& cut) {
      return assignDim(op, rule(op).results[result.getResultNumber()][cut.dim], cut.range);
    });
    return areAssigned && traceOperands(op);
  }

  // The range cuts a dimension of the op's result, which is of these factors.
  bool assignDim(Operation* op, const FactorList& factors, RankRange range) {
    const ShardingRule& rule = this->rule(op);
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
    return true;
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
      llvm::SmallVector<DimCut> ofOperand;
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
        if (range.size > 1) ofOperand.push_back({static_cast<int64_t>(dim), range});
      }
      if (!traceOrTake(op, operand, ofOperand)) return false;
    }
    return true;
  }

  // As `trace`, but each rank may have all of a value that is small beside another activation that
  // the op takes, and take its piece: the gates of a mixture of experts (Shazeer et al. 2017), one
  // for each token and expert. Steps for that would be further reductions. So it may of data that a
  // loss takes beside what the last layer makes: probabilities that a teacher gave.
  bool traceOrTake(Operation* op, Value value, llvm::ArrayRef<DimCut> cuts) {
    if (cuts.empty()) return true;
    if (!isSmallActivation(op, value) && !isDataOfLoss(op, value)) {
      return trace(value, cuts);
    }
    // In vain once each: the way back from one may lead through others.
    auto isTaken = [&](const DimCut& cut) { return taken_.count({value, cut.dim}) > 0; };
    if (!llvm::all_of(cuts, isTaken)) {
      const Mark before = mark();
      if (trace(value, cuts) && !takesStepsSince(before)) return true;
      goBack(before);
      for (const DimCut& cut : cuts) taken_.insert({value, cut.dim});
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

  bool isDataOfLoss(Operation* op, Value value) const {
    const bool isData =
        values_.fromInputs.contains(value) && !values_.fromParameters.contains(value);
    return isData && !upToLastWeights_.contains(op) &&
           llvm::any_of(op->getOperands(),
                        [&](Value other) { return values_.fromParameters.contains(other); });
  }

  bool takesStepsSince(const Mark& mark) {
    return llvm::any_of(llvm::ArrayRef(assigned_).drop_front(mark.assigned), [&](const auto& own) {
      return rule(own.first).factors[own.second].kind == FactorKind::kSteps;
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

  // Each rank has all of what data alone makes, a mask for all columns say, whoever takes pieces.
  void leaveOutData() {
    ops_.remove_if([&](const auto& entry) {
      return llvm::none_of(entry.first->getResults(),
                           [&](Value result) { return values_.fromParameters.contains(result); });
    });
  }

  std::vector<BlockCandidate::OutsideUse> outsideUses() {
    std::vector<BlockCandidate::OutsideUse> uses;
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
  const llvm::DenseSet<Operation*>& upToLastWeights_;
  RuleCache& rules_;
  const bool takesIndivisible_;
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

}  // namespace

std::string BlockCandidate::OutsideUse::whyNot() const {
  return "what " + ir::opText(producer) + " makes is also used by " + ir::opText(user);
}

int64_t BlockCandidate::elements() const {
  int64_t sum = 0;
  for (const TensorBlock::Cut& cut : block.cuts) {
    ir::ParameterOp parameter = cut.parameter;
    sum += parameter.getTensorType().getNumElements();
  }
  return sum;
}

bool BlockCandidate::has(Operation* op, const std::map<int, RankRange>& cuts) const {
  auto found = ops.find(op);
  return found != ops.end() && found->second == cuts;
}

const ShardingRule& RuleCache::of(Operation* op) {
  std::unique_ptr<ShardingRule>& rule = rules_[op];
  if (!rule) rule = std::make_unique<ShardingRule>(ruleOf(op));
  return *rule;
}

bool isReduced(const ShardingRule& rule, int factor) {
  const ir::Factor& own = rule.factors[factor];
  if (own.size == 1 || own.kind == FactorKind::kParallel) return false;
  for (unsigned i = 0; i < rule.results.size(); ++i) {
    if (rule.resultHas(i, factor)) return false;
  }
  return true;
}

llvm::DenseSet<Operation*> opsUpToLastWeights(mlir::func::FuncOp forward,
                                              const SegmentValues& values) {
  llvm::DenseSet<Value> weights;  // and what is made of nothing else
  for (auto [argument, parameter] : values.parameters) {
    if (ir::rankOf(argument) >= 2) weights.insert(argument);
  }
  auto isWeight = [&](Value value) { return weights.contains(value); };
  llvm::DenseSet<Operation*> found;
  mlir::Block& block = forward.getBody().front();
  for (Operation& op : block) {
    if (!llvm::any_of(op.getOperands(), isWeight)) continue;
    found.insert(&op);
    const bool isOfWeights = op.getNumResults() > 0 && !values.fromInputs.contains(op.getResult(0));
    if (isOfWeights) weights.insert(op.result_begin(), op.result_end());
  }
  for (Operation& op : llvm::reverse(block)) {
    auto isUpTo = [&](Operation* user) { return found.contains(user); };
    if (llvm::any_of(op.getUsers(), isUpTo)) found.insert(&op);
  }
  return found;
}

std::optional<BlockCandidate> findBlockCandidate(const BlockScope& scope, Operation* reduction,
                                                 int factor, int64_t ranks, std::string& why) {
  return BlockFinder(scope).find(reduction, factor, ranks, why);
}

std::optional<BlockCandidate> findLayerCandidate(const BlockScope& scope, Operation* layer,
                                                 int factor, int64_t ranks) {
  return BlockFinder(scope).findLayer(layer, factor, ranks);
}

bool comesInPieces(const BlockScope& scope, mlir::Value value, int64_t dim, int64_t ranks,
                   Operation* reader) {
  return BlockFinder(scope).comesInPieces(value, dim, ranks, reader);
}

}  // namespace oriel
