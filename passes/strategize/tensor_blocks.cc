#include "passes/strategize/tensor_blocks.h"

#include <map>
#include <optional>
#include <set>

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

// Follows the cut of one reduction's factor back to where it comes from.
class BlockFinder {
 public:
  BlockFinder(const SegmentValues& values, const TensorBlockOptions& options)
      : values_(values), options_(options) {}

  // None if the factor's pieces are not made of parameters' pieces; `why` says what is in the way.
  std::optional<TensorBlock> find(Operation* reduction, int factor, int64_t ranks,
                                  std::string& why) {
    block_.reduction = reduction;
    ranks_ = ranks;
    const ShardingRule& own = rule(reduction);
    if (!assign(reduction, factor, {1, ranks})) return std::nullopt;
    if (own.factors[factor].size % ranks != 0) {
      setIndivisible(own.factors[factor].size, reduction);
    }
    bool found = traceOperands(reduction) && isUsedWithin() && needsInput();
    why = why_;
    if (!found || block_.cuts.empty()) return std::nullopt;
    return std::move(block_);
  }

  const llvm::MapVector<Operation*, std::map<int, RankRange>>& ops() const { return ops_; }

 private:
  bool fail(const llvm::Twine& why) {
    why_ = why.str();
    return false;
  }

  const ShardingRule& rule(Operation* op) {
    auto [it, isNew] = rules_.try_emplace(op);
    if (isNew) it->second = std::make_unique<ShardingRule>(ruleOf(op));
    return *it->second;
  }

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
    return true;
  }

  // The cut of a dimension of a value comes from cuts of what its op takes.
  bool trace(Value value, int64_t dim, RankRange range) {
    if (range.size == 1) return true;
    auto [seen, isNew] = traced_.try_emplace({value, dim}, range);
    if (!isNew) return seen->second == range || fail("a value would be cut in two ways");
    if (llvm::isa<mlir::BlockArgument>(value)) return traceArgument(value, dim, range);
    auto result = llvm::cast<mlir::OpResult>(value);
    Operation* op = result.getOwner();
    // Each rank has all of a constant, and takes its piece.
    if (op->hasTrait<mlir::OpTrait::ConstantLike>()) return true;
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
        if (!trace(operand, static_cast<int64_t>(dim), range)) return false;
      }
    }
    return true;
  }

  // A value that is computed in pieces is used by no one else.
  bool isUsedWithin() {
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
          return fail("it is also used by " + ir::opText(user));
        }
      }
    }
    return true;
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
  int64_t ranks_ = 1;
  TensorBlock block_;
  std::string why_;
  llvm::MapVector<Operation*, std::map<int, RankRange>> ops_;  // cuts of factors
  struct Less {
    bool operator()(const std::pair<Value, int64_t>& a, const std::pair<Value, int64_t>& b) const {
      return std::pair(a.first.getAsOpaquePointer(), a.second) <
             std::pair(b.first.getAsOpaquePointer(), b.second);
    }
  };
  std::map<std::pair<Value, int64_t>, RankRange, Less> traced_;
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

// The sizes of tensor parallelism that parameters have.
std::set<int64_t> rankCounts(const SegmentValues& values, const TensorBlockOptions& options) {
  std::set<int64_t> counts;
  for (const auto& [value, parameter] : values.parameters) {
    int64_t ranks = options.ranks(parameter);
    if (ranks > 1) counts.insert(ranks);
  }
  return counts;
}

}  // namespace

std::vector<TensorBlock> findTensorBlocks(mlir::func::FuncOp forward,
                                          const TensorBlockOptions& options,
                                          std::vector<std::string>* notes) {
  SegmentValues values = readValues(forward);
  std::vector<TensorBlock> blocks;
  llvm::DenseMap<Operation*, std::map<int, RankRange>> taken;
  std::map<std::string, std::pair<int64_t, RankRange>> cutOf;  // by parameter symbol
  auto fits = [&](const TensorBlock& block, const BlockFinder& finder) {
    for (const TensorBlock::Cut& cut : block.cuts) {
      auto known = cutOf.find(ir::ParameterOp(cut.parameter).getSymName().str());
      if (known != cutOf.end() && known->second != std::pair(cut.dim, cut.range)) return false;
    }
    return llvm::all_of(finder.ops(), [&](const auto& entry) {
      auto known = taken.find(entry.first);
      return known == taken.end() || known->second == entry.second;
    });
  };
  std::set<int64_t> counts = rankCounts(values, options);
  std::vector<std::pair<Operation*, std::string>> unsplit;
  for (Operation& op : forward.getBody().front()) {
    ShardingRule rule = ruleOf(&op);
    for (int factor = 0; factor < static_cast<int>(rule.factors.size()); ++factor) {
      if (!isReduced(rule, factor)) continue;
      for (int64_t ranks : counts) {
        BlockFinder finder(values, options);
        std::string why;
        std::optional<TensorBlock> block = finder.find(&op, factor, ranks, why);
        if (!block || !fits(*block, finder)) {
          if (!why.empty()) {
            unsplit.emplace_back(&op, ir::opText(&op) + " is not split over " +
                                          std::to_string(ranks) + " ranks: " + why);
          }
          continue;
        }
        for (const auto& [member, cuts] : finder.ops()) taken[member] = cuts;
        for (const TensorBlock::Cut& cut : block->cuts) {
          cutOf.try_emplace(ir::ParameterOp(cut.parameter).getSymName().str(),
                            std::pair(cut.dim, cut.range));
        }
        blocks.push_back(std::move(*block));
        break;
      }
    }
  }
  // A product of a parameter that is cut otherwise needs no excuse.
  for (auto& [op, note] : unsplit) {
    bool isCut = llvm::any_of(op->getOperands(), [&](Value operand) {
      auto parameter = values.parameters.find(operand);
      return parameter != values.parameters.end() &&
             cutOf.count(ir::ParameterOp(parameter->second).getSymName().str()) > 0;
    });
    if (notes && !isCut) notes->push_back(std::move(note));
  }
  return blocks;
}

}  // namespace oriel
