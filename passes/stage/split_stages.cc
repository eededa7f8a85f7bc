#include <map>
#include <set>

#include "ir/oriel/location.h"
#include "ir/oriel/segment_roles.h"
#include "passes/stage/passes.h"
#include "passes/stage/segment_split.h"
#include "passes/stage/sums.h"
#include "passes/strategize/placement_attribute.h"
#include "passes/strategize/programs.h"
#include "passes/strategize/schedule.h"
#include "passes/strategize/strategy_pass.h"
#include "passes/strategy/pipeline_schedule.h"
#include "passes/train/autodiff.h"
#include "passes/train/isolate.h"

namespace oriel {

#define GEN_PASS_DEF_SPLITSTAGES
#include "passes/stage/passes.h.inc"

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::BlockArgument;
using mlir::failure;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::ModuleOp;
using mlir::Operation;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

class StageSplitter {
 public:
  StageSplitter(ModuleOp module, const Strategy& strategy, int64_t microbatches)
      : module_(module),
        strategy_(strategy),
        microbatches_(microbatches),
        stages_(strategy.stageCount()),
        grids_(strategy.grids()),
        splitsBackward_(strategy.pipeline->schedule == ScheduleKind::kZbH1) {}

  LogicalResult run() {
    for (auto [name, segment] : {std::pair("forward", &forward_),
                                 {"backward", &backward_},
                                 {"update", &update_},
                                 {"eval", &eval_}}) {
      *segment = module_.lookupSymbol<FuncOp>(name);
      if (!*segment) {
        return module_.emitError("has no segment @") << name << ": run the train phase first";
      }
    }
    if (failed(checkRoles()) || failed(readStages())) return failure();
    rankReferences();
    makePrograms();
    if (failed(splitForward()) || failed(splitBackward()) || failed(splitUpdate()) ||
        failed(splitEval())) {
      return failure();
    }
    moveParameters();
    for (SegmentSplit* parts :
         {forwardParts_.get(), backwardParts_.get(), updateParts_.get(), evalParts_.get()}) {
      parts->finish(rank_);
    }
    for (FuncOp segment : {forward_, backward_, update_, eval_}) segment.erase();
    return attachSchedules();
  }

 private:
  // What is looked up by its role.
  LogicalResult checkRoles() {
    FailureOr<ir::SegmentRoles> forward = ir::SegmentRoles::read(forward_);
    FailureOr<ir::SegmentRoles> backward = ir::SegmentRoles::read(backward_);
    FailureOr<ir::SegmentRoles> update = ir::SegmentRoles::read(update_);
    if (failed(forward) || failed(backward) || failed(update)) return failure();
    return success(succeeded(backward->checkReads(ValueKind::kStash, *forward)) &&
                   succeeded(update->checkReads(ValueKind::kGradient, *backward)) &&
                   succeeded(update->checkReplaces({ValueKind::kGradient})));
  }

  LogicalResult readStages() {
    for (Operation& op : forward_.getBody().front().without_terminator()) {
      auto stage = op.getAttrOfType<mlir::IntegerAttr>(kStageAttr);
      if (!stage || stage.getInt() < 0 || stage.getInt() >= stages_) {
        return op.emitOpError("is in none of the ") << stages_ << " stages: run assign-stages";
      }
      for (Value operand : op.getOperands()) {
        auto producer = operand.getDefiningOp();
        if (producer &&
            producer->getAttrOfType<mlir::IntegerAttr>(kStageAttr).getInt() > stage.getInt()) {
          return op.emitOpError("is in stage ")
                 << stage.getInt() << ", but uses a value of a later one";
        }
      }
      int64_t origin = ir::originOf(&op);
      int64_t known = stageOfOrigin_.try_emplace(origin, stage.getInt()).first->second;
      if (origin < 0) {
        return op.emitOpError(
            "has no origin, which tells the stage of its backward: the train phase numbers ops, "
            "and "
            "what a pass adds behind it must get a number (the attribute `origin`) of an op of "
            "that stage");
      }
      if (known != stage.getInt()) {
        return op.emitOpError("has the origin ")
               << origin << ", which ops of stage " << known << " have, but is in stage "
               << stage.getInt() << ": run the train phase first";
      }
    }
    for (Operation& op : forward_.getBody().front()) op.removeAttr(kStageAttr);
    return success();
  }

  // So that arguments and results of the new functions stand in the old order.
  void rankReferences() {
    unsigned next = 1;
    for (FuncOp segment : {forward_, backward_, update_, eval_}) {
      for (BlockArgument argument : segment.getArguments()) {
        FailureOr<ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
        if (succeeded(role)) rank_.try_emplace(role->ref, next++);
      }
    }
  }

  int programOf(int64_t stage) const { return static_cast<int>(stage % grids_); }

  void makePrograms() {
    auto builder = mlir::OpBuilder::atBlockEnd(module_.getBody());
    auto labels = module_->getAttrOfType<mlir::ArrayAttr>(kStagesAttr);
    int64_t firstRank = 0;
    for (int64_t grid = 0; grid < grids_; ++grid) {
      auto program = ModuleOp::create(builder, module_.getLoc(), "p" + std::to_string(grid));
      program->setAttr(kFirstRankAttr, builder.getI64IntegerAttr(firstRank));
      firstRank += strategy_.meshOfGrid(grid).ranks();
      llvm::SmallVector<mlir::Attribute> own;
      for (int64_t stage = grid; stage < stages_; stage += grids_) {
        own.push_back(labels && stage < static_cast<int64_t>(labels.size())
                          ? labels[stage]
                          : builder.getStringAttr("stage " + std::to_string(stage)));
      }
      program->setAttr(kStagesAttr, builder.getArrayAttr(own));
      programs_.push_back(program);
    }
    module_->removeAttr(kStagesAttr);
    // Where some grids stand for others, those of all are there already.
    if (!module_->hasAttr(kPlacementAttr)) setRankPlaces(module_, strategy_.places());
  }

  // A part of the segment per stage, numbered by stage.
  std::vector<SegmentPart> partPerStage(llvm::StringRef segment) const {
    std::vector<SegmentPart> parts;
    for (int64_t stage = 0; stage < stages_; ++stage) {
      parts.push_back({(segment + "." + llvm::Twine(stage)).str(), programOf(stage)});
    }
    return parts;
  }

  static Value noImport(const ValueRole&, int) { return {}; }

  // Adds all ops but those that are repeated where they are used, part by part.
  void addInOrder(FuncOp segment, SegmentSplit& split, llvm::function_ref<int(Operation*)> partOf,
                  SegmentSplit::Import import) {
    std::vector<std::pair<int, Operation*>> ops;
    for (Operation& op : segment.getBody().front().without_terminator()) {
      if (!split.isFree(&op)) ops.emplace_back(partOf(&op), &op);
    }
    llvm::stable_sort(ops, llvm::less_first());
    for (auto [part, op] : ops) split.add(op, part, import);
  }

  LogicalResult splitForward() {
    forwardParts_ = std::make_unique<SegmentSplit>(forward_, partPerStage("forward"), programs_);
    if (failed(forwardParts_->readRoles())) return failure();
    auto partOf = [&](Operation* op) {
      return static_cast<int>(stageOfOrigin_.lookup(ir::originOf(op)));
    };
    addInOrder(forward_, *forwardParts_, partOf, noImport);
    auto terminator = forward_.getBody().front().getTerminator();
    for (mlir::OpOperand& result : terminator->getOpOperands()) {
      FailureOr<ValueRole> role = ir::resultRole(forward_, result.getOperandNumber());
      if (failed(role)) return failure();
      if (role->kind == ValueKind::kStash) {
        stashed_[role->ref] = result.get();
        continue;
      }
      // The sums over microbatches are where their last summand is.
      int part = static_cast<int>(stages_ - 1);
      if (Operation* producer = result.get().getDefiningOp()) part = partOf(producer);
      forwardParts_->part(part).addResult(forwardParts_->get(result.get(), part, noImport), *role);
      sumsProgram_ = programOf(part);
    }
    return success();
  }

  // --- backward

  // Halves of a stage's backward are neighbours; without halves the second is empty.
  int backwardPart(int64_t stage, bool weight) const {
    return static_cast<int>((stages_ - 1 - stage) * 2 + (weight && splitsBackward_ ? 1 : 0));
  }
  int64_t stageOfBackwardPart(int part) const { return stages_ - 1 - part / 2; }

  int backwardPartOf(Operation* op) const {
    auto forced = forced_.find(op);
    if (forced != forced_.end()) return forced->second;
    return backwardPart(stageOfOrigin_.lookup(ir::originOf(op)), op->hasAttr(kWeightGradient));
  }

  // Where the ops of one forward op join what others' give (the gradients of a weight's slices,
  // each used by another stage), they run when the last of it is there.
  void waitForOperands() {
    for (Operation& op : backward_.getBody().front().without_terminator()) {
      int part = backwardPartOf(&op);
      for (Value operand : op.getOperands()) {
        Operation* producer = operand.getDefiningOp();
        if (producer && !backwardParts_->isFree(producer)) {
          part = std::max(part, backwardPartOf(producer));
        }
      }
      if (part > backwardPartOf(&op)) forced_[&op] = part;
    }
  }

  // The cotangent of a value that other programs use comes from each as one.
  void sumCotangents() {
    llvm::SmallVector<ir::AddOp> roots;
    for (auto add : backward_.getBody().front().getOps<ir::AddOp>()) {
      bool isInner = add->hasOneUse() && llvm::isa<ir::AddOp>(*add->user_begin()) &&
                     add->user_begin()->getResult(0).getType() == add.getType();
      if (!isInner) roots.push_back(add);
    }
    auto partOf = [&](Operation* op) { return backwardPartOf(op); };
    for (ir::AddOp root : roots) {
      sumByProgram(root, backwardPartOf(root), *backwardParts_, partOf, forced_);
    }
  }

  // The gradient of a parameter that several parts use is summed in each of them.
  LogicalResult separateGradients() {
    Operation* terminator = backward_.getBody().front().getTerminator();
    for (mlir::OpOperand& result : terminator->getOpOperands()) {
      FailureOr<ValueRole> role = ir::resultRole(backward_, result.getOperandNumber());
      if (failed(role)) return failure();
      auto next = result.get().getDefiningOp<ir::AddOp>();
      BlockArgument sum = next ? llvm::dyn_cast<BlockArgument>(next.getLhs()) : BlockArgument();
      if (!sum) {
        return backward_.emitError("result ")
               << result.getOperandNumber() << " adds nothing to a gradient";
      }
      llvm::SmallVector<Value> summands;
      llvm::SmallVector<Operation*> adds;
      collectSummands(next.getRhs(), summands, adds);
      std::map<int, llvm::SmallVector<Value>> byPart;
      for (Value summand : summands) {
        Operation* producer = summand.getDefiningOp();
        if (!producer) return next.emitOpError("adds an argument to a gradient");
        byPart[backwardPartOf(producer)].push_back(summand);
      }
      if (byPart.size() == 1) {
        forced_[next] = byPart.begin()->first;
        for (Operation* add : adds) forced_[add] = byPart.begin()->first;
        gradients_.push_back({next, *role, byPart.begin()->first});
        continue;
      }
      for (auto& [part, values] : byPart) {
        Value total = values.front();
        for (Value value : llvm::drop_begin(values))
          total = addBefore(next, total, value, part, forced_);
        gradients_.push_back({addBefore(next, sum, total, part, forced_), *role, part});
      }
    }
    // What is only returned is in `gradients_`.
    terminator->setOperands({});
    llvm::SmallVector<Value> kept;
    for (const Gradient& gradient : gradients_) kept.push_back(gradient.value);
    eraseDeadOps(backward_.getBody().front(), kept);
    sumCotangents();
    return success();
  }

  // A stage that makes gradients of parameters only has one half, which runs when it can.
  void nameOnlyHalves() {
    std::set<int> used;
    for (Operation& op : backward_.getBody().front().without_terminator()) {
      if (!backwardParts_->isFree(&op)) used.insert(backwardPartOf(&op));
    }
    for (int64_t stage = 0; stage < stages_; ++stage) {
      if (!splitsBackward_ || used.count(backwardPart(stage, false))) continue;
      backwardParts_->rename(backwardPart(stage, true), "backward_input." + std::to_string(stage));
    }
  }

  LogicalResult splitBackward() {
    std::vector<SegmentPart> parts;
    for (int64_t stage = stages_ - 1; stage >= 0; --stage) {
      std::string number = "." + std::to_string(stage);
      parts.push_back(
          {(splitsBackward_ ? "backward_input" : "backward") + number, programOf(stage)});
      parts.push_back({"backward_weight" + number, programOf(stage)});
    }
    backwardParts_ = std::make_unique<SegmentSplit>(backward_, std::move(parts), programs_);
    if (failed(backwardParts_->readRoles())) return failure();
    waitForOperands();
    if (failed(separateGradients())) return failure();
    backwardParts_->forgetFree();
    nameOnlyHalves();
    auto import = [&](const ValueRole& role, int part) -> Value {
      if (role.kind != ValueKind::kStash) return {};
      const std::string name = keepStash(role.ref, part);
      Value value = stashed_.at(role.ref);
      return backwardParts_->part(part).argument({ValueKind::kStash, name, ""}, value.getType(),
                                                 value.getLoc());
    };
    addInOrder(
        backward_, *backwardParts_, [&](Operation* op) { return backwardPartOf(op); }, import);
    for (const Gradient& gradient : gradients_) {
      Value local = backwardParts_->get(gradient.value, gradient.part, import);
      SegmentBuilder& part = backwardParts_->part(gradient.part);
      part.addResult(local, gradient.role);
      gradientPrograms_[gradient.role.ref].insert(backwardParts_->programOf(gradient.part));
    }
    return success();
  }

  // The program of a backward part has the stash value from its own forward. Returns its name,
  // which is another one where a later stage of the program had asked for it before.
  std::string keepStash(const std::string& ref, int backwardPart) {
    Value value = stashed_.at(ref);
    int program = backwardParts_->programOf(backwardPart);
    if (forwardParts_->holder(value, program) < 0) {
      int part = static_cast<int>(stageOfBackwardPart(backwardPart));
      forwardParts_->define(value, part, forwardParts_->get(value, part, noImport));
    }
    return forwardParts_->addStash(value, program, ref);
  }

  // --- update

  // The program that steps a parameter; the first user of a frozen one.
  int homeOf(const std::string& parameter) const {
    auto found = gradientPrograms_.find(parameter);
    if (found != gradientPrograms_.end()) return *found->second.begin();
    std::set<int> users = usersOf(parameter);
    return users.empty() ? 0 : *users.begin();
  }

  // An op on a parameter is at its home, another one where its last operand is.
  int updatePartOf(Operation* op) const {
    auto forced = forced_.find(op);
    if (forced != forced_.end()) return forced->second;
    int last = 0;
    for (Value operand : op->getOperands()) {
      if (Operation* producer = operand.getDefiningOp()) {
        if (!updateParts_->isFree(producer)) last = std::max(last, updatePartOf(producer));
        continue;
      }
      const ValueRole& role = updateParts_->roleOf(operand);
      if (role.isParameterBound()) return homeOf(role.ref);
      if (role.kind == ValueKind::kAccumulator) last = std::max(last, sumsProgram_);
    }
    return last;
  }

  // Ops on the parameters of several programs become ops on each one's, and sums are added up by
  // program before they travel.
  void separateUpdate() {
    auto partOf = [&](Operation* op) { return updatePartOf(op); };
    for (Operation& op :
         llvm::make_early_inc_range(update_.getBody().front().without_terminator())) {
      std::set<int> homes;
      for (Value operand : op.getOperands()) {
        if (operand.getDefiningOp()) continue;
        const ValueRole& role = updateParts_->roleOf(operand);
        if (role.isParameterBound()) homes.insert(homeOf(role.ref));
      }
      auto shardable = llvm::dyn_cast<ir::ShardableOpInterface>(op);
      if (homes.size() < 2 || !shardable) continue;
      mlir::OpBuilder builder(&op);
      llvm::SmallVector<Value> replacements = shardable.decompose(builder);
      if (replacements.empty()) continue;
      op.replaceAllUsesWith(replacements);
      op.erase();
      for (Value replacement : replacements) {
        Operation* root = replacement.getDefiningOp();
        if (root) {
          sumByProgram(replacement, updatePartOf(root), *updateParts_, partOf, forced_);
        }
      }
    }
  }

  LogicalResult splitUpdate() {
    forced_.clear();  // ops of the backward, some of them erased
    std::vector<SegmentPart> parts;
    for (int64_t grid = 0; grid < grids_; ++grid) {
      parts.push_back({"update", static_cast<int>(grid)});
    }
    updateParts_ = std::make_unique<SegmentSplit>(update_, std::move(parts), programs_);
    if (failed(updateParts_->readRoles())) return failure();
    separateUpdate();
    for (BlockArgument argument : update_.getArguments()) {
      const ValueRole& role = updateParts_->roleOf(argument);
      if (role.kind == ValueKind::kGradient) gatherGradient(argument, role);
      if (role.kind == ValueKind::kAccumulator) updateParts_->keepIn(argument, sumsProgram_);
    }
    for (Operation& op : update_.getBody().front().without_terminator()) {
      if (!updateParts_->isFree(&op)) updateParts_->add(&op, updatePartOf(&op), noImport);
    }
    Operation* terminator = update_.getBody().front().getTerminator();
    for (mlir::OpOperand& result : terminator->getOpOperands()) {
      FailureOr<ValueRole> role = ir::resultRole(update_, result.getOperandNumber());
      if (failed(role)) return failure();
      for (int program : programsOf(*role)) {
        updateParts_->part(program).addResult(updateParts_->get(result.get(), program, noImport),
                                              *role);
      }
    }
    return success();
  }

  // Where the update makes a new value of what the role names.
  std::set<int> programsOf(const ValueRole& role) const {
    std::set<int> programs;
    switch (role.kind) {
      case ValueKind::kGradient:
        return gradientPrograms_.at(role.ref);
      case ValueKind::kOptimizerState:
        return {homeOf(role.ref)};
      case ValueKind::kAccumulator:
        return {sumsProgram_};
      case ValueKind::kParameter:
        programs = usersOf(role.ref);
        programs.insert(homeOf(role.ref));
        return programs;
      default:
        // The host reads the outputs on every rank.
        for (int grid = 0; grid < grids_; ++grid) programs.insert(grid);
        return programs;
    }
  }

  // The home of a parameter that several programs use gets the others' gradients.
  void gatherGradient(BlockArgument argument, const ValueRole& role) {
    const std::set<int>& programs = gradientPrograms_.at(role.ref);
    if (programs.size() < 2) return;
    int home = homeOf(role.ref);
    Value total = updateParts_->get(argument, home, noImport);
    for (int other : programs) {
      if (other == home) continue;
      Value own = updateParts_->part(other).argument(role, argument.getType(), argument.getLoc());
      Value sent = updateParts_->transfer(own, other, home, /*origin=*/-1);
      total = ir::AddOp::create(updateParts_->part(home).builder(), argument.getLoc(), total, sent);
    }
    updateParts_->define(argument, home, total);
  }

  // Programs whose forward or backward reads the parameter. An evaluation reads the same ones.
  std::set<int> usersOf(const std::string& parameter) const {
    ValueRole role{ValueKind::kParameter, parameter, ""};
    std::set<int> users = forwardParts_->readersOf(role);
    users.merge(backwardParts_->readersOf(role));
    return users;
  }

  // --- eval

  LogicalResult splitEval() {
    evalParts_ = std::make_unique<SegmentSplit>(eval_, partPerStage("eval"), programs_);
    if (failed(evalParts_->readRoles())) return failure();
    int last = static_cast<int>(stages_ - 1);
    auto partOf = [&](Operation* op) {
      auto found = stageOfOrigin_.find(ir::originOf(op));
      return found == stageOfOrigin_.end() ? last : static_cast<int>(found->second);
    };
    addInOrder(eval_, *evalParts_, partOf, noImport);
    Operation* terminator = eval_.getBody().front().getTerminator();
    for (mlir::OpOperand& result : terminator->getOpOperands()) {
      FailureOr<ValueRole> role = ir::resultRole(eval_, result.getOperandNumber());
      if (failed(role)) return failure();
      evalParts_->part(last).addResult(evalParts_->get(result.get(), last, noImport), *role);
    }
    return success();
  }

  // --- the rest

  void moveParameters() {
    for (auto parameter : llvm::make_early_inc_range(module_.getOps<ir::ParameterOp>())) {
      std::string symbol = parameter.getSymName().str();
      int home = homeOf(symbol);
      std::set<int> programs = usersOf(symbol);
      programs.insert(home);
      for (int program : programs) {
        auto builder = mlir::OpBuilder::atBlockBegin(programs_[program].getBody());
        auto functions = programs_[program].getOps<FuncOp>();
        if (!functions.empty()) builder.setInsertionPoint(*functions.begin());
        Operation* copy = builder.clone(*parameter);
        if (program != home) copy->setAttr(kCopyAttr, builder.getUnitAttr());
      }
      parameter.erase();
    }
  }

  LogicalResult attachSchedules() {
    PipelineShape shape;
    shape.grids = grids_;
    shape.microbatches = microbatches_;
    for (int64_t stage = 0; stage < stages_; ++stage) {
      shape.hasBackward.push_back(backwardParts_->hasPart(backwardPart(stage, false)) ||
                                  backwardParts_->hasPart(backwardPart(stage, true)));
    }
    auto schedule = makeSchedule(strategy_.pipeline->schedule, shape);
    if (!schedule.ok()) return module_.emitError(std::string(schedule.status().message()));
    for (auto [program, runs] : llvm::zip_equal(programs_, *schedule)) {
      std::vector<ScheduleEntry> entries;
      for (const StageRun& run : runs) {
        std::string name = phaseName(run.phase) + "." + std::to_string(run.stage);
        // A half of a backward may have nothing to do.
        if (program.lookupSymbol<FuncOp>(name)) entries.push_back({name, run.microbatch});
      }
      entries.push_back({"update", 0});
      setSchedule(program, entries);
    }
    return success();
  }

  struct Gradient {
    Value value;
    ValueRole role;
    int part;
  };

  ModuleOp module_;
  const Strategy& strategy_;
  int64_t microbatches_, stages_, grids_;
  bool splitsBackward_;
  FuncOp forward_, backward_, update_, eval_;
  llvm::DenseMap<int64_t, int64_t> stageOfOrigin_;
  llvm::StringMap<unsigned> rank_;
  llvm::SmallVector<ModuleOp> programs_;
  std::unique_ptr<SegmentSplit> forwardParts_, backwardParts_, updateParts_, evalParts_;
  std::map<std::string, Value> stashed_;  // values of @forward, by their stash name
  ForcedParts forced_;
  std::vector<Gradient> gradients_;                        // what the backward adds to gradients
  std::map<std::string, std::set<int>> gradientPrograms_;  // by parameter
  int sumsProgram_ = 0;                                    // that counts loss and tokens
};

struct SplitStages : StrategyPass<impl::SplitStagesBase<SplitStages>> {
  using StrategyPass::StrategyPass;
  SplitStages(Strategy strategy, int64_t count) : StrategyPass(std::move(strategy)) {
    microbatches = count;
  }

  LogicalResult run(ModuleOp module, const Strategy& strategy) override {
    if (strategy.stageCount() == 1) return success();
    for (auto segment : module.getOps<mlir::func::FuncOp>()) {
      if (failed(ir::checkOrigins(segment))) return failure();
    }
    return StageSplitter(module, strategy, microbatches).run();
  }
};

}  // namespace

std::unique_ptr<mlir::Pass> createSplitStages(Strategy strategy, int64_t microbatches) {
  return std::make_unique<SplitStages>(std::move(strategy), microbatches);
}

}  // namespace oriel
