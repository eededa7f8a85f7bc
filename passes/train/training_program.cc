#include "passes/train/training_program.h"

#include <string>
#include <utility>
#include <vector>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "passes/config/suggest.h"
#include "passes/train/autodiff.h"
#include "passes/train/fused_loss.h"
#include "passes/train/isolate.h"
#include "passes/train/loss.h"
#include "passes/train/parameters.h"
#include "passes/train/segment_builder.h"
#include "passes/train/update.h"
#include "passes/train/weight_gradient.h"

using namespace mlir;

namespace oriel {
namespace {

using ir::ValueKind;
using ir::ValueRole;

const ValueRole kLossSumRole{ValueKind::kAccumulator, kLossSum, ""};
const ValueRole kTokenCountRole{ValueKind::kAccumulator, kTokenCount, ""};

class TrainingProgram {
 public:
  TrainingProgram(ModuleOp module, const Recipe& recipe, bool fusesLoss, int64_t positionRanks)
      : module_(module), recipe_(recipe), fusesLoss_(fusesLoss), positionRanks_(positionRanks) {}

  LogicalResult build() {
    if (failed(findMain()) || failed(findOutput()) || failed(findLabels()) || failed(checkLoss())) {
      return failure();
    }
    FailureOr<SmallVector<ir::ParameterOp>> trainable = selectTrainable(module_, recipe_);
    if (failed(trainable)) return failure();
    trainable_ = std::move(*trainable);
    reduceMainToOutput();
    rewriteLosses();
    numberOps();
    leaveOutUnused();
    rankReferences();
    if (failed(buildForwardAndBackward())) return failure();
    buildUpdate(module_, main_.getLoc(), recipe_, trainable_, rank_);
    buildEval();
    main_.erase();
    return success();
  }

 private:
  // A copy of the model in a segment, with the loss on top.
  struct Model {
    Value output;
    LossValues loss;
    int64_t nextOrigin;
  };

  LogicalResult findMain();
  bool isSum() const { return recipe_.loss.kind == Recipe::LossKind::kSum; }
  LogicalResult findOutput();
  LogicalResult findLabels();
  LogicalResult checkLoss();
  void reduceMainToOutput();
  void leaveOutUnused();
  void rankReferences();
  Model buildModel(SegmentBuilder& segment);
  static void eraseUnused(Value output);
  LogicalResult buildForwardAndBackward();
  void rewriteLosses();
  void fuseLossesOfMain();
  void numberOps();
  void fuseLossOf(Model& model);
  static void warnOfLogits(Location loc);
  FailureOr<SmallVector<Value>> buildGradients(SegmentBuilder& forward, SegmentBuilder& backward,
                                               Value lossSum);
  SmallVector<Value> accumulate(ArrayRef<Value> gradients, SegmentBuilder& forward,
                                SegmentBuilder& backward);
  void stashWhatIsRead(SegmentBuilder& forward, SegmentBuilder& backward);
  void accumulateLoss(SegmentBuilder& forward, Model& model);
  void freezeWhereNull(ArrayRef<Value> values);
  void buildEval();

  ModuleOp module_;
  const Recipe& recipe_;
  const bool fusesLoss_;
  const int64_t positionRanks_;
  bool isLossFused_ = false;
  func::FuncOp main_;
  SmallVector<ValueRole> argumentRoles_;  // of main
  Value output_;                          // in main; what the loss is made of
  RankedTensorType labelsType_;           // null without labels
  SmallVector<ir::ParameterOp> trainable_;
  llvm::StringMap<unsigned> rank_;  // order of references in the segments
};

LogicalResult TrainingProgram::findMain() {
  main_ = module_.lookupSymbol<func::FuncOp>("main");
  if (!main_) return module_.emitError("has no function @main to train");
  if (!main_.getBody().hasOneBlock()) return main_.emitError("must have one block to be trained");
  const mlir::SymbolTable symbols(module_);
  for (unsigned i = 0; i < main_.getNumArguments(); ++i) {
    FailureOr<ValueRole> role = ir::argumentRole(main_, i);
    if (failed(role)) return failure();
    if (role->kind != ValueKind::kInput && role->kind != ValueKind::kParameter) {
      return main_.emitError("argument ") << i << " must be an input or a parameter";
    }
    if (role->kind == ValueKind::kParameter && !symbols.lookup<ir::ParameterOp>(role->ref)) {
      return main_.emitError("argument ")
             << i << " refers to @" << role->ref << ", which is not an oriel.parameter";
    }
    argumentRoles_.push_back(std::move(*role));
  }
  return success();
}

LogicalResult TrainingProgram::findOutput() {
  std::vector<std::string> names;
  for (unsigned i = 0; i < main_.getNumResults(); ++i) {
    FailureOr<ValueRole> role = ir::resultRole(main_, i);
    if (failed(role)) return failure();
    names.push_back(role->ref);
    if (role->ref == recipe_.loss.output) {
      output_ = main_.getBody().front().getTerminator()->getOperand(i);
    }
  }
  if (output_ && isa<RankedTensorType>(output_.getType())) return success();
  return main_.emitError("the model has no output '")
         << recipe_.loss.output << "', which the recipe's loss." << (isSum() ? "output" : "logits")
         << " names" << suggestion(recipe_.loss.output, names);
}

LogicalResult TrainingProgram::findLabels() {
  std::vector<std::string> names;
  for (const Recipe::Input& input : recipe_.inputs) {
    names.push_back(input.name);
    for (const ValueRole& role : argumentRoles_) {
      if (role.kind == ValueKind::kInput && role.ref == input.name) {
        return main_.emitError("the recipe's inputs declare '")
               << input.name << "', but the model has an input of that name";
      }
    }
    if (input.name != recipe_.loss.labels) {
      main_.emitWarning("the recipe's input '") << input.name << "' is not used";
      continue;
    }
    unsigned width = input.dtype == "int64" ? 64 : input.dtype == "int32" ? 32 : 0;
    if (width == 0) {
      return main_.emitError("the labels '")
             << input.name << "' must be int64 or int32, not " << input.dtype;
    }
    labelsType_ = RankedTensorType::get(input.shape, IntegerType::get(module_.getContext(), width));
  }
  if (labelsType_ || isSum()) return success();
  for (auto [argument, role] : llvm::zip_equal(main_.getArguments(), argumentRoles_)) {
    if (role.kind != ValueKind::kInput) continue;
    names.push_back(role.ref);
    if (role.ref != recipe_.loss.labels) continue;
    labelsType_ = ir::tensorType(argument);
    if (!labelsType_.getElementType().isSignlessInteger(64) &&
        !labelsType_.getElementType().isSignlessInteger(32)) {
      return main_.emitError("the labels '")
             << role.ref << "' must be int64 or int32, not " << labelsType_;
    }
    return success();
  }
  return main_.emitError("neither the recipe's inputs nor the model have an input '")
         << recipe_.loss.labels << "', which loss.labels names"
         << suggestion(recipe_.loss.labels, names);
}

LogicalResult TrainingProgram::checkLoss() {
  auto type = ir::tensorType(output_);
  return isSum() ? checkSummand(main_.getLoc(), recipe_.loss, type)
                 : checkLossTypes(main_.getLoc(), recipe_.loss, type, labelsType_);
}

// Leaves in main what computes the loss's output, and numbers it: the number is what a backward op
// says it came from.
void TrainingProgram::reduceMainToOutput() {
  Block& block = main_.getBody().front();
  block.getTerminator()->setOperands(output_);
  eraseDeadOps(block);
}

// Cross entropies that the model computes are as one of the recipe's.
void TrainingProgram::rewriteLosses() {
  for (auto loss : main_.getOps<ir::CrossEntropyOp>()) {
    readLogitsAsMade(loss, recipe_.precision, loss.getLoc());
  }
  for (auto losses : main_.getOps<ir::TokenLossesOp>()) {
    readLogitsAsMade(losses, recipe_.precision, losses.getLoc());
  }
  eraseDeadOps(main_.getBody().front());
  if (fusesLoss_ && isSum()) fuseLossesOfMain();
}

void TrainingProgram::numberOps() {
  int64_t origin = 0;
  for (Operation& op : main_.getBody().front()) setOrigin(&op, origin++);
}

// Parameters that only other outputs use: no rank needs them, and the model keeps what it has.
void TrainingProgram::leaveOutUnused() {
  const mlir::SymbolTable symbols(module_);
  SmallVector<ir::ParameterOp> unused;
  for (auto [argument, role] : llvm::zip_equal(main_.getArguments(), argumentRoles_)) {
    if (role.kind != ValueKind::kParameter || !argument.use_empty()) continue;
    unused.push_back(symbols.lookup<ir::ParameterOp>(role.ref));
  }
  if (unused.empty()) return;
  std::string more;
  if (unused.size() > 1) more = " and " + std::to_string(unused.size() - 1) + " more";
  main_.emitWarning("the output '")
      << recipe_.loss.output << "' does not depend on the parameter '"
      << unused.front().getOnnxName() << "'" << more
      << ": left out of the plan and its checkpoints; an export to ONNX keeps the model's values";
  SmallVector<Attribute> names;
  for (ir::ParameterOp parameter : unused) {
    names.push_back(parameter.getOnnxNameAttr());
    llvm::erase(trainable_, parameter);
    parameter.erase();
  }
  module_->setAttr(ir::kLeftOutAttr, ArrayAttr::get(module_.getContext(), names));
}

void TrainingProgram::rankReferences() {
  unsigned next = 1;
  for (const ValueRole& role : argumentRoles_) {
    if (role.kind == ValueKind::kInput) rank_.try_emplace(role.ref, next++);
  }
  rank_.try_emplace(recipe_.labelsInput(), next++);
  for (auto parameter : module_.getOps<ir::ParameterOp>()) {
    rank_.try_emplace(parameter.getSymName(), next++);
  }
}

TrainingProgram::Model TrainingProgram::buildModel(SegmentBuilder& segment) {
  IRMapping mapping;
  for (auto [argument, role] : llvm::zip_equal(main_.getArguments(), argumentRoles_)) {
    if (argument.use_empty()) continue;
    mapping.map(argument, segment.argument(role, argument.getType(), argument.getLoc()));
  }
  OpBuilder& builder = segment.builder();
  Block& block = main_.getBody().front();
  for (Operation& op : block.without_terminator()) builder.clone(op, mapping);
  Model model;
  model.output = mapping.lookup(output_);
  Location loc = NameLoc::get(builder.getStringAttr("loss"));
  Operation* last = segment.block().empty() ? nullptr : &segment.block().back();
  if (isSum()) {
    model.loss = buildSum(builder, loc, model.output);
  } else {
    Value labels =
        segment.argument({ValueKind::kInput, recipe_.labelsInput(), ""}, labelsType_, loc);
    model.loss = buildCrossEntropy(builder, loc, recipe_, model.output, labels);
  }
  // The ops of the loss are forward ops too; main's terminator holds the next number's place.
  int64_t origin = static_cast<int64_t>(block.getOperations().size()) - 1;
  for (Operation* op = last ? last->getNextNode() : &segment.block().front(); op;
       op = op->getNextNode()) {
    setOrigin(op, origin++);
  }
  model.nextOrigin = origin;
  return model;
}

// A slice of wide logits is for others than the loss, and so are widened ones.
void TrainingProgram::eraseUnused(Value output) {
  while (Operation* op = output.getDefiningOp()) {
    if (!isOpTriviallyDead(op)) return;
    Value input = op->getNumOperands() > 0 ? op->getOperand(0) : Value();
    op->erase();
    if (!input) return;
    output = input;
  }
}

// The first op of a segment that reads a parameter, which has a gradient.
static Operation* firstUser(SegmentBuilder& segment, ir::ParameterOp parameter) {
  Value value = segment.find({ValueKind::kParameter, parameter.getSymName().str(), ""});
  Operation* first = nullptr;
  for (Operation* user : value.getUsers()) {
    if (user->getBlock() != &segment.block()) continue;
    if (!first || originOf(user) < originOf(first)) first = user;
  }
  return first;
}

LogicalResult TrainingProgram::buildForwardAndBackward() {
  SegmentBuilder forward(module_, "forward", main_.getLoc());
  Model model = buildModel(forward);
  if (model.output != model.loss.sum) eraseUnused(model.output);
  if (fusesLoss_ && !isSum()) fuseLossOf(model);

  SegmentBuilder backward(module_, "backward", main_.getLoc());
  FailureOr<SmallVector<Value>> gradients = buildGradients(forward, backward, model.loss.sum);
  if (failed(gradients)) return failure();
  const SmallVector<Value> sums = accumulate(*gradients, forward, backward);
  // Before the captures: what a dead op reads is not stashed.
  eraseDeadOps(backward.block(), sums);
  stashWhatIsRead(forward, backward);
  accumulateLoss(forward, model);
  forward.finish(rank_);
  backward.finish(rank_);
  return success();
}

void TrainingProgram::fuseLossOf(Model& model) {
  const Value before = model.loss.sum;
  model.loss = fuseLoss(model.loss);
  isLossFused_ = model.loss.sum != before;
  if (!isLossFused_) warnOfLogits(before.getLoc());
}

void TrainingProgram::fuseLossesOfMain() {
  bool isAny = false;
  for (auto entropy : llvm::make_early_inc_range(main_.getOps<ir::CrossEntropyOp>())) {
    const LossValues before{entropy.getLossSum(), entropy.getTokenCount()};
    isAny |= fuseLoss(before).sum != before.sum;
  }
  for (auto losses : llvm::make_early_inc_range(main_.getOps<ir::TokenLossesOp>())) {
    isAny |= fuseTokenLosses(losses);
  }
  output_ = main_.getBody().front().getTerminator()->getOperand(0);
  if (!isAny) warnOfLogits(main_.getLoc());
}

void TrainingProgram::warnOfLogits(Location loc) {
  mlir::emitWarning(loc)
      << "the loss can't be computed with the output layer: it must be the cross entropy, or "
         "log-probabilities of labels, of what a linear layer gives and nothing else reads, nor "
         "changes but by one factor where it has no bias; the logits stay whole";
}

// Those of the parameters that have one; the others are frozen.
FailureOr<SmallVector<Value>> TrainingProgram::buildGradients(SegmentBuilder& forward,
                                                              SegmentBuilder& backward,
                                                              Value lossSum) {
  SmallVector<Value> wanted;
  for (ir::ParameterOp parameter : trainable_) {
    wanted.push_back(forward.find({ValueKind::kParameter, parameter.getSymName().str(), ""}));
  }
  freezeWhereNull(wanted);
  llvm::erase(wanted, Value());

  OpBuilder& builder = backward.builder();
  auto lossType = ir::tensorType(lossSum);
  Value seed = ir::ConstantOp::create(
      builder, lossSum.getLoc(),
      DenseElementsAttr::get(lossType, builder.getFloatAttr(lossType.getElementType(), 1.0)));
  setOrigin(seed.getDefiningOp(), originOf(lossSum.getDefiningOp()));
  FailureOr<SmallVector<Value>> gradients =
      Autodiff(forward.block(), {lossSum}, wanted).build(builder, {seed});
  if (failed(gradients)) return failure();
  freezeWhereNull(*gradients);
  if (trainable_.empty()) {
    return main_.emitError("the loss depends on no trainable parameter");
  }
  llvm::erase(*gradients, Value());
  return gradients;
}

// Adds the gradients of a microbatch to those of the ones before. Returns the sums.
SmallVector<Value> TrainingProgram::accumulate(ArrayRef<Value> gradients, SegmentBuilder& forward,
                                               SegmentBuilder& backward) {
  OpBuilder& builder = backward.builder();
  SmallVector<Value> sums;
  for (auto [parameter, own] : llvm::zip_equal(trainable_, gradients)) {
    ValueRole role{ValueKind::kGradient, parameter.getSymName().str(), ""};
    Value gradient = gradientAs(builder, own, gradientType(parameter, recipe_).getElementType());
    Value sum = backward.argument(role, gradient.getType(), parameter.getLoc());
    // At once, so that a gradient does not take memory until all are there.
    OpBuilder::InsertionGuard guard(builder);
    if (gradient.getParentBlock() == &backward.block() && gradient.getDefiningOp()) {
      builder.setInsertionPointAfterValue(gradient);
    }
    Value next = ir::AddOp::create(builder, gradient.getLoc(), sum, gradient);
    // An input, which may be a gradient, has no maker: the origin is what reads the parameter.
    Operation* maker = gradient.getDefiningOp();
    setOrigin(next.getDefiningOp(), originOf(maker ? maker : firstUser(forward, parameter)));
    next.getDefiningOp()->setAttr(kWeightGradient, builder.getUnitAttr());
    backward.addResult(next, role);
    sums.push_back(next);
  }
  return sums;
}

// What the backward reads of the forward becomes an argument, and a result of the forward.
void TrainingProgram::stashWhatIsRead(SegmentBuilder& forward, SegmentBuilder& backward) {
  isolateBlock(backward.block(), [&](Value value) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      return backward.argument(forward.roleOf(argument), value.getType(), value.getLoc());
    }
    auto result = cast<OpResult>(value);
    int64_t origin = originOf(result.getOwner());
    ValueRole role{ValueKind::kStash, "v" + std::to_string(origin), ""};
    if (result.getResultNumber() > 0) role.ref += "." + std::to_string(result.getResultNumber());
    // In the order in which the forward computes them.
    rank_.try_emplace(role.ref, static_cast<unsigned>(origin * 8 + result.getResultNumber()));
    forward.addResult(value, role);
    return backward.argument(role, value.getType(), value.getLoc());
  });
}

// Adds the loss of a microbatch, and its count, to those of the ones before.
void TrainingProgram::accumulateLoss(SegmentBuilder& forward, Model& model) {
  const Location loc = model.loss.sum.getLoc();
  for (auto [value, role] : {std::make_pair(model.loss.sum, kLossSumRole),
                             std::make_pair(model.loss.count, kTokenCountRole)}) {
    Value sum = forward.argument(role, value.getType(), loc);
    Value next = ir::AddOp::create(forward.builder(), loc, sum, value);
    setOrigin(next.getDefiningOp(), model.nextOrigin++);
    forward.addResult(next, role);
  }
}

// `values` are the trainable parameters' arguments or gradients. A parameter without a gradient
// would only decay: it is frozen instead.
void TrainingProgram::freezeWhereNull(ArrayRef<Value> values) {
  SmallVector<ir::ParameterOp> kept, frozen;
  for (auto [parameter, value] : llvm::zip_equal(trainable_, values)) {
    (value ? kept : frozen).push_back(parameter);
  }
  for (ir::ParameterOp parameter : frozen) parameter.setTrainable(false);
  trainable_ = std::move(kept);
  if (frozen.empty()) return;
  constexpr size_t kMost = 3;  // that are named
  std::string names;
  llvm::raw_string_ostream stream(names);
  llvm::interleaveComma(ArrayRef(frozen).take_front(kMost), stream, [&](ir::ParameterOp parameter) {
    stream << "'" << parameter.getOnnxName() << "'";
  });
  if (frozen.size() > kMost) stream << " and " << frozen.size() - kMost << " more";
  const bool isOne = frozen.size() == 1;
  frozen.front()->emitWarning(isOne ? "the trainable parameter " : "the trainable parameters ")
      << names << (isOne ? " does" : " do")
      << " not reach the loss, or only by what has the derivative 0; "
      << (isOne ? "it is" : "they are") << " frozen";
}

void TrainingProgram::buildEval() {
  SegmentBuilder eval(module_, "eval", main_.getLoc());
  Model model = buildModel(eval);
  Location loc = model.loss.sum.getLoc();
  Value best;
  if (isLossFused_) {
    eraseUnused(model.output);
    const LossAndPredictions made = evaluateInPieces(model.loss, positionRanks_);
    model.loss = made.loss;
    best = made.predictions;
  } else if (!isSum()) {
    best = buildArgmax(eval.builder(), loc, model.output);
  }
  auto output = [](StringRef name) { return ValueRole{ValueKind::kOutput, name.str(), ""}; };
  eval.addResult(model.loss.sum, output(kLossSum));
  eval.addResult(model.loss.count, output(kTokenCount));
  if (best) {
    Value predictions = buildPredictions(eval.builder(), loc, recipe_.loss, best, labelsType_);
    eval.addResult(predictions, output("predictions"));
  }
  if (!isLossFused_) eval.addResult(model.output, output("logits"));
  eval.finish(rank_);
}

}  // namespace

LogicalResult buildTrainingProgram(ModuleOp module, const Recipe& recipe, bool fusesLoss,
                                   int64_t positionRanks) {
  return TrainingProgram(module, recipe, fusesLoss, positionRanks).build();
}

}  // namespace oriel
