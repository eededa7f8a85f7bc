#include "passes/divide/grown_block.h"

#include <cmath>
#include <iterator>
#include <numeric>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Matchers.h"
#include "passes/divide/at_zero.h"
#include "passes/strategize/padding.h"
#include "passes/strategize/parameter_part.h"
#include "passes/strategize/sharding.h"

namespace oriel {

namespace {

using ir::FactorList;
using ir::ShardingRule;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::Value;

bool hasResult(const ShardingRule& rule, int factor) {
  for (unsigned i = 0; i < rule.results.size(); ++i) {
    if (rule.resultHas(i, factor)) return true;
  }
  return false;
}

// The dimension that has the factor.
std::optional<int64_t> dimOf(const ir::TensorFactors& dims, int factor) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (llvm::is_contained(factors, factor)) return dim;
  }
  return std::nullopt;
}

class BlockGrower {
 public:
  BlockGrower(mlir::func::FuncOp main, const JoinedBlocks& blocks, const GrowthRanks& ranks)
      : blocks_(blocks), ranks_(ranks), values_(readValues(main)) {
    for (Operation& op : main.getBody().front()) {
      if (blocks.ops.contains(&op)) ops_.push_back({&op, ruleOf(&op)});
    }
    for (auto [argument, parameter] : values_.parameters) {
      arguments_[ir::ParameterOp(parameter).getSymName()] = argument;
    }
  }

  std::optional<Growth> run(std::string& why) {
    if (!findFactors() || !mayGrow()) {
      why = std::move(why_);
      return std::nullopt;
    }
    for (const TensorBlock::Cut& cut : cuts_) {
      Value argument = argumentOf(cut);
      original_[argument] = argument.getType();
      argument.setType(grown(ir::tensorType(argument), stripesOf(cut)));
    }
    if (!llvm::all_of(ops_, [&](const Part& part) { return create(part); })) {
      undo();
      why = std::move(why_);
      return std::nullopt;
    }
    for (const TensorBlock::Cut& cut : cuts_) {
      padParameter(cut.parameter, cut.dim, ir::tensorType(argumentOf(cut)).getDimSize(cut.dim),
                   groups_);
      growth_.parameters.push_back(cut.parameter);
    }
    replace();
    growth_.from *= groups_;
    growth_.to *= groups_;
    return growth_;
  }

 private:
  // The ops that a builder made.
  struct Recorder : mlir::OpBuilder::Listener {
    void notifyOperationInserted(Operation* op, mlir::OpBuilder::InsertPoint) override {
      ops.push_back(op);
    }
    llvm::SmallVector<Operation*> ops;
  };

  // An op of the blocks, with the one factor that grows, each of so many groups that it is made of.
  struct Part {
    Operation* op;
    ShardingRule rule;
    int factor = -1;
    int64_t groups = 1;
  };

  // A dimension of so many times `from` elements that grow to `to`, with zeros behind each.
  struct Stripes {
    int64_t dim, count, from, to;
  };

  bool fail(const llvm::Twine& why) {
    why_ = why.str();
    return false;
  }

  Value argumentOf(const TensorBlock::Cut& cut) const {
    return arguments_.lookup(ir::ParameterOp(cut.parameter).getSymName());
  }

  int64_t grown(int64_t size) const { return size / growth_.from * growth_.to; }
  static RankedTensorType grown(RankedTensorType type, const Stripes& stripes) {
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape[stripes.dim] = stripes.count * stripes.to;
    return type.clone(shape);
  }

  Stripes stripesOf(int64_t dim, int64_t count, int64_t size) const {
    return {dim, count, size / count, grown(size / count)};
  }
  Stripes stripesOf(const TensorBlock::Cut& cut) const {
    return stripesOf(cut.dim, groups_, ir::tensorType(argumentOf(cut)).getDimSize(cut.dim));
  }
  // None for a tensor without the factor.
  std::optional<Stripes> stripesOf(const Part& part, const ir::TensorFactors& dims) const {
    const std::optional<int64_t> dim = dimOf(dims, part.factor);
    if (!dim) return std::nullopt;
    int64_t count = part.groups, size = 1;
    bool isOutside = true;
    for (int factor : dims[*dim]) {
      isOutside &= factor != part.factor;
      (isOutside ? count : size) *= part.rule.factors[factor].size;
    }
    return stripesOf(*dim, count, size / part.groups * count);
  }
  // Of an operand; the weights of a norm over what grows are of its size, too.
  std::optional<Stripes> stripesOf(const Part& part, unsigned operand) const {
    if (!isNormOfRow(part) || operand == 0) return stripesOf(part, part.rule.operands[operand]);
    return stripesOf(/*dim=*/0, part.groups, part.rule.factors[part.factor].size);
  }

  const std::map<int, RankRange>& cutsOf(Operation* op) const {
    return blocks_.ops.find(op)->second;
  }

  // Where ranks share something, as keys that a group of queries has, what they share makes groups,
  // each over some of the ranks.
  bool findGroups() {
    for (const Part& part : ops_) {
      for (const auto& [factor, range] : cutsOf(part.op)) {
        if (range.outer == 1 || part.rule.factors[factor].size % range.size == 0) continue;
        if (groups_ != 1 && groups_ != range.outer) return fail("ranks share it in several ways");
        groups_ = range.outer;
      }
    }
    return ranks_.common % groups_ == 0 || fail("ranks of other stages share it in other ways");
  }

  // What grows is made of the same number of equal pieces everywhere.
  bool findFactors() {
    if (!findGroups()) return false;
    for (Part& part : ops_) {
      for (const auto& [factor, range] : cutsOf(part.op)) {
        const bool isOfGroups = groups_ > 1 && range == RankRange{1, groups_};
        if (range.size == 1 || isOfGroups) continue;
        const bool isWhole = range == RankRange{1, ranks_.count};
        const bool isWithin = range == RankRange{groups_, ranks_.count / groups_};
        const int64_t size = part.rule.factors[factor].size;
        part.groups = isWhole ? groups_ : 1;
        if (part.factor >= 0 || !(isWhole || isWithin) || size % part.groups != 0) {
          return fail(ir::opText(part.op) + " is cut along several dimensions");
        }
        part.factor = factor;
        growth_.from = std::gcd(growth_.from, size / part.groups);
      }
      if (part.factor >= 0) growing_.insert(part.op);
    }
    llvm::erase_if(ops_, [](const Part& part) { return part.factor < 0; });
    llvm::copy_if(blocks_.cuts, std::back_inserter(cuts_), [&](const TensorBlock::Cut& cut) {
      return !(groups_ > 1 && cut.range == RankRange{1, groups_});
    });
    growth_.to = static_cast<int64_t>(llvm::alignTo(growth_.from, ranks_.divisor / groups_));
    if (growth_.to == growth_.from) return fail("these ranks divide it");
    return growth_.to < growth_.from * (ranks_.count / groups_) ||
           fail("each rank would have as much as there is");
  }

  bool mayGrow() {
    for (const Part& part : ops_) {
      const bool isNorm = isNormOfRow(part);
      if (isOfRow(part) && !isNorm) return fail(ir::opText(part.op) + " needs all of it");
      if (!isFiniteAtZero(part) && !operandAboveZero(part.op)) {
        return fail(ir::opText(part.op) + " may not be finite at zero");
      }
      if (isNorm && !ir::RmsNormOp(part.op).getInvRms().use_empty()) {
        return fail("its root mean square is read");
      }
      for (mlir::OpResult result : part.op->getResults()) {
        if (!part.rule.resultHas(result.getResultNumber(), part.factor)) continue;
        for (Operation* user : result.getUsers()) {
          if (!isWithin(user) && !user->hasTrait<mlir::OpTrait::IsTerminator>()) {
            return fail(ir::opText(user) + " reads it, too");
          }
        }
      }
    }
    return llvm::all_of(cuts_, [&](const TensorBlock::Cut& cut) { return mayGrow(cut); });
  }

  bool mayGrow(const TensorBlock::Cut& cut) {
    Value argument = argumentOf(cut);
    const std::string name = '"' + uniqueName(cut.parameter) + '"';
    const bool isDivided =
        argument && cut.range == RankRange{1, ranks_.count} &&
        ir::tensorType(argument).getDimSize(cut.dim) % (groups_ * growth_.from) == 0;
    if (!isDivided) return fail(name + " is cut otherwise");
    if (unpaddedShape(cut.parameter)) return fail(name + " is padded for others");
    return llvm::all_of(argument.getUsers(), [&](Operation* user) { return isWithin(user); }) ||
           fail(name + " is read elsewhere, too");
  }

  bool isWithin(Operation* op) const { return growing_.contains(op); }

  static bool isOfRow(const Part& part) {
    return part.rule.factors[part.factor].kind == ir::FactorKind::kSteps &&
           hasResult(part.rule, part.factor);
  }
  // Of all heads, say.
  static bool isNormOfRow(const Part& part) {
    return isOfRow(part) && llvm::isa<ir::RmsNormOp>(part.op);
  }

  // Of operands with the factor that are made of parameters; data have true elements again. Which
  // elements a dropout drops depends on their places.
  bool isFiniteAtZero(const Part& part) const {
    if (llvm::isa<ir::DropoutOp>(part.op) || mayHideAll(part)) return false;
    if (!hasResult(part.rule, part.factor) && !endsBlock(part.op)) return false;
    if (isSmoothAtZero(part.op)) return true;
    for (auto [i, operand] : llvm::enumerate(part.op->getOperands())) {
      const bool isFloat = llvm::isa<mlir::FloatType>(ir::tensorType(operand).getElementType());
      if (!isFloat || !values_.fromParameters.contains(operand)) continue;
      if (!part.rule.operandHas(i, part.factor)) continue;
      const bool isLinear = llvm::any_of(part.rule.linear, [i = i](const auto& group) {
        return llvm::is_contained(group, static_cast<unsigned>(i));
      });
      if (!isLinear) return false;
    }
    return true;
  }

  // Whether it may make rows of -inf, as a mask of activations does: what is above zero, say.
  bool mayHideAll(const Part& part) const {
    auto isOfParameters = [&](Value value) {
      auto type = ir::tensorType(value);
      return values_.fromParameters.contains(value) &&
             !llvm::isa<mlir::FloatType>(type.getElementType());
    };
    if (llvm::isa<ir::AttentionOp>(part.op)) {
      return llvm::any_of(part.op->getOperands(), isOfParameters);
    }
    if (!llvm::isa<ir::SelectOp>(part.op) || !isOfParameters(part.op->getOperand(0))) return false;
    return llvm::any_of(part.op->getOperands().drop_front(), [](Value value) {
      llvm::APFloat constant(0.0);
      return mlir::matchPattern(value, mlir::m_ConstantFloat(&constant)) && !constant.isFinite();
    });
  }

  bool isFiniteBehind(Operation* op) const {
    constexpr double kClearlyAboveZero = 1e-6;
    const std::optional<unsigned> operand = operandAboveZero(op);
    if (!operand) return false;
    auto known = behind_.find(op->getOperand(*operand));
    return known != behind_.end() && known->second > kClearlyAboveZero;
  }

  bool create(const Part& part) {
    mlir::OpBuilder builder(part.op, &created_);
    const bool sums = isNormOfRow(part) || !hasResult(part.rule, part.factor);
    llvm::SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(part.op->getOperands())) {
      Value made = made_.lookup(operand);
      const std::optional<Stripes> stripes = stripesOf(part, static_cast<unsigned>(i));
      if (!made) made = stripes ? grownOperand(builder, operand, *stripes) : operand;
      const RankedTensorType own = originalType(operand);
      if (ir::tensorType(made) != (stripes ? grown(own, *stripes) : own)) {
        return fail(ir::opText(part.op) + " takes it otherwise");
      }
      operands.push_back(sums && stripes ? zeroBehind(builder, made, *stripes) : made);
    }
    mlir::OperationState state(part.op->getLoc(), part.op->getName(), {}, {}, part.op->getAttrs());
    if (isNormOfRow(part)) {
      makeNormOfTrue(ir::RmsNormOp(part.op), builder, operands[1], state);
    }
    state.addOperands(operands);
    for (auto [type, dims] : llvm::zip_equal(part.op->getResultTypes(), part.rule.results)) {
      auto tensor = llvm::cast<RankedTensorType>(type);
      const std::optional<Stripes> stripes = stripesOf(part, dims);
      state.addTypes(stripes ? grown(tensor, *stripes) : tensor);
    }
    growAttributes(part, builder, state);
    Operation* op = builder.create(state);
    if (!hasGrownRule(op, part)) return fail(ir::opText(part.op) + " depends on their number");
    if (!isFiniteAtZero(part) && !isFiniteBehind(op)) {
      return fail(ir::opText(part.op) + " may not be finite at zero");
    }
    noteBehind(op, part);
    for (auto [old, now] : llvm::zip_equal(part.op->getResults(), op->getResults())) {
      made_[old] = now;
    }
    return true;
  }

  void growAttributes(const Part& part, mlir::OpBuilder& builder,
                      mlir::OperationState& state) const {
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(part.op)) {
      llvm::SmallVector<int64_t> limits(slice.getLimits());
      int64_t& limit = limits[*dimOf(part.rule.operands[0], part.factor)];
      limit = grown(limit);
      state.attributes.set(slice.getLimitsAttrName(), builder.getDenseI64ArrayAttr(limits));
    }
    // Depthwise.
    auto conv = llvm::dyn_cast<ir::ConvOp>(part.op);
    if (conv && conv.getGroup() % growth_.from == 0) {
      state.attributes.set(conv.getGroupAttrName(),
                           builder.getI64IntegerAttr(grown(conv.getGroup())));
    }
  }

  // With zeros behind, the mean square of a row is s = from / to of the true one: with s times the
  // epsilon, what it is divided by is √s of that, too. So is the weight, which has one element for
  // many of the row, and stays f32 where these do not.
  void makeNormOfTrue(ir::RmsNormOp norm, mlir::OpBuilder& builder, Value& weight,
                      mlir::OperationState& state) const {
    const mlir::Location loc = norm.getLoc();
    const double share = static_cast<double>(growth_.from) / static_cast<double>(growth_.to);
    if (norm.getWeightOffset() != 0) {
      Value offset = ir::scalarConstant(builder, loc, norm.getWeightOffset(), weight);
      weight = ir::AddOp::create(builder, loc, weight, offset);
    }
    Value root = ir::scalarConstant(builder, loc, std::sqrt(share), weight);
    weight = ir::MulOp::create(builder, loc, weight, root);
    state.attributes.set(norm.getEpsilonAttrName(),
                         builder.getF64FloatAttr(share * norm.getEpsilon()));
    state.attributes.set(norm.getWeightOffsetAttrName(), builder.getF64FloatAttr(0));
  }

  RankedTensorType originalType(Value value) const {
    auto known = original_.find(value);
    return llvm::cast<RankedTensorType>(known == original_.end() ? value.getType() : known->second);
  }

  // A parameter is larger already; what each rank has all of gets zeros, and what data alone makes
  // its last element again: in a mask that hides all, a softmax would find nothing.
  Value grownOperand(mlir::OpBuilder& builder, Value operand, const Stripes& stripes) {
    if (original_.contains(operand)) {
      behind_[operand] = 0;
      return operand;
    }
    // Of one dimension of it in one way, mostly.
    Value& padded = padded_[{operand, {stripes.dim, stripes.count}}];
    if (padded) return padded;
    const RankedTensorType type = ir::tensorType(operand);
    const int64_t dim = stripes.count == 1 ? stripes.dim : stripes.dim + 1;
    const int64_t added = stripes.to - stripes.from;
    padded = reshape(builder, operand, apartType(type, stripes, stripes.from));
    const bool isData = !values_.fromParameters.contains(operand);
    if (isData) {
      padded = withLastAgain(builder, padded, dim, added);
    } else {
      llvm::SmallVector<int64_t> none(ir::rankOf(padded), 0), high = none;
      high[dim] = added;
      padded = ir::PadOp::create(builder, operand.getLoc(), padded, none, high, none);
    }
    padded = reshape(builder, padded, grown(type, stripes));
    if (!isData) behind_[padded] = 0;
    return padded;
  }

  static Value withLastAgain(mlir::OpBuilder& builder, Value value, int64_t dim, int64_t times) {
    const mlir::Location loc = value.getLoc();
    const RankedTensorType type = ir::tensorType(value);
    llvm::SmallVector<int64_t> shape(type.getShape());
    Value last = ir::sliceDim(builder, loc, value, dim, shape[dim] - 1, 1, /*folds=*/true);
    shape[dim] = times;
    Value again = builder.createOrFold<ir::BroadcastOp>(loc, type.clone(shape), last);
    return builder.createOrFold<ir::ConcatOp>(loc, mlir::ValueRange{value, again},
                                              static_cast<uint64_t>(dim));
  }

  // With the stripes, if there are several, along a dimension of their own, of so many elements
  // each.
  static RankedTensorType apartType(RankedTensorType type, const Stripes& stripes, int64_t size) {
    if (stripes.count == 1) return type;
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape[stripes.dim] = size;
    shape.insert(shape.begin() + stripes.dim, stripes.count);
    return type.clone(shape);
  }

  static Value reshape(mlir::OpBuilder& builder, Value value, RankedTensorType type) {
    // Of a constant, another one.
    return value.getDefiningOp<ir::ConstantOp>() && value.getType() != type
               ? builder.createOrFold<ir::ReshapeOp>(value.getLoc(), type, value)
               : ir::reshapeTo(builder, value.getLoc(), value, type);
  }

  Value zeroBehind(mlir::OpBuilder& builder, Value value, const Stripes& stripes) {
    if (isZeroBehind(value)) return value;
    Value& masked = masked_[value];
    if (masked) return masked;
    const RankedTensorType type = ir::tensorType(value);
    const mlir::Location loc = value.getLoc();
    llvm::SmallVector<int64_t> shape(type.getRank() - stripes.dim, 1);
    shape.front() = type.getDimSize(stripes.dim);
    auto index = RankedTensorType::get(shape, builder.getI64Type());
    Value iota =
        ir::IotaOp::create(builder, loc, apartType(index, {0, stripes.count, 0, 0}, stripes.to),
                           /*dim=*/stripes.count == 1 ? 0 : 1);
    Value end = ir::ConstantOp::create(
        builder, loc,
        mlir::DenseElementsAttr::get(index.clone(llvm::ArrayRef<int64_t>{}), stripes.from));
    Value isTrue = ir::LessOp::create(builder, loc, iota, end);
    isTrue = reshape(builder, isTrue, index.clone(builder.getI1Type()));
    Value zero = ir::scalarConstant(builder, loc, 0, value);
    masked = ir::SelectOp::create(builder, loc, isTrue, value, zero);
    behind_[masked] = 0;
    return masked;
  }

  // Whether it is the rule of the old one with a larger factor.
  bool hasGrownRule(Operation* op, const Part& part) const {
    const ShardingRule rule = ruleOf(op);
    ShardingRule expected = part.rule;
    int64_t& size = expected.factors[part.factor].size;
    size = grown(size);
    auto equal = [](const ir::Factor& one, const ir::Factor& other) {
      return one.size == other.size && one.kind == other.kind;
    };
    return std::equal(rule.factors.begin(), rule.factors.end(), expected.factors.begin(),
                      expected.factors.end(), equal) &&
           rule.operands == expected.operands && rule.results == expected.results;
  }

  bool isZeroBehind(Value value) const {
    auto known = behind_.find(value);
    return known != behind_.end() && known->second == 0;
  }

  std::optional<double> numberBehind(Value value) const {
    auto known = behind_.find(value);
    if (known != behind_.end()) return known->second;
    llvm::APFloat constant(0.0);
    const bool isKnown = mlir::matchPattern(value, mlir::m_ConstantFloat(&constant));
    return isKnown ? std::optional(constant.convertToDouble()) : std::nullopt;
  }

  void noteBehind(Operation* op, const Part& part) {
    if (!part.rule.resultHas(0, part.factor)) return;
    auto isZero = [&](Value value) { return isZeroBehind(value); };
    const bool isZeroOfLinear = llvm::any_of(part.rule.linear, [&](const auto& group) {
      return !group.empty() &&
             llvm::all_of(group, [&](unsigned i) { return isZero(op->getOperand(i)); });
    });
    std::optional<double> value =
        isZeroOfLinear || givesZero(op, isZero)
            ? std::optional(0.0)
            : valueOf(op, [&](Value operand) { return numberBehind(operand); });
    if (value) behind_[op->getResult(0)] = *value;
  }

  void undo() {
    for (Operation* op : llvm::reverse(created_.ops)) op->erase();
    for (auto [argument, type] : original_) argument.setType(type);
  }

  // What the function returns has its size.
  void replace() {
    for (const Part& part : ops_) {
      mlir::OpBuilder builder(part.op, &created_);
      for (mlir::OpResult result : part.op->getResults()) {
        Value now = made_.lookup(result);
        const std::optional<Stripes> stripes =
            stripesOf(part, part.rule.results[result.getResultNumber()]);
        auto isOutside = [&](mlir::OpOperand& use) { return !isWithin(use.getOwner()); };
        if (stripes && llvm::any_of(result.getUses(), isOutside)) {
          const RankedTensorType type = ir::tensorType(result);
          now = reshape(builder, now, apartType(ir::tensorType(now), *stripes, stripes->to));
          now =
              ir::sliceDim(builder, result.getLoc(), now,
                           stripes->count == 1 ? stripes->dim : stripes->dim + 1, 0, stripes->from);
          now = reshape(builder, now, type);
        }
        result.replaceUsesWithIf(now, isOutside);
      }
    }
    for (const Part& part : llvm::reverse(ops_)) part.op->erase();
    // What folded into others.
    for (Operation* op : llvm::reverse(created_.ops)) {
      if (op->use_empty()) op->erase();
    }
  }

  const JoinedBlocks& blocks_;
  const GrowthRanks ranks_;
  const SegmentValues values_;
  int64_t groups_ = 1;
  Growth growth_;          // of a group
  std::vector<Part> ops_;  // that grow, in the order of the function
  llvm::DenseSet<Operation*> growing_;
  std::vector<TensorBlock::Cut> cuts_;          // of parameters that grow
  llvm::StringMap<Value> arguments_;            // by symbol
  llvm::DenseMap<Value, mlir::Type> original_;  // types of parameters
  llvm::DenseMap<Value, Value> made_;           // for results of `ops_`
  Recorder created_;
  llvm::DenseMap<Value, Value> masked_;  // with zeros behind
  // What each rank has all of, grown, by how: the dimension and its number of stripes.
  llvm::DenseMap<std::pair<Value, std::pair<int64_t, int64_t>>, Value> padded_;
  llvm::DenseMap<Value, double> behind_;  // the true elements, where it is known
  std::string why_;
};

}  // namespace

bool endsBlock(Operation* op) { return llvm::isa<ir::LinearOp, ir::ExpertLinearOp>(op); }

std::optional<Growth> growBlocks(mlir::func::FuncOp main, const JoinedBlocks& blocks,
                                 const GrowthRanks& ranks, std::string& why) {
  return BlockGrower(main, blocks, ranks).run(why);
}

}  // namespace oriel
