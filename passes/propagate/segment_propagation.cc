#include "passes/propagate/segment_propagation.h"

#include "ir/interfaces/tensor_type.h"
#include "ir/interfaces/work.h"
#include "ir/oriel/location.h"
#include "ir/oriel/segment_roles.h"
#include "llvm/Support/Format.h"
#include "passes/propagate/joined_sums.h"
#include "passes/propagate/passes.h"
#include "passes/strategize/positions.h"

namespace oriel {

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

std::optional<Sharding> findIn(const ShardingOfValue& shardings, Value value) {
  auto found = shardings.find(value);
  if (found == shardings.end()) return std::nullopt;
  return found->second;
}

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

}  // namespace

ProgramSharding::ProgramSharding(mlir::ModuleOp program, Grid ownGrid, int64_t samples)
    : grid(std::move(ownGrid)),
      samples(samples),
      sizes(grid),
      planner(sizes),
      modules(ir::segmentsOfKind(program, "forward"), grid, sizes) {
  auto types = program->getAttrOfType<mlir::ArrayAttr>(kSequenceTypes);
  if (!types) return;
  for (auto type : types.getAsRange<mlir::TypeAttr>()) {
    sequenceTypes.insert(type.getValue().getAsOpaquePointer());
  }
}

SegmentPropagation::SegmentPropagation(FuncOp segment, ProgramSharding& program, Channels& channels,
                                       llvm::raw_ostream* explain)
    : segment_(segment),
      symbols_(symbolsOf(segment)),
      program_(program),
      channels_(channels),
      explain_(explain),
      versions_(program.planner) {}

FailureOr<bool> SegmentPropagation::advance() {
  mlir::Block& block = segment_.getBody().front();
  if (!next_) {
    if (failed(defineArguments())) return failure();
    FailureOr<Hints> hints = findHints(segment_, program_.modules, program_.sizes);
    if (failed(hints)) return failure();
    hints_ = *std::move(hints);
    if (!ir::isUpdate(segment_)) {
      samplesOfNone_ = SamplesOfNone(segment_, [this](Value value) { return sampleDimOf(value); });
    }
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

LogicalResult SegmentPropagation::defineArguments() {
  for (BlockArgument argument : segment_.getArguments()) {
    FailureOr<ValueRole> role = ir::argumentRole(segment_, argument.getArgNumber());
    if (failed(role)) return failure();
    roles_[argument] = *role;
    if (failed(checkShape(argument, *role))) return failure();
    if (failed(defineArgument(argument, *role))) return failure();
  }
  return success();
}

// What belongs to a parameter is cut as the parameter says.
LogicalResult SegmentPropagation::checkShape(Value value, const ValueRole& role) {
  if (!role.isParameterBound()) return success();
  FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, segment_, role);
  if (failed(parameter)) return failure();
  RankedTensorType own = parameter->getTensorType();
  if (ir::shapeOf(value) == own.getShape()) return success();
  return segment_.emitError("has ") << ir::roleText(role) << " of type " << value.getType()
                                    << ", but the parameter is a " << own;
}

LogicalResult SegmentPropagation::defineArgument(BlockArgument argument, const ValueRole& role) {
  Sharding whole = Sharding::replicated(ir::rankOf(argument));
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
      auto found = program_.shardings.find(role);
      if (found != program_.shardings.end()) {
        versions_.define(argument, found->second);
      } else if (ir::isUpdate(segment_)) {
        versions_.define(argument, whole);
      }
      // Otherwise it becomes what is first added to it.
      break;
    }
    case ValueKind::kInput: {
      const AxisList& data = program_.modules.commonData();
      if (!data.empty()) {
        if (whole.dims.empty() ||
            ir::tensorType(argument).getDimSize(0) % program_.sizes.product(data) != 0) {
          return segment_.emitError("the input '")
                 << role.ref << "' of type " << argument.getType()
                 << " has no first dimension that " << program_.sizes.product(data)
                 << " data-parallel ranks divide";
        }
        whole.dims[0] = data;
      }
      versions_.define(argument, whole);
      break;
    }
    case ValueKind::kStash: {
      auto found = program_.shardings.find(role);
      if (found == program_.shardings.end()) {
        return segment_.emitError("reads the stash value '")
               << role.ref << "', which no earlier segment writes";
      }
      versions_.define(argument, found->second);
      moduleOfValue_[argument] = program_.moduleOfStash.at(role);
      if (auto own = program_.byPosition.find(role); own != program_.byPosition.end()) {
        byPosition_[argument] = own->second;
      }
      break;
    }
    case ValueKind::kScalar:
    case ValueKind::kOutput:
      versions_.define(argument, whole);
      break;
  }
  FailureOr<std::optional<Sharding>> view =
      viewOf(symbols_, segment_, argument, role, program_.sizes);
  if (failed(view)) return failure();
  if (!*view) return success();
  versions_.setView(argument, **view);
  // The update completes all sums first, so that they can travel together.
  if (isSum(role)) take(argument, **view, segment_);
  return success();
}

// Of a parameter or its optimizer state.
FailureOr<Sharding> SegmentPropagation::keptSharding(const ValueRole& role) {
  FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, segment_, role);
  if (failed(parameter)) return failure();
  return shardingOf(
      *parameter,
      role.kind == ValueKind::kParameter ? parameter->getStorage() : parameter->getState(),
      program_.sizes);
}

// A sum over microbatches that is not shared yet: it is kept as its first summand comes, in the
// dimensions in which the gradient is to be stored.
LogicalResult SegmentPropagation::settleSums(Operation* op) {
  for (Value operand : op->getOperands()) {
    if (versions_.isDefined(operand)) continue;
    auto argument = llvm::cast<BlockArgument>(operand);
    const ValueRole& role = roles_[argument];
    Sharding sharding = Sharding::replicated(ir::rankOf(argument));
    if (role.kind == ValueKind::kGradient) {
      FailureOr<ir::ParameterOp> parameter = parameterOf(symbols_, segment_, role);
      if (failed(parameter)) return failure();
      FailureOr<Sharding> stored = shardingOf(*parameter, parameter->getGradient(), program_.sizes);
      if (failed(stored)) return failure();
      sharding = *stored;
    }
    for (Value other : op->getOperands()) {
      if (other == operand || other.getType() != operand.getType() || !versions_.isDefined(other)) {
        continue;
      }
      for (int axis : versions_.seen(other).sum) {
        if (!sharding.uses(axis)) insertSorted(sharding.sum, axis);
      }
    }
    versions_.define(argument, sharding);
    program_.shardings.emplace(role, sharding);
  }
  return success();
}

// What is pending is completed in pieces, which the receivers join: so each byte travels once.
void SegmentPropagation::visitSend(ir::SendOp send) {
  Value value = send.getInput();
  Sharding sent = versions_.settled(value);
  const ModuleAxes& axes = program_.modules.axes(program_.modules.ofOrigin(send.getOrigin()));
  SentValue carried{sent.reduced(), &program_.grid};
  if (exchanged_.contains(value)) dropCuts(axes.context, &carried.seen);
  if (sent.isPending()) {
    std::optional<Sharding> positions = scatteredOf(value, axes);
    AxisList pending = sent.sum;
    for (int axis : sent.max) insertSorted(pending, axis);
    if (positions) carried.seen = *positions;
    sent = positions ? *positions
                     : cutFurther(sent.reduced(), ir::shapeOf(value), pending, program_.sizes);
  }
  take(value, sent, send);
  send->setAttr(ir::kShardingAttr, program_.sizes.toAttr(send.getContext(), sent));
  channels_[send.getChannel().str()] = std::move(carried);
}

// A value is used as its sender has it, if the grids are alike; otherwise a value of samples is
// split as this grid splits them, and any other is whole. It arrives in the smallest pieces.
void SegmentPropagation::visitReceive(ir::ReceiveOp receive, const SentValue& sent) {
  Value value = receive.getResult();
  llvm::ArrayRef<int64_t> shape = ir::shapeOf(value);
  Sharding view = Sharding::replicated(ir::rankOf(value));
  int module = program_.modules.ofOrigin(receive.getOrigin());
  const AxisList& data = program_.modules.commonData();
  if (areAlike(*sent.grid, program_.grid)) {
    view = sent.seen;
  } else if (!ir::isUpdate(segment_) && !shape.empty() && shape[0] % program_.samples == 0 &&
             shape[0] % program_.sizes.product(data) == 0) {
    view.dims[0] = data;
    const ModuleAxes& axes = program_.modules.axes(module);
    std::optional<Sharding> positions = positionsOf(receive->getOpResult(0), axes, program_.sizes);
    // A cotangent has the positions of its value.
    auto known = program_.positions.find(receive.getOrigin());
    if (!positions && known != program_.positions.end()) {
      positions = positionsAt(known->second, ir::tensorType(value), axes, program_.sizes);
    }
    if (positions) {
      for (auto [own, cut] : llvm::zip_equal(positions->dims, view.dims)) cut.append(own);
      if (!program_.sizes.divides(shape, view)) dropCuts(axes.context, &view);
    }
  }
  receive->removeAttr(kPositionsAttr);
  AxisList unused;
  for (int axis = 0; axis < program_.sizes.count(); ++axis) {
    if (!view.uses(axis)) unused.push_back(axis);
  }
  Sharding arrives = cutFurther(view, shape, unused, program_.sizes);
  versions_.define(value, arrives);
  moduleOfValue_[value] = module;
  mlir::MLIRContext* context = receive.getContext();
  receive->setAttr(ir::kShardingsAttr,
                   mlir::ArrayAttr::get(context, {program_.sizes.toAttr(context, arrives)}));
  if (arrives == view) return;
  versions_.setView(value, view);
  receive->setAttr(kViewAttr, program_.sizes.toAttr(context, view));
}

// The op to visit next.
Operation* SegmentPropagation::visit(Operation* op) {
  int module = moduleOf(op);
  SplitProblem problem = problemOf(op, module);
  if (Operation* first = decompose(op, problem)) return first;

  auto isPending = [&](Value operand) { return !versions_.seen(operand).sum.empty(); };
  if (llvm::any_of(op->getOperands(), isPending)) {
    JoinedSums sums(versions_, program_.planner,
                    [this](Operation* other) { return problemOf(other, moduleOf(other)); });
    for (auto [result, axes] : llvm::zip_equal(op->getResults(), problem.joined)) {
      axes = sums.joinedAxes(result);
    }
  }
  std::vector<SplitCandidate> candidates = splitCandidates(problem, versions_, program_.planner);
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
    shardings.push_back(program_.sizes.toAttr(op->getContext(), sharding));
  }
  if (auto dims = op->getAttrOfType<mlir::DenseI64ArrayAttr>(kPositionsAttr)) {
    program_.positions.try_emplace(ir::originOf(op), dims[0]);
  }
  op->removeAttr(kPositionsAttr);
  op->setAttr(kSplitAttr, split.toAttr(op->getContext(), program_.sizes));
  op->setAttr(ir::kShardingsAttr, mlir::ArrayAttr::get(op->getContext(), shardings));
  return op->getNextNode();
}

int SegmentPropagation::moduleOf(Operation* op) const {
  return ir::isUpdate(segment_) ? ModuleMap::kNone : program_.modules.ofOrigin(ir::originOf(op));
}

// An operand that only this op uses is best kept as the op has it: so its derivative does.
void SegmentPropagation::noteExchange(Operation* op, Value operand, const Sharding& taken) {
  const Sharding& seen = versions_.seen(operand);
  const bool isOnlyUse = llvm::all_of(operand.getUsers(), [&](Operation* user) {
    return user == op || user->hasTrait<mlir::OpTrait::IsTerminator>();
  });
  if (isOnlyUse && taken != seen && taken.cutting() == seen.cutting()) {
    exchangedFor_[operand] = taken;
  }
}

SplitProblem SegmentPropagation::problemOf(Operation* op, int module) {
  SplitProblem problem;
  problem.rule = ruleOf(op);
  problem.operands.assign(op->operand_begin(), op->operand_end());
  problem.axes = &program_.modules.axes(module);
  problem.flops = ir::workFlops(op);
  for (Value operand : op->getOperands()) {
    problem.wishes.push_back(wishOf(operand, module));
    problem.kept.push_back(isKeptSum(operand));
    problem.scattered.push_back(scatteredOf(operand, *problem.axes));
  }
  problem.joined.resize(op->getNumResults());
  for (mlir::OpResult result : op->getResults()) {
    problem.results.push_back(ir::tensorType(result));
    problem.hints.push_back(findIn(hints_.becomes, result));
    problem.rows.push_back(findIn(hints_.rows, result));
    problem.positions.push_back(
        samplesOfNone_.cut(result, positionsOf(result, *problem.axes, program_.sizes),
                           problem.axes->data, program_.sizes));
  }
  return problem;
}

// The dimension of samples of what no op of the segment makes.
std::optional<int64_t> SegmentPropagation::sampleDimOf(Value value) const {
  if (value.getDefiningOp()) {
    llvm::ArrayRef<int64_t> shape = ir::shapeOf(value);
    const bool hasRows = !shape.empty() && shape[0] % program_.samples == 0;
    return hasRows ? std::optional<int64_t>(0) : std::nullopt;
  }
  const ValueKind kind = roles_.at(value).kind;
  if (kind != ValueKind::kInput && kind != ValueKind::kStash) return std::nullopt;
  const AxisList& data = program_.modules.commonData();
  for (auto [dim, axes] : llvm::enumerate(versions_.seen(value).dims)) {
    if (!axes.empty() && llvm::is_contained(data, axes.front())) return dim;
  }
  return std::nullopt;
}

bool SegmentPropagation::isKeptSum(Value operand) const {
  auto argument = llvm::dyn_cast<BlockArgument>(operand);
  return argument && !ir::isUpdate(segment_) && isSum(roles_.at(argument));
}

// What comes from another module is used with this module's samples on each rank.
Sharding SegmentPropagation::wishOf(Value operand, int module) const {
  auto known = byPosition_.find(operand);
  Sharding wish = known == byPosition_.end() ? versions_.seen(operand).reduced() : known->second;
  const ModuleAxes& axes = program_.modules.axes(module);
  if (exchanged_.contains(operand)) dropCuts(axes.context, &wish);
  auto argument = llvm::dyn_cast<BlockArgument>(operand);
  if (argument && roles_.at(argument).kind == ValueKind::kInput) {
    bool divides = !wish.dims.empty() &&
                   ir::tensorType(operand).getDimSize(0) % program_.sizes.product(axes.data) == 0;
    if (divides) wish.dims[0] = axes.data;
    return wish;
  }
  auto from = moduleOfValue_.find(operand);
  if (from == moduleOfValue_.end() || from->second == module || from->second == ModuleMap::kNone) {
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
      ir::tensorType(operand).getDimSize(0) % program_.sizes.product(axes.data) == 0) {
    wish.dims[0] = axes.data;
  }
  return wish;
}

// Of a value between layers that is pending over axes of tensor parallelism: the pieces along
// the positions, the last dimension but one.
std::optional<Sharding> SegmentPropagation::scatteredOf(Value operand,
                                                        const ModuleAxes& axes) const {
  const Sharding& seen = versions_.seen(operand);
  if (seen.sum.empty() || !program_.sequenceTypes.count(operand.getType().getAsOpaquePointer())) {
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
  if (!any || !program_.sizes.divides(ir::shapeOf(operand), result)) return std::nullopt;
  return result;
}

// Where an operand is cut along what the op splits by only in steps, makes the steps and gives
// the first one; else null.
Operation* SegmentPropagation::decompose(Operation* op, const SplitProblem& problem) {
  auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(op);
  if (!shardable) return nullptr;
  bool wanted = llvm::any_of(llvm::enumerate(problem.wishes), [&](auto wish) {
    Proposal proposal{&problem.rule.operands[wish.index()], wish.value()};
    return wouldCut(problem.rule, program_.sizes, proposal, ir::FactorKind::kSteps);
  });
  if (!wanted) return nullptr;
  Operation* before = op->getPrevNode();
  mlir::OpBuilder builder(op);
  llvm::SmallVector<Value> replacements = shardable.decompose(builder);
  if (replacements.empty()) return nullptr;
  for (auto [result, replacement] : llvm::zip_equal(op->getResults(), replacements)) {
    for (ShardingOfValue* hints : {&hints_.becomes, &hints_.rows}) {
      std::optional<Sharding> hint = findIn(*hints, result);
      // Another op may come to lie where this one does.
      hints->erase(result);
      if (hint) (*hints)[replacement] = *hint;
    }
  }
  samplesOfNone_.forget(op);
  op->replaceAllUsesWith(replacements);
  // Results that nobody reads need no steps.
  for (Operation* step = op->getPrevNode(); step != before;) {
    Operation* previous = step->getPrevNode();
    if (mlir::isOpTriviallyDead(step)) {
      for (Value value : step->getResults()) {
        for (ShardingOfValue* hints : {&hints_.becomes, &hints_.rows}) hints->erase(value);
      }
      step->erase();
    }
    step = previous;
  }
  Operation* first = before ? before->getNextNode() : &op->getBlock()->front();
  if (first == op) first = op->getNextNode();
  op->erase();
  return first;
}

void SegmentPropagation::take(Value value, const Sharding& to, Operation* user) {
  versions_.take(value, to, [&](const ReshardStep& step, Value) {
    if (explain_) explainStep(value, step, user);
    return Value();
  });
}

LogicalResult SegmentPropagation::finish(mlir::func::ReturnOp terminator) {
  if (failed(settleSums(terminator))) return failure();
  llvm::SmallVector<Sharding> results;
  for (mlir::OpOperand& operand : terminator->getOpOperands()) {
    FailureOr<ValueRole> role = ir::resultRole(segment_, operand.getOperandNumber());
    if (failed(role)) return failure();
    if (failed(checkShape(operand.get(), *role))) return failure();
    FailureOr<Sharding> sharding = resultSharding(operand.get(), *role);
    if (failed(sharding)) return failure();
    FailureOr<Sharding> made = madeFor(operand.get(), versions_.defined(operand.get()), *sharding);
    if (failed(made)) return failure();
    take(operand.get(), *made, terminator);
    results.push_back(*sharding);
  }
  llvm::SmallVector<mlir::DictionaryAttr> attributes;
  mlir::MLIRContext* context = segment_.getContext();
  auto with = [&](mlir::DictionaryAttr old, const Sharding& sharding) {
    mlir::NamedAttrList list(old);
    list.set(ir::kShardingAttr, program_.sizes.toAttr(context, sharding));
    return list.getDictionary(context);
  };
  for (BlockArgument argument : segment_.getArguments()) {
    if (!versions_.isDefined(argument)) {
      versions_.define(argument, Sharding::replicated(ir::rankOf(argument)));
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

FailureOr<Sharding> SegmentPropagation::resultSharding(Value value, const ValueRole& role) {
  Sharding whole = Sharding::replicated(ir::rankOf(value));
  switch (role.kind) {
    case ValueKind::kParameter:
    case ValueKind::kOptimizerState:
      return keptSharding(role);
    case ValueKind::kGradient:
    case ValueKind::kAccumulator: {
      auto found = program_.shardings.find(role);
      return found == program_.shardings.end() ? whole : found->second;
    }
    case ValueKind::kStash: {
      Sharding sharding = versions_.settled(value);
      if (auto taken = exchangedFor_.find(value); taken != exchangedFor_.end()) {
        program_.byPosition[role] = sharding;
        sharding = taken->second;
      }
      program_.shardings[role] = sharding;
      auto module = moduleOfValue_.find(value);
      program_.moduleOfStash[role] =
          module == moduleOfValue_.end() ? ModuleMap::kNone : module->second;
      return sharding;
    }
    case ValueKind::kOutput: {
      if (isReadInPieces(role, value)) return versions_.settled(value).reduced();
      // The host reads a rank's samples, and all of the rest.
      const Sharding& seen = versions_.seen(value);
      const AxisList& data = program_.modules.commonData();
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

void SegmentPropagation::explainStep(Value value, const ReshardStep& step, Operation* user) {
  if (step.kind == ReshardStep::Kind::kSlice) return;
  *explain_ << segment_.getSymName() << ": " << step.text(program_.sizes) << " of a "
            << value.getType() << " for " << ir::opText(user) << "; it is "
            << program_.sizes.text(step.result) << " then\n";
}

// What was chosen where that costs something, and what else there was.
void SegmentPropagation::explainChoice(Operation* op, const SplitProblem& problem,
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
std::string SegmentPropagation::describe(const SplitProblem& problem, const OpSplit& split) const {
  std::string text;
  for (size_t i = 0; i < problem.operands.size(); ++i) {
    text += (i > 0 ? " x " : "") + program_.sizes.text(split.operand(problem.rule, i));
  }
  return text;
}

}  // namespace oriel
