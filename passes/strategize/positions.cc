#include "passes/strategize/positions.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringMap.h"
#include "passes/strategize/sharding.h"

namespace oriel {

namespace {

using ir::FactorKind;
using ir::FactorList;
using ir::ShardingRule;
using mlir::Operation;
using mlir::OpResult;
using mlir::RankedTensorType;
using mlir::Value;

// The operand that has the result's type; null if there is none.
mlir::OpOperand* operandAlike(OpResult result) {
  for (mlir::OpOperand& operand : result.getOwner()->getOpOperands()) {
    if (operand.get().getType() == result.getType()) return &operand;
  }
  return nullptr;
}

bool differsAlong(int64_t dim, RankedTensorType a, RankedTensorType b) {
  if (a.getRank() != b.getRank() || a.getElementType() != b.getElementType()) return false;
  llvm::SmallVector<int64_t> shape(a.getShape());
  shape[dim] = b.getDimSize(dim);
  return llvm::ArrayRef<int64_t>(shape) == b.getShape();
}

// Of what a loss sums: [samples, positions, ..].
constexpr int64_t kPositions = 1;

class PositionFinder {
 public:
  explicit PositionFinder(mlir::ModuleOp module) {
    for (mlir::ModuleOp program : ir::programsOf(module)) {
      for (const char* kind : {"forward", "eval"}) {
        for (mlir::func::FuncOp segment : ir::segmentsOfKind(program, kind)) {
          segment.walk([&](ir::SendOp send) { sent_[send.getChannel()] = send.getInput(); });
          segments_.push_back(segment);
        }
      }
    }
  }
  explicit PositionFinder(mlir::func::FuncOp main) : segments_{main} {}

  Positions find() {
    for (mlir::func::FuncOp segment : segments_) begin(segment);
    if (found_.losses.empty()) beginBehindTokens();
    while (!left_.empty()) {
      auto [value, dim] = left_.pop_back_val();
      follow(value, dim);
    }
    return std::move(found_);
  }

 private:
  using PositionDim = std::pair<Value, int64_t>;

  // Behind what the segment returns as a single number, but for the backward.
  void begin(mlir::func::FuncOp segment) {
    llvm::SetVector<Value> numbers;
    auto addNumbers = [&](mlir::ValueRange values) {
      for (Value value : values) {
        RankedTensorType type = ir::tensorType(value);
        if (type.getRank() == 0 && type.getElementType().isFloat()) numbers.insert(value);
      }
    };
    Operation* terminator = segment.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(terminator->getOperands())) {
      mlir::FailureOr<ir::ValueRole> role = ir::resultRole(segment, i);
      if (succeeded(role) && role->kind != ir::ValueKind::kStash) addNumbers(value);
    }
    for (size_t i = 0; i < numbers.size(); ++i) {
      Operation* op = numbers[i].getDefiningOp();
      if (!op) continue;
      beginAt(op);
      addNumbers(op->getOperands());
    }
  }

  // Where samples and positions are summed to a single number.
  void beginAt(Operation* op) {
    const ShardingRule rule = ruleOf(op);
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      if (positionsOfLoss(ir::tensorType(operand)) == 1) continue;
      const FactorList& factors = rule.operands[i][kPositions];
      if (factors.size() != 1 || rule.factors[factors.front()].kind != FactorKind::kSum) continue;
      if (add(operand, kPositions)) found_.losses.insert({operand, kPositions});
    }
  }

  // A module that computes its loss itself may sum in any way. Its positions are those of its
  // tokens, of which there may be several: a preferred answer and a rejected one. Those that most
  // of the work is on come first.
  void beginBehindTokens() {
    std::vector<Tokens> all;
    for (const auto& [input, lookups] : lookupsByInput()) {
      if (!lookups.empty()) all.push_back(behind(lookups));
    }
    llvm::stable_sort(all, [](const Tokens& a, const Tokens& b) { return a.work > b.work; });
    for (const Tokens& tokens : all) {
      for (const PositionDim& end : tokens.ends) {
        if (add(end.first, end.second)) found_.losses.insert(end);
      }
    }
  }

  // What ops look up for an input of integers [samples.., positions], by the input's name.
  std::map<std::string, std::vector<PositionDim>> lookupsByInput() const {
    std::map<std::string, std::vector<PositionDim>> found;
    for (mlir::func::FuncOp segment : segments_) {
      for (mlir::BlockArgument argument : segment.getArguments()) {
        const RankedTensorType type = ir::tensorType(argument);
        mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
        const bool isTokens = succeeded(role) && role->kind == ir::ValueKind::kInput &&
                              type.getRank() >= 2 && type.getElementType().isInteger();
        if (!isTokens || type.getShape().back() == 1) continue;
        llvm::append_range(found[role->ref], lookupsOf(argument));
      }
    }
    return found;
  }

  // Of floats, with more dimensions, by indices that are made of the input.
  std::vector<PositionDim> lookupsOf(mlir::BlockArgument input) const {
    std::vector<PositionDim> found;
    llvm::DenseMap<Value, int64_t> indices;
    indices[input] = ir::rankOf(input) - 1;
    for (Operation& op : input.getOwner()->without_terminator()) {
      llvm::MapVector<Value, int64_t> own;
      for (Value operand : op.getOperands()) {
        if (auto known = indices.find(operand); known != indices.end()) {
          own.insert({operand, known->second});
        }
      }
      if (own.empty()) continue;
      addBehind(op, own);
      for (Value result : op.getResults()) {
        auto known = own.find(result);
        if (known == own.end()) continue;
        const RankedTensorType type = ir::tensorType(result);
        if (type.getElementType().isInteger()) {
          indices.insert(*known);
        } else if (type.getRank() >= 3) {
          found.push_back(*known);
        }
      }
    }
    return found;
  }

  struct Tokens {
    double work = 0;                // on all that has their positions
    std::vector<PositionDim> ends;  // what ops read that have none, or chunks of them
  };

  Tokens behind(llvm::ArrayRef<PositionDim> lookups) const {
    Tokens tokens;
    llvm::MapVector<Value, int64_t> dims;
    for (const PositionDim& lookup : lookups) dims.insert(lookup);
    for (mlir::func::FuncOp segment : segments_) {
      for (Operation& op : segment.getBody().front().without_terminator()) {
        addBehind(op, dims);
        const bool hasSome =
            llvm::any_of(op.getResults(), [&](Value result) { return dims.contains(result); });
        if (hasSome) tokens.work += ir::workFlops(&op);
      }
    }
    const int64_t count = ir::tensorType(lookups.front().first).getDimSize(lookups.front().second);
    for (const PositionDim& each : dims) {
      const bool isEnd = llvm::any_of(each.first.getUsers(), [&](Operation* user) {
        // Another stage goes on with what is sent.
        return user->getNumResults() > 0 &&
               llvm::none_of(user->getResults(), [&](Value own) { return dims.contains(own); });
      });
      if (isEnd && ir::tensorType(each.first).getDimSize(each.second) == count) {
        tokens.ends.push_back(each);
      }
    }
    return tokens;
  }

  // Adds the op's results that have positions of its operands, perhaps in chunks, outermost first.
  void addBehind(Operation& op, llvm::MapVector<Value, int64_t>& dims) const {
    if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) {
      auto sent = sent_.find(receive.getChannel());
      auto known = sent == sent_.end() ? dims.end() : dims.find(sent->second);
      if (known != dims.end()) dims.insert({receive.getResult(), known->second});
      return;
    }
    const bool hasSome =
        llvm::any_of(op.getOperands(), [&](Value operand) { return dims.contains(operand); });
    if (!hasSome) return;
    const ShardingRule rule = ruleOf(&op);
    for (mlir::OpOperand& operand : op.getOpOperands()) {
      auto known = dims.find(operand.get());
      if (known == dims.end()) continue;
      const int64_t dim = known->second;
      const FactorList& factors = rule.operands[operand.getOperandNumber()][dim];
      for (OpResult result : op.getResults()) {
        if (factors.empty() && operandAlike(result) == &operand) dims.insert({result, dim});
        for (auto [place, own] : llvm::enumerate(rule.results[result.getResultNumber()])) {
          const bool isOfThese = !factors.empty() && !own.empty() && own.front() == factors.front();
          if (isOfThese) dims.insert({result, static_cast<int64_t>(place)});
        }
      }
    }
  }

  bool add(Value value, int64_t dim) {
    if (ir::tensorType(value).getDimSize(dim) == 1 || !seen_.insert(value).second) return false;
    left_.emplace_back(value, dim);
    return true;
  }

  void follow(Value value, int64_t dim) {
    auto result = llvm::dyn_cast<OpResult>(value);
    if (!result) return;
    found_.dims.insert({value, dim});
    Operation* op = result.getOwner();
    if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(op)) {
      auto sent = sent_.find(receive.getChannel());
      if (sent != sent_.end()) add(sent->second, dim);
      return;
    }
    const ShardingRule rule = ruleOf(op);
    const FactorList& factors = rule.results[result.getResultNumber()][dim];
    if (factors.empty()) {
      if (mlir::OpOperand* alike = operandAlike(result)) {
        add(alike->get(), dim);
      } else {
        // Others of the same: a slice of them, or with a prefix in front.
        for (Value operand : op->getOperands()) {
          if (differsAlong(dim, ir::tensorType(operand), ir::tensorType(value))) add(operand, dim);
        }
      }
      return;
    }
    for (auto [operand, dims] : llvm::zip_equal(op->getOperands(), rule.operands)) {
      for (auto [i, own] : llvm::enumerate(dims)) {
        // What is cut is the outermost: it may be a part of the operand's dimension.
        const bool isOuter =
            own.size() >= factors.size() && std::equal(factors.begin(), factors.end(), own.begin());
        if (isOuter) add(operand, static_cast<int64_t>(i));
      }
    }
  }

  llvm::SmallVector<mlir::func::FuncOp> segments_;
  llvm::StringMap<Value> sent_;  // by channel
  llvm::DenseSet<Value> seen_;
  llvm::SmallVector<PositionDim> left_;
  Positions found_;
};

}  // namespace

int64_t positionsOfLoss(RankedTensorType summed) {
  return summed.getRank() < 3 ? 1 : summed.getDimSize(kPositions);
}

Positions findPositions(mlir::ModuleOp module) { return PositionFinder(module).find(); }

int64_t positionsOfOwnLoss(mlir::func::FuncOp main) {
  const Positions positions = PositionFinder(main).find();
  if (positions.losses.empty()) return 1;
  const auto& [value, dim] = positions.losses.front();
  return ir::tensorType(value).getDimSize(dim);
}

std::map<WholePositions, Operation*> opsOfAllPositions(const Positions& positions,
                                                       mlir::ModuleOp program) {
  std::map<WholePositions, Operation*> kinds;
  for (auto [value, dim] : positions.dims) {
    auto result = llvm::cast<OpResult>(value);
    if (result.getOwner()->getParentOfType<mlir::ModuleOp>() != program) continue;
    const ShardingRule rule = ruleOf(result.getOwner());
    mlir::OpOperand* alike = operandAlike(result);
    if (!rule.results[result.getResultNumber()][dim].empty() || !alike) continue;
    WholePositions sizes;
    for (const FactorList& factors : rule.operands[alike->getOperandNumber()]) {
      std::vector<int64_t>& own = sizes.emplace_back();
      for (int factor : factors) own.push_back(rule.factors[factor].size);
    }
    // Found from the end of the model on.
    kinds[std::move(sizes)] = result.getOwner();
  }
  return kinds;
}

RankParts partsOf(int64_t ranks, const WholePositions& dims, llvm::ArrayRef<int64_t> taken) {
  RankParts best;
  for (auto [factors, others] : llvm::zip_equal(dims, taken)) {
    RankParts parts;
    int64_t left = others;
    for (int64_t size : factors) {
      const int64_t before = std::gcd(size, left);
      const int64_t own = std::gcd(size / before, ranks / parts.pieces);
      left /= before;
      parts.pieces *= own;
      if (own > 1 && parts.pieces < ranks) parts.outer.push_back(parts.pieces);
      // An inner factor is cut where the outer ones are cut to single elements.
      if (own * before != size) break;
    }
    const bool isBetter = parts.pieces > best.pieces ||
                          (parts.pieces == best.pieces && parts.outer.size() < best.outer.size());
    if (isBetter) best = std::move(parts);
  }
  return best;
}

llvm::DenseMap<Value, PositionsOfValue> positionsBehind(mlir::func::FuncOp forward,
                                                        const Positions& positions,
                                                        int64_t dataRanks) {
  llvm::DenseMap<Value, PositionsOfValue> found;
  for (auto [value, dim] : positions.dims) {
    found[value] = {dim, ir::tensorType(value).getDimSize(dim)};
  }
  for (Operation& op : forward.getBody().front().without_terminator()) {
    const ShardingRule rule = ruleOf(&op);
    for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
      auto known = found.find(operand);
      if (known == found.end()) continue;
      const auto [operandDim, count] = known->second;
      const FactorList& factors = rule.operands[i][operandDim];
      if (factors.empty()) continue;
      auto hasPositions = [&](const FactorList& own) {
        const llvm::ArrayRef<int> all(own);
        const bool isBehindSamples = dataRanks > 1 && !own.empty() && operandDim > 0 &&
                                     rule.factors[own.front()].size == dataRanks &&
                                     llvm::is_contained(rule.operands[i][0], own.front());
        return own == factors || (isBehindSamples && all.drop_front() == llvm::ArrayRef(factors));
      };
      for (auto [result, own] : llvm::zip_equal(op.getResults(), rule.results)) {
        auto* dim = llvm::find_if(own, hasPositions);
        if (dim != own.end()) found.try_emplace(result, PositionsOfValue{dim - own.begin(), count});
      }
    }
  }
  return found;
}

void setPositions(const Positions& positions) {
  for (auto [value, dim] : positions.dims) {
    auto result = llvm::cast<OpResult>(value);
    Operation* op = result.getOwner();
    llvm::SmallVector<int64_t> dims(op->getNumResults(), -1);
    if (auto known = op->getAttrOfType<mlir::DenseI64ArrayAttr>(kPositionsAttr)) {
      dims.assign(known.asArrayRef().begin(), known.asArrayRef().end());
    }
    dims[result.getResultNumber()] = dim;
    op->setAttr(kPositionsAttr, mlir::DenseI64ArrayAttr::get(op->getContext(), dims));
  }
}

}  // namespace oriel
