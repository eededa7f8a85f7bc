#include "passes/divide/grown_block.h"

#include <cmath>
#include <numeric>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/builders.h"
#include "ir/oriel/location.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include "mlir/IR/Matchers.h"
#include "passes/strategize/padding.h"
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

// A square, say.
bool isPowerOfOneOrMore(Operation* op) {
  auto power = llvm::dyn_cast<ir::PowOp>(op);
  llvm::APFloat exponent(0.0);
  return power && mlir::matchPattern(power.getRhs(), mlir::m_ConstantFloat(&exponent)) &&
         exponent.convertToDouble() >= 1;
}

// Whether its derivatives at zero are finite, though it is linear in nothing.
bool isSmoothAtZero(Operation* op) {
  if (auto norm = llvm::dyn_cast<ir::RmsNormOp>(op)) return norm.getEpsilon() > 0;
  if (auto norm = llvm::dyn_cast<ir::LayerNormOp>(op)) return norm.getEpsilon() > 0;
  return isPowerOfOneOrMore(op) ||
         llvm::isa<ir::AbsOp, ir::ActivationOp, ir::AtanOp, ir::AttentionOp, ir::CastOp, ir::CosOp,
                   ir::ErfOp, ir::ExpOp, ir::GatedActivationOp, ir::MaxOp, ir::MinOp, ir::ReluOp,
                   ir::SigmoidOp, ir::SinOp, ir::SoftmaxOp, ir::TanhOp>(op);
}

// Whether it gives zero where these operands, which are not linear, are zero.
bool givesZero(Operation* op, llvm::function_ref<bool(Value)> isZero) {
  if (auto attention = llvm::dyn_cast<ir::AttentionOp>(op)) return isZero(attention.getValue());
  if (auto gated = llvm::dyn_cast<ir::GatedActivationOp>(op)) {
    return isZero(gated.getGate()) || isZero(gated.getUp());
  }
  if (auto norm = llvm::dyn_cast<ir::RmsNormOp>(op)) return isZero(norm.getInput());
  if (isPowerOfOneOrMore(op)) return isZero(op->getOperand(0));
  return llvm::isa<ir::AbsOp, ir::ActivationOp, ir::AtanOp, ir::CastOp, ir::ErfOp, ir::MaxOp,
                   ir::MinOp, ir::ReluOp, ir::SinOp, ir::TanhOp>(op) &&
         llvm::all_of(op->getOperands(), isZero);
}

}  // namespace

bool isLayer(Operation* op) { return llvm::isa<ir::LinearOp, ir::ExpertLinearOp>(op); }

namespace {

class BlockGrower {
 public:
  BlockGrower(mlir::func::FuncOp main, const JoinedBlocks& blocks, int64_t ranks)
      : blocks_(blocks), growth_{ranks, 0, 0} {
    for (Operation& op : main.getBody().front()) {
      if (isWithin(&op)) ops_.push_back({&op, ruleOf(&op), /*factor=*/-1});
    }
    for (auto [argument, parameter] : readValues(main).parameters) {
      arguments_[ir::ParameterOp(parameter).getSymName()] = argument;
    }
  }

  std::optional<Growth> run(std::string& why) {
    if (!findFactors() || !mayGrow()) {
      why = std::move(why_);
      return std::nullopt;
    }
    for (const TensorBlock::Cut& cut : blocks_.cuts) {
      Value argument = argumentOf(cut);
      original_.push_back({argument, argument.getType()});
      argument.setType(grown(ir::tensorType(argument), cut.dim));
    }
    if (!llvm::all_of(ops_, [&](const Part& part) { return create(part); })) {
      undo();
      why = std::move(why_);
      return std::nullopt;
    }
    for (const TensorBlock::Cut& cut : blocks_.cuts) {
      padParameter(cut.parameter, cut.dim, ir::tensorType(argumentOf(cut)).getDimSize(cut.dim));
    }
    replace();
    return growth_;
  }

 private:
  // An op of the blocks or of their data, with the one factor that it is cut along.
  struct Part {
    Operation* op;
    ShardingRule rule;
    int factor;
  };

  bool fail(const llvm::Twine& why) {
    why_ = why.str();
    return false;
  }

  Value argumentOf(const TensorBlock::Cut& cut) const {
    return arguments_.lookup(ir::ParameterOp(cut.parameter).getSymName());
  }

  int64_t grown(int64_t size) const { return size / growth_.from * growth_.to; }
  RankedTensorType grown(RankedTensorType type, int64_t dim) const {
    llvm::SmallVector<int64_t> shape(type.getShape());
    shape[dim] = grown(shape[dim]);
    return type.clone(shape);
  }

  // What all are cut along is made of the same number of equal pieces.
  bool findFactors() {
    for (Part& part : ops_) {
      const OpCuts& cuts = isData(part.op) ? blocks_.data : blocks_.ops;
      for (const auto& [factor, range] : cuts.lookup(part.op)) {
        if (range.size == 1) continue;
        if (part.factor >= 0 || !(range == RankRange{1, growth_.ranks})) {
          return fail(ir::opText(part.op) + " is cut along several dimensions");
        }
        part.factor = factor;
        growth_.from = std::gcd(growth_.from, part.rule.factors[factor].size);
      }
      if (part.factor < 0) return fail(ir::opText(part.op) + " is not cut");
    }
    growth_.to = static_cast<int64_t>(llvm::alignTo(growth_.from, growth_.ranks));
    return growth_.to != growth_.from || fail("these ranks divide it");
  }

  bool mayGrow() {
    for (const Part& part : ops_) {
      const bool isNorm = isNormOfRow(part);
      if (isOfRow(part) && !isNorm) return fail(ir::opText(part.op) + " needs all of it");
      if (!isFiniteAtZero(part)) {
        return fail(ir::opText(part.op) + " may not be finite at zero");
      }
      if (isNorm && !ir::RmsNormOp(part.op).getInvRms().use_empty()) {
        return fail("its root mean square is read");
      }
      if (isData(part.op)) continue;  // stays for others
      for (mlir::OpResult result : part.op->getResults()) {
        if (!part.rule.resultHas(result.getResultNumber(), part.factor)) continue;
        for (Operation* user : result.getUsers()) {
          if (!isWithin(user) && !user->hasTrait<mlir::OpTrait::IsTerminator>()) {
            return fail(ir::opText(user) + " reads it, too");
          }
        }
      }
    }
    return llvm::all_of(blocks_.cuts, [&](const TensorBlock::Cut& cut) {
      Value argument = argumentOf(cut);
      const bool isOwn =
          argument && !unpaddedShape(cut.parameter) &&
          ir::tensorType(argument).getDimSize(cut.dim) % growth_.from == 0 &&
          llvm::all_of(argument.getUsers(), [&](Operation* user) { return isWithin(user); });
      return isOwn || fail("\"" + ir::ParameterOp(cut.parameter).getOnnxName() +
                           "\" is read elsewhere, too");
    });
  }

  bool isWithin(Operation* op) const { return blocks_.ops.contains(op) || isData(op); }
  bool isData(Operation* op) const { return blocks_.data.contains(op); }

  static bool isOfRow(const Part& part) {
    return part.rule.factors[part.factor].kind == ir::FactorKind::kSteps &&
           hasResult(part.rule, part.factor);
  }
  // Of all heads, say.
  static bool isNormOfRow(const Part& part) {
    return isOfRow(part) && llvm::isa<ir::RmsNormOp>(part.op);
  }

  // The dimension of an operand that grows.
  static std::optional<int64_t> grownDim(const Part& part, unsigned operand) {
    if (isNormOfRow(part)) return operand == 0 ? ir::rankOf(part.op->getOperand(0)) - 1 : 0;
    return dimOf(part.rule.operands[operand], part.factor);
  }

  // Of operands with the factor. Which elements a dropout drops depends on their places.
  static bool isFiniteAtZero(const Part& part) {
    if (llvm::isa<ir::DropoutOp>(part.op)) return false;
    if (!hasResult(part.rule, part.factor) && !isLayer(part.op)) return false;
    if (isSmoothAtZero(part.op)) return true;
    for (auto [i, operand] : llvm::enumerate(part.op->getOperands())) {
      const bool isFloat = llvm::isa<mlir::FloatType>(ir::tensorType(operand).getElementType());
      if (!isFloat || !part.rule.operandHas(i, part.factor)) continue;
      const bool isLinear = llvm::any_of(part.rule.linear, [i = i](const auto& group) {
        return llvm::is_contained(group, static_cast<unsigned>(i));
      });
      if (!isLinear) return false;
    }
    return true;
  }

  bool create(const Part& part) {
    mlir::OpBuilder builder(part.op);
    const bool sums = isNormOfRow(part) || !hasResult(part.rule, part.factor);
    llvm::SmallVector<Value> operands;
    for (auto [i, operand] : llvm::enumerate(part.op->getOperands())) {
      Value made = made_.lookup(operand);
      const std::optional<int64_t> dim = grownDim(part, i);
      if (!made) made = dim ? grownOperand(builder, operand, *dim) : operand;
      const RankedTensorType own = originalType(operand);
      if (ir::tensorType(made) != (dim ? grown(own, *dim) : own)) {
        return fail(ir::opText(part.op) + " takes it otherwise");
      }
      operands.push_back(sums && dim ? zeroBehind(builder, made, *dim) : made);
    }
    mlir::OperationState state(part.op->getLoc(), part.op->getName(), operands, {},
                               part.op->getAttrs());
    for (auto [type, dims] : llvm::zip_equal(part.op->getResultTypes(), part.rule.results)) {
      auto tensor = llvm::cast<RankedTensorType>(type);
      const std::optional<int64_t> dim = dimOf(dims, part.factor);
      state.addTypes(dim ? grown(tensor, *dim) : tensor);
    }
    if (auto slice = llvm::dyn_cast<ir::SliceOp>(part.op)) {
      llvm::SmallVector<int64_t> limits(slice.getLimits());
      int64_t& limit = limits[*dimOf(part.rule.operands[0], part.factor)];
      limit = grown(limit);
      state.attributes.set(slice.getLimitsAttrName(), builder.getDenseI64ArrayAttr(limits));
    }
    Operation* op = builder.create(state);
    created_.push_back(op);
    if (!hasGrownRule(op, part)) return fail(ir::opText(part.op) + " depends on their number");
    noteZeros(op, part);
    for (auto [old, now] : llvm::zip_equal(part.op->getResults(), op->getResults())) {
      made_[old] = now;
    }
    if (isNormOfRow(part)) made_[part.op->getResult(0)] = normOfTrue(builder, ir::RmsNormOp(op));
    return true;
  }

  // With zeros behind, the mean square of a row is s = from / to of the true one: with s times the
  // epsilon, what it is divided by is √s of that, too.
  Value normOfTrue(mlir::OpBuilder& builder, ir::RmsNormOp norm) {
    const double share = static_cast<double>(growth_.from) / static_cast<double>(growth_.to);
    norm.setEpsilon(share * norm.getEpsilon());
    Value result = norm.getResult();
    Value factor = ir::scalarConstant(builder, norm.getLoc(), std::sqrt(share), result);
    created_.push_back(factor.getDefiningOp());
    Value scaled = track(ir::MulOp::create(builder, norm.getLoc(), result, factor));
    zero_.insert(scaled);
    return scaled;
  }

  RankedTensorType originalType(Value value) const {
    const auto* known =
        llvm::find_if(original_, [&](const auto& entry) { return entry.first == value; });
    return llvm::cast<RankedTensorType>(known == original_.end() ? value.getType() : known->second);
  }

  // A parameter is larger already; what each rank has all of gets zeros.
  Value grownOperand(mlir::OpBuilder& builder, Value operand, int64_t dim) {
    if (llvm::any_of(original_, [&](const auto& entry) { return entry.first == operand; })) {
      zero_.insert(operand);
      return operand;
    }
    const RankedTensorType type = ir::tensorType(operand);
    llvm::SmallVector<int64_t> none(type.getRank(), 0), high = none;
    high[dim] = grown(type.getDimSize(dim)) - type.getDimSize(dim);
    // Of a constant, another one.
    auto padded = builder.createOrFold<ir::PadOp>(operand.getLoc(), operand, none, high, none);
    created_.push_back(padded.getDefiningOp());
    zero_.insert(padded);
    return padded;
  }

  template <typename OpTy>
  Value track(OpTy op) {
    created_.push_back(op);
    return op.getResult();
  }

  Value zeroBehind(mlir::OpBuilder& builder, Value value, int64_t dim) {
    if (zero_.contains(value)) return value;
    const RankedTensorType type = ir::tensorType(value);
    const int64_t size = type.getDimSize(dim);
    const mlir::Location loc = value.getLoc();
    llvm::SmallVector<int64_t> shape(type.getRank() - dim, 1);
    shape.front() = size;
    auto index = RankedTensorType::get(shape, builder.getI64Type());
    Value iota = track(ir::IotaOp::create(builder, loc, index, 0));
    Value end = track(
        ir::ConstantOp::create(builder, loc,
                               mlir::DenseElementsAttr::get(index.clone(llvm::ArrayRef<int64_t>{}),
                                                            size / growth_.to * growth_.from)));
    Value isTrue = track(ir::LessOp::create(builder, loc, iota, end));
    Value zero = ir::scalarConstant(builder, loc, 0, value);
    created_.push_back(zero.getDefiningOp());
    return track(ir::SelectOp::create(builder, loc, isTrue, value, zero));
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

  void noteZeros(Operation* op, const Part& part) {
    auto isZero = [&](Value value) { return zero_.contains(value); };
    const bool isZeroOfLinear = llvm::any_of(part.rule.linear, [&](const auto& group) {
      return !group.empty() &&
             llvm::all_of(group, [&](unsigned i) { return isZero(op->getOperand(i)); });
    });
    if (!isZeroOfLinear && !givesZero(op, isZero)) return;
    if (part.rule.resultHas(0, part.factor)) zero_.insert(op->getResult(0));
  }

  void undo() {
    for (Operation* op : llvm::reverse(created_)) op->erase();
    for (auto [argument, type] : original_) argument.setType(type);
  }

  // What the function returns has its size.
  void replace() {
    for (const Part& part : ops_) {
      mlir::OpBuilder builder(part.op);
      for (mlir::OpResult result : part.op->getResults()) {
        Value now = made_.lookup(result);
        const std::optional<int64_t> dim =
            dimOf(part.rule.results[result.getResultNumber()], part.factor);
        auto isOutside = [&](mlir::OpOperand& use) { return !isWithin(use.getOwner()); };
        if (isData(part.op)) continue;
        if (dim && llvm::any_of(result.getUses(), isOutside)) {
          now = ir::sliceDim(builder, result.getLoc(), now, *dim, 0,
                             ir::tensorType(result).getDimSize(*dim));
        }
        result.replaceUsesWithIf(now, isOutside);
      }
    }
    for (const Part& part : llvm::reverse(ops_)) {
      if (!isData(part.op) || part.op->use_empty()) part.op->erase();
    }
  }

  const JoinedBlocks& blocks_;
  Growth growth_;
  std::vector<Part> ops_;                                     // in the order of the function
  llvm::StringMap<Value> arguments_;                          // by symbol
  llvm::SmallVector<std::pair<Value, mlir::Type>> original_;  // types of parameters
  llvm::DenseMap<Value, Value> made_;                         // for results of `ops_`
  llvm::SmallVector<Operation*> created_;
  llvm::DenseSet<Value> zero_;  // behind the true heads or columns
  std::string why_;
};

}  // namespace

std::optional<Growth> growBlocks(mlir::func::FuncOp main, const JoinedBlocks& blocks, int64_t ranks,
                                 std::string& why) {
  return BlockGrower(main, blocks, ranks).run(why);
}

}  // namespace oriel
