#include <limits>
#include <map>
#include <memory>
#include <set>

#include "ir/interfaces/work.h"
#include "ir/oriel/location.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/propagate/modules.h"
#include "passes/propagate/op_split.h"
#include "passes/propagate/passes.h"
#include "passes/propagate/segment_sharding.h"
#include "passes/propagate/split_choice.h"
#include "passes/propagate/versions.h"
#include "passes/strategize/positions.h"

namespace oriel {

#define GEN_PASS_DEF_PROPAGATE
#include "passes/propagate/passes.h.inc"

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::BlockArgument;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::RankedTensorType;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

RankedTensorType typeOf(Value value) { return llvm::cast<RankedTensorType>(value.getType()); }

// What a channel carries, as its sender sees it.
struct SentValue {
  Sharding seen;
  const Grid* grid = nullptr;  // of the sender
};

// Whether the axes of two grids mean the same.
bool areAlike(const Grid& a, const Grid& b) {
  auto sameAxis = [](const AtomicAxis& x, const AtomicAxis& y) {
    return x.name == y.name && x.size == y.size;
  };
  auto sameMesh = [](const MeshAxis& x, const MeshAxis& y) {
    return x.name == y.name && x.axes == y.axes;
  };
  return llvm::equal(a.axes, b.axes, sameAxis) && llvm::equal(a.mesh, b.mesh, sameMesh);
}
using Channels = std::map<std::string, SentValue, std::less<>>;

// What segments agree on: the sharding of what has the same role, and the module it is from.
struct Shared {
  std::map<ValueRole, Sharding> shardings;
  // Of what is stashed as an op that needs all positions had it: the positions cut.
  std::map<ValueRole, Sharding> byPosition;
  // By the origin of the forward op that makes it: what dimension of a value is positions.
  std::map<int64_t, int64_t> positions;
  std::map<ValueRole, int> modules;
};

// Goes through one segment.
class SegmentPropagation {
 public:
  // A microbatch has so many samples, over all ranks.
  SegmentPropagation(FuncOp segment, const Grid& grid, int64_t samples, ReshardPlanner& planner,
                     const ModuleMap& modules, const std::set<const void*>& sequenceTypes,
                     Shared& shared, Channels& channels, llvm::raw_ostream* explain)
      : segment_(segment),
        grid_(grid),
        samples_(samples),
        planner_(planner),
        sizes_(planner.sizes()),
        modules_(modules),
        sequenceTypes_(sequenceTypes),
        shared_(shared),
        channels_(channels),
        explain_(explain),
        versions_(planner) {}

  // To the end of the segment, or to a value that another program has not sent yet: gives whether
  // it is the end. To be called again then.
  FailureOr<bool> advance() {
    mlir::Block& block = segment_.getBody().front();
    if (!next_) {
      if (failed(defineArguments()) || failed(findHints(block))) return failure();
      next_ = &block.front();
    }
    // A step of a decomposed op is visited next.
    while (next_ != block.getTerminator()) {
      if (auto receive = llvm::dyn_cast<ir::ReceiveOp>(next_)) {
        auto sent = channels_.find(receive.getChannel());
        if (sent == channels_.end()) return false;
        visitReceive(receive, sent->second);
        next_ = next_->getNextNode();
        continue;
      }
      if (failed(settleSums(next_))) return failure();
      if (auto send = llvm::dyn_cast<ir::SendOp>(next_)) {
        visitSend(send);
        next_ = next_->getNextNode();
        continue;
      }
      next_ = visit(next_);
    }
    if (failed(finish(llvm::cast<mlir::func::ReturnOp>(block.getTerminator())))) return failure();
    return true;
  }

  FuncOp segment() const { return segment_; }

 private:
  LogicalResult defineArguments() {
    for (BlockArgument argument : segment_.getArguments()) {
      FailureOr<ValueRole> role = ir::argumentRole(segment_, argument.getArgNumber());
      if (failed(role)) return failure();
      roles_[argument] = *role;
      if (failed(defineArgument(argument, *role))) return failure();
    }
    return success();
  }

  LogicalResult defineArgument(BlockArgument argument, const ValueRole& role) {
    Sharding whole = Sharding::replicated(typeOf(argument).getRank());
    switch (role.kind) {
      case ValueKind::kParameter:
      case ValueKind::kOptimizerState: {
        FailureOr<Sharding> kept = keptSharding(role);
        if (failed(kept)) return failure();
        versions_.define(argument, *kept);
        break;
      }
      case ValueKind::kGradient:
      case ValueKind::kAccumulator: {
        auto found = shared_.shardings.find(role);
        if (found != shared_.shardings.end()) {
          versions_.define(argument, found->second);
        } else if (isUpdate(segment_)) {
          versions_.define(argument, whole);
        }
        // Otherwise it becomes what is first added to it.
        break;
      }
      case ValueKind::kInput: {
        const AxisList& data = modules_.commonData();
        if (!data.empty()) {
          if (whole.dims.empty() || typeOf(argument).getDimSize(0) % sizes_.product(data) != 0) {
            return segment_.emitError("the input '")
                   << role.ref << "' of type " << argument.getType()
                   << " has no first dimension that " << sizes_.product(data)
                   << " data-parallel ranks divide";
          }
          whole.dims[0] = data;
        }
        versions_.define(argument, whole);
        break;
      }
      case ValueKind::kStash: {
        auto found = shared_.shardings.find(role);
        if (found == shared_.shardings.end()) {
          return segment_.emitError("reads the stash value '")
                 << role.ref << "', which no earlier segment writes";
        }
        versions_.define(argument, found->second);
        moduleOfValue_[argument] = shared_.modules.at(role);
        if (auto own = shared_.byPosition.find(role); own != shared_.byPosition.end()) {
          byPosition_[argument] = own->second;
        }
        break;
      }
      case ValueKind::kScalar:
      case ValueKind::kOutput:
        versions_.define(argument, whole);
        break;
    }
    FailureOr<std::optional<Sharding>> view = viewOf(symbols_, segment_, argument, role, sizes_);
    if (failed(view)) return failure();
    if (!*view) return success();
    versions_.setView(argument, **view);
    // The update completes all sums first, so that they can travel together.
    if (isSum(role)) take(argument, **view, segment_);
    return success();
  }

  // Of a parameter or its optimizer state.
  FailureOr<Sharding> keptSharding(const ValueRole& role) {
    FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, segment_, role);
    if (failed(parameter)) return failure();
    return shardingOf(
        *parameter,
        role.kind == ValueKind::kParameter ? parameter->getStorage() : parameter->getState(),
        sizes_);
  }

  // The gradient of a parameter becomes what is used of the parameter: so does what it is made of
  // by ops that keep all elements.
  LogicalResult findHints(mlir::Block& block) {
    for (Operation& op : llvm::reverse(block)) {
      for (Value operand : op.getOperands()) {
        auto argument = llvm::dyn_cast<BlockArgument>(operand);
        if (!argument || isUpdate(segment_) || roles_[argument].kind != ValueKind::kGradient)
          continue;
        FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, segment_, roles_[argument]);
        if (failed(parameter)) return failure();
        FailureOr<Sharding> use = shardingOf(*parameter, parameter->getUse(), sizes_);
        if (failed(use)) return failure();
        for (Value other : op.getOperands()) {
          if (other != operand && other.getType() == operand.getType()) hints_[other] = *use;
        }
      }
      if (op.getNumResults() != 1 || !hints_.contains(op.getResult(0))) continue;
      ir::ShardingRule rule = ruleOf(&op);
      Sharding hint = hints_[op.getResult(0)];
      std::vector<AxisList> factors =
          combineProposals(rule, sizes_, Proposal{&rule.results[0], hint});
      for (auto [i, operand] : llvm::enumerate(op.getOperands())) {
        if (!operand.hasOneUse() || llvm::isa<BlockArgument>(operand) || isSummed(rule, i) ||
            typeOf(operand).getNumElements() != typeOf(op.getResult(0)).getNumElements()) {
          continue;
        }
        hints_[operand] = OpSplit{factors, {}}.operand(rule, i).reduced();
      }
    }
    return success();
  }

  // Whether the result lacks a factor of the operand: it has other elements, even if as many.
  static bool isSummed(const ir::ShardingRule& rule, unsigned operand) {
    return llvm::any_of(llvm::seq<int>(rule.factors.size()), [&](int factor) {
      return rule.factors[factor].size > 1 && rule.operandHas(operand, factor) &&
             !rule.resultHas(0, factor);
    });
  }

  // A sum over microbatches that is not shared yet: it is kept as its first summand comes, in the
  // dimensions in which the gradient is to be stored.
  LogicalResult settleSums(Operation* op) {
    for (Value operand : op->getOperands()) {
      if (versions_.isDefined(operand)) continue;
      auto argument = llvm::cast<BlockArgument>(operand);
      const ValueRole& role = roles_[argument];
      Sharding sharding = Sharding::replicated(typeOf(argument).getRank());
      if (role.kind == ValueKind::kGradient) {
        FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, segment_, role);
        if (failed(parameter)) return failure();
        FailureOr<Sharding> stored = shardingOf(*parameter, parameter->getGradient(), sizes_);
        if (failed(stored)) return failure();
        sharding = *stored;
      }
      for (Value other : op->getOperands()) {
        if (other == operand || other.getType() != operand.getType() ||
            !versions_.isDefined(other)) {
          continue;
        }
        for (int axis : versions_.seen(other).sum) {
          if (!sharding.uses(axis)) insertSorted(sharding.sum, axis);
        }
      }
      versions_.define(argument, sharding);
      shared_.shardings.emplace(role, sharding);
    }
    return success();
  }

  // What is pending is completed in pieces, which the receivers join: so each byte travels once.
  void visitSend(ir::SendOp send) {
    Value value = send.getInput();
    Sharding sent = versions_.settled(value);
    const ModuleAxes& axes = modules_.axes(modules_.ofOrigin(send.getOrigin()));
    SentValue carried{sent.reduced(), &grid_};
    if (exchanged_.contains(value)) dropCuts(axes.context, &carried.seen);
    if (sent.isPending()) {
      std::optional<Sharding> positions = scatteredOf(value, axes);
      AxisList pending = sent.sum;
      for (int axis : sent.max) insertSorted(pending, axis);
      if (positions) carried.seen = *positions;
      sent = positions ? *positions
                       : cutFurther(sent.reduced(), typeOf(value).getShape(), pending, sizes_);
    }
    take(value, sent, send);
    send->setAttr(ir::kShardingAttr, sizes_.toAttr(send.getContext(), sent));
    channels_[send.getChannel().str()] = std::move(carried);
  }

  // A value is used as its sender has it, if the grids are alike; otherwise a value of samples is
  // split as this grid splits them, and any other is whole. It arrives in the smallest pieces.
  void visitReceive(ir::ReceiveOp receive, const SentValue& sent) {
    Value value = receive.getResult();
    llvm::ArrayRef<int64_t> shape = typeOf(value).getShape();
    Sharding view = Sharding::replicated(typeOf(value).getRank());
    int module = modules_.ofOrigin(receive.getOrigin());
    const AxisList& data = modules_.commonData();
    if (areAlike(*sent.grid, grid_)) {
      view = sent.seen;
    } else if (!isUpdate(segment_) && !shape.empty() && shape[0] % samples_ == 0 &&
               shape[0] % sizes_.product(data) == 0) {
      view.dims[0] = data;
      const ModuleAxes& axes = modules_.axes(module);
      std::optional<Sharding> positions = positionsOf(receive->getOpResult(0), axes);
      // A cotangent has the positions of its value.
      auto known = shared_.positions.find(receive.getOrigin());
      if (!positions && known != shared_.positions.end()) {
        positions = positionsAt(known->second, typeOf(value), axes);
      }
      if (positions) {
        for (auto [own, cut] : llvm::zip_equal(positions->dims, view.dims)) cut.append(own);
        if (!sizes_.divides(shape, view)) dropCuts(axes.context, &view);
      }
    }
    receive->removeAttr(kPositionsAttr);
    AxisList unused;
    for (int axis = 0; axis < sizes_.count(); ++axis) {
      if (!view.uses(axis)) unused.push_back(axis);
    }
    Sharding arrives = cutFurther(view, shape, unused, sizes_);
    versions_.define(value, arrives);
    moduleOfValue_[value] = module;
    mlir::MLIRContext* context = receive.getContext();
    receive->setAttr(ir::kShardingsAttr,
                     mlir::ArrayAttr::get(context, {sizes_.toAttr(context, arrives)}));
    if (arrives == view) return;
    versions_.setView(value, view);
    receive->setAttr(kViewAttr, sizes_.toAttr(context, view));
  }

  // The op to visit next.
  Operation* visit(Operation* op) {
    int module = isUpdate(segment_) ? ModuleMap::kNone : modules_.ofOrigin(ir::originOf(op));
    SplitProblem problem = problemOf(op, module);
    if (Operation* first = decompose(op, problem)) return first;

    std::vector<SplitCandidate> candidates = splitCandidates(problem, versions_, planner_);
    const OpSplit& split = candidates.front().split;
    explainChoice(op, problem, candidates);
    for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
      take(operand, split.operand(problem.rule, i), op);
      if (candidates.front().isExchange) noteExchange(op, operand, split.operand(problem.rule, i));
    }
    llvm::SmallVector<mlir::Attribute> shardings;
    for (auto [i, result] : llvm::enumerate(op->getResults())) {
      const Sharding& sharding = candidates.front().results[i];
      versions_.define(result, sharding);
      if (candidates.front().isExchange && sharding == split.result(problem.rule, i)) {
        exchanged_.insert(result);
      }
      moduleOfValue_[result] = module;
      shardings.push_back(sizes_.toAttr(op->getContext(), sharding));
    }
    if (auto dims = op->getAttrOfType<mlir::DenseI64ArrayAttr>(kPositionsAttr)) {
      shared_.positions.try_emplace(ir::originOf(op), dims[0]);
    }
    op->removeAttr(kPositionsAttr);
    op->setAttr(kSplitAttr, split.toAttr(op->getContext(), sizes_));
    op->setAttr(ir::kShardingsAttr, mlir::ArrayAttr::get(op->getContext(), shardings));
    return op->getNextNode();
  }

  // An operand that only this op uses is best kept as the op has it: so its derivative does.
  void noteExchange(Operation* op, Value operand, const Sharding& taken) {
    const Sharding& seen = versions_.seen(operand);
    const bool isOnlyUse = llvm::all_of(operand.getUsers(), [&](Operation* user) {
      return user == op || user->hasTrait<mlir::OpTrait::IsTerminator>();
    });
    if (isOnlyUse && taken != seen && taken.cutting() == seen.cutting()) {
      exchangedFor_[operand] = taken;
    }
  }

  SplitProblem problemOf(Operation* op, int module) {
    SplitProblem problem;
    problem.rule = ruleOf(op);
    problem.operands.assign(op->operand_begin(), op->operand_end());
    problem.axes = &modules_.axes(module);
    problem.flops = ir::workFlops(op);
    for (Value operand : op->getOperands()) {
      problem.wishes.push_back(wishOf(operand, module));
      problem.kept.push_back(isKeptSum(operand));
      problem.scattered.push_back(scatteredOf(operand, *problem.axes));
    }
    for (mlir::OpResult result : op->getResults()) {
      problem.results.push_back(typeOf(result));
      auto hint = hints_.find(result);
      problem.hints.emplace_back();
      if (hint != hints_.end()) problem.hints.back() = hint->second;
      problem.positions.push_back(positionsOf(result, *problem.axes));
    }
    return problem;
  }

  bool isKeptSum(Value operand) const {
    auto argument = llvm::dyn_cast<BlockArgument>(operand);
    return argument && !isUpdate(segment_) && isSum(roles_.at(argument));
  }

  // What comes from another module is used with this module's samples on each rank.
  Sharding wishOf(Value operand, int module) const {
    auto known = byPosition_.find(operand);
    Sharding wish = known == byPosition_.end() ? versions_.seen(operand).reduced() : known->second;
    const ModuleAxes& axes = modules_.axes(module);
    if (exchanged_.contains(operand)) dropCuts(axes.context, &wish);
    auto argument = llvm::dyn_cast<BlockArgument>(operand);
    if (argument && roles_.at(argument).kind == ValueKind::kInput) {
      bool divides =
          !wish.dims.empty() && typeOf(operand).getDimSize(0) % sizes_.product(axes.data) == 0;
      if (divides) wish.dims[0] = axes.data;
      return wish;
    }
    auto from = moduleOfValue_.find(operand);
    if (from == moduleOfValue_.end() || from->second == module ||
        from->second == ModuleMap::kNone) {
      return wish;
    }
    for (auto [dim, list] : llvm::enumerate(wish.dims)) {
      auto* foreign = llvm::find_if(list, [&, dim = dim](int axis) {
        return llvm::is_contained(axes.tensor, axis) ||
               llvm::is_contained(dim > 0 ? axes.data : axes.context, axis);
      });
      list.erase(foreign, list.end());
    }
    if (!wish.dims.empty() && wish.dims[0].size() < axes.data.size() &&
        std::equal(wish.dims[0].begin(), wish.dims[0].end(), axes.data.begin()) &&
        typeOf(operand).getDimSize(0) % sizes_.product(axes.data) == 0) {
      wish.dims[0] = axes.data;
    }
    return wish;
  }

  // Of a value between layers that is pending over axes of tensor parallelism: the pieces along
  // the positions, the last dimension but one.
  std::optional<Sharding> scatteredOf(Value operand, const ModuleAxes& axes) const {
    const Sharding& seen = versions_.seen(operand);
    if (seen.sum.empty() || !sequenceTypes_.count(operand.getType().getAsOpaquePointer())) {
      return std::nullopt;
    }
    Sharding result = seen.reduced();
    AxisList& positions = result.dims[result.dims.size() - 2];
    bool any = false;
    for (int axis : axes.tensor) {
      if (!llvm::is_contained(seen.sum, axis)) continue;
      positions.push_back(axis);
      any = true;
    }
    if (!any || !sizes_.divides(typeOf(operand).getShape(), result)) return std::nullopt;
    return result;
  }

  // The positions of a result, if it has some, cut over the axes of context parallelism.
  std::optional<Sharding> positionsOf(mlir::OpResult result, const ModuleAxes& axes) const {
    auto dims = result.getOwner()->getAttrOfType<mlir::DenseI64ArrayAttr>(kPositionsAttr);
    if (!dims) return std::nullopt;
    return positionsAt(dims[result.getResultNumber()], typeOf(result), axes);
  }

  // A dimension cut over the axes of context parallelism; none if it is none, or does not divide.
  std::optional<Sharding> positionsAt(int64_t dim, RankedTensorType type,
                                      const ModuleAxes& axes) const {
    if (axes.context.empty() || dim < 0 || dim >= type.getRank()) return std::nullopt;
    Sharding cut = Sharding::replicated(type.getRank());
    cut.dims[dim] = axes.context;
    if (!sizes_.divides(type.getShape(), cut)) return std::nullopt;
    return cut;
  }

  // Where an operand is cut along what the op splits by only in steps, makes the steps and gives
  // the first one; else null.
  Operation* decompose(Operation* op, const SplitProblem& problem) {
    auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(op);
    if (!shardable) return nullptr;
    bool wanted = llvm::any_of(llvm::enumerate(problem.wishes), [&](auto wish) {
      Proposal proposal{&problem.rule.operands[wish.index()], wish.value()};
      return wouldCut(problem.rule, sizes_, proposal, ir::FactorKind::kSteps);
    });
    if (!wanted) return nullptr;
    Operation* before = op->getPrevNode();
    mlir::OpBuilder builder(op);
    llvm::SmallVector<Value> replacements = shardable.decompose(builder);
    if (replacements.empty()) return nullptr;
    for (auto [result, replacement] : llvm::zip_equal(op->getResults(), replacements)) {
      auto hint = hints_.find(result);
      if (hint != hints_.end()) hints_[replacement] = hint->second;
    }
    op->replaceAllUsesWith(replacements);
    Operation* first = before ? before->getNextNode() : &op->getBlock()->front();
    if (first == op) first = op->getNextNode();
    op->erase();
    return first;
  }

  void take(Value value, const Sharding& to, Operation* user) {
    versions_.take(value, to, [&](const ReshardStep& step, Value) {
      if (explain_) explainStep(value, step, user);
      return Value();
    });
  }

  LogicalResult finish(mlir::func::ReturnOp terminator) {
    if (failed(settleSums(terminator))) return failure();
    llvm::SmallVector<Sharding> results;
    for (mlir::OpOperand& operand : terminator->getOpOperands()) {
      FailureOr<ValueRole> role = ir::resultRole(segment_, operand.getOperandNumber());
      if (failed(role)) return failure();
      FailureOr<Sharding> sharding = resultSharding(operand.get(), *role);
      if (failed(sharding)) return failure();
      FailureOr<Sharding> made =
          madeFor(operand.get(), versions_.defined(operand.get()), *sharding);
      if (failed(made)) return failure();
      take(operand.get(), *made, terminator);
      results.push_back(*sharding);
    }
    llvm::SmallVector<mlir::DictionaryAttr> attributes;
    mlir::MLIRContext* context = segment_.getContext();
    auto with = [&](mlir::DictionaryAttr old, const Sharding& sharding) {
      mlir::NamedAttrList list(old);
      list.set(ir::kShardingAttr, sizes_.toAttr(context, sharding));
      return list.getDictionary(context);
    };
    for (BlockArgument argument : segment_.getArguments()) {
      if (!versions_.isDefined(argument)) {
        versions_.define(argument, Sharding::replicated(typeOf(argument).getRank()));
      }
      attributes.push_back(
          with(segment_.getArgAttrDict(argument.getArgNumber()), versions_.defined(argument)));
    }
    segment_.setAllArgAttrs(attributes);
    attributes.clear();
    for (auto [i, sharding] : llvm::enumerate(results)) {
      attributes.push_back(with(segment_.getResultAttrDict(i), sharding));
    }
    segment_.setAllResultAttrs(attributes);
    return success();
  }

  FailureOr<Sharding> resultSharding(Value value, const ValueRole& role) {
    Sharding whole = Sharding::replicated(typeOf(value).getRank());
    switch (role.kind) {
      case ValueKind::kParameter:
      case ValueKind::kOptimizerState:
        return keptSharding(role);
      case ValueKind::kGradient:
      case ValueKind::kAccumulator: {
        auto found = shared_.shardings.find(role);
        return found == shared_.shardings.end() ? whole : found->second;
      }
      case ValueKind::kStash: {
        Sharding sharding = versions_.settled(value);
        if (auto taken = exchangedFor_.find(value); taken != exchangedFor_.end()) {
          shared_.byPosition[role] = sharding;
          sharding = taken->second;
        }
        shared_.shardings[role] = sharding;
        auto module = moduleOfValue_.find(value);
        shared_.modules[role] = module == moduleOfValue_.end() ? ModuleMap::kNone : module->second;
        return sharding;
      }
      case ValueKind::kOutput: {
        // The host reads a rank's samples, and all of the rest.
        const Sharding& seen = versions_.seen(value);
        const AxisList& data = modules_.commonData();
        if (!whole.dims.empty() && seen.dims[0].size() >= data.size() && !data.empty() &&
            std::equal(data.begin(), data.end(), seen.dims[0].begin())) {
          whole.dims[0] = data;
        }
        return whole;
      }
      case ValueKind::kInput:
      case ValueKind::kScalar:
        return segment_.emitError("returns '") << role.ref << "', which only the host writes";
    }
    return whole;
  }

  void explainStep(Value value, const ReshardStep& step, Operation* user) {
    if (step.kind == ReshardStep::Kind::kSlice) return;
    *explain_ << segment_.getSymName() << ": " << step.text(sizes_) << " of a " << value.getType()
              << " for " << ir::opText(user) << "; it is " << sizes_.text(step.result) << " then\n";
  }

  // What was chosen where that costs something, and what else there was.
  void explainChoice(Operation* op, const SplitProblem& problem,
                     llvm::ArrayRef<SplitCandidate> candidates) {
    constexpr double kWorthwhile = 1;
    if (!explain_ || candidates.size() < 2 || candidates.front().cost < kWorthwhile) return;
    *explain_ << segment_.getSymName() << ": " << ir::opText(op) << " is split by ";
    for (auto [i, candidate] : llvm::enumerate(candidates)) {
      if (i > 0) *explain_ << (i == 1 ? ", not by " : " or ");
      *explain_ << describe(problem, candidate.split)
                << llvm::format(" (%.0f bytes)", candidate.cost);
    }
    *explain_ << '\n';
  }

  // The operands' shardings.
  std::string describe(const SplitProblem& problem, const OpSplit& split) const {
    std::string text;
    for (size_t i = 0; i < problem.operands.size(); ++i) {
      text += (i > 0 ? " x " : "") + sizes_.text(split.operand(problem.rule, i));
    }
    return text;
  }

  FuncOp segment_;
  const mlir::SymbolTable symbols_ = symbolsOf(segment_);
  const Grid& grid_;
  int64_t samples_;
  ReshardPlanner& planner_;
  const AxisSizes& sizes_;
  const ModuleMap& modules_;
  const std::set<const void*>& sequenceTypes_;
  Shared& shared_;
  Channels& channels_;
  llvm::raw_ostream* explain_;
  Versions versions_;
  llvm::DenseMap<Value, ValueRole> roles_;
  llvm::DenseMap<Value, Sharding> hints_;
  llvm::DenseMap<Value, int> moduleOfValue_;
  // Without positions, and cut over the axes of context parallelism where an op needs all
  // positions: the ops behind it are not to be cut so.
  llvm::DenseSet<Value> exchanged_;
  // With positions: the sharding in which the only op that uses the value has it instead.
  llvm::DenseMap<Value, Sharding> exchangedFor_;
  // Of what an earlier segment has left so: its positions cut.
  llvm::DenseMap<Value, Sharding> byPosition_;
  Operation* next_ = nullptr;  // null before the first
};

// The segments of one program, one after the other.
class ProgramPropagation {
 public:
  ProgramPropagation(mlir::ModuleOp program, Grid grid, int64_t samples)
      : grid_(std::move(grid)),
        samples_(samples),
        sizes_(grid_),
        planner_(sizes_),
        modules_(ir::segmentsOfKind(program, "forward"), grid_, sizes_),
        segments_(program.getOps<FuncOp>()) {
    if (auto types = program->getAttrOfType<mlir::ArrayAttr>(kSequenceTypes)) {
      for (auto type : types.getAsRange<mlir::TypeAttr>()) {
        sequenceTypes_.insert(type.getValue().getAsOpaquePointer());
      }
    }
  }

  bool isDone() const { return segments_.empty(); }
  FuncOp segment() const { return segments_.front(); }

  // As far as the channels have values; gives whether that was any further.
  FailureOr<bool> advance(Channels& channels, llvm::raw_ostream* explain) {
    bool any = false;
    while (!isDone()) {
      if (!current_) {
        current_ = std::make_unique<SegmentPropagation>(segments_.front(), grid_, samples_,
                                                        planner_, modules_, sequenceTypes_, shared_,
                                                        channels, explain);
        any = true;
      }
      size_t before = channels.size();
      FailureOr<bool> ended = current_->advance();
      if (failed(ended)) return failure();
      any |= *ended || channels.size() > before;
      if (!*ended) break;
      current_.reset();
      segments_.erase(segments_.begin());
    }
    return any;
  }

 private:
  Grid grid_;
  int64_t samples_;
  AxisSizes sizes_;
  ReshardPlanner planner_;
  ModuleMap modules_;
  std::set<const void*> sequenceTypes_;
  Shared shared_;
  llvm::SmallVector<FuncOp> segments_;  // that are left
  std::unique_ptr<SegmentPropagation> current_;
};

// The smallest first dimension of an input: others have several rows for each sample.
int64_t samplesOf(mlir::ModuleOp module) {
  int64_t samples = std::numeric_limits<int64_t>::max();
  for (mlir::ModuleOp program : ir::programsOf(module)) {
    for (FuncOp segment : program.getOps<FuncOp>()) {
      for (BlockArgument argument : segment.getArguments()) {
        FailureOr<ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
        if (failed(role) || role->kind != ValueKind::kInput) continue;
        llvm::ArrayRef<int64_t> shape = typeOf(argument).getShape();
        if (!shape.empty() && shape[0] > 0) samples = std::min(samples, shape[0]);
      }
    }
  }
  return samples;
}

struct Propagate : impl::PropagateBase<Propagate> {
  using PropagateBase::PropagateBase;

  void runOnOperation() override {
    std::vector<std::unique_ptr<ProgramPropagation>> programs;
    const int64_t samples = samplesOf(getOperation());
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      FailureOr<Grid> grid = getGrid(program);
      if (failed(grid)) return signalPassFailure();
      if (ir::segmentsOfKind(program, "forward").empty()) {
        program.emitError("has no segment @forward: run the train phase first");
        return signalPassFailure();
      }
      programs.push_back(std::make_unique<ProgramPropagation>(program, *grid, samples));
    }
    // What a program receives has the sharding in which another one sends it.
    Channels channels;
    while (!programs.empty()) {
      bool any = false;
      for (std::unique_ptr<ProgramPropagation>& program : programs) {
        FailureOr<bool> further = program->advance(channels, explain ? &llvm::errs() : nullptr);
        if (failed(further)) return signalPassFailure();
        any |= *further;
      }
      if (!any) {
        programs.front()->segment().emitError("waits for a value that no program sends");
        return signalPassFailure();
      }
      llvm::erase_if(programs, [](const auto& program) { return program->isDone(); });
    }
  }
};

}  // namespace
}  // namespace oriel
