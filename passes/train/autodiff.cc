#include "passes/train/autodiff.h"

#include "ir/oriel/error_watch.h"
#include "ir/oriel/oriel.h"
#include "llvm/ADT/SetVector.h"
#include "passes/train/join_pads.h"

using namespace mlir;

namespace oriel {
namespace {

const char kOrigin[] = "origin";

// Stamps each op that a builder makes.
struct OriginListener : OpBuilder::Listener {
  int64_t origin = -1;
  SmallVector<Operation*> made;
  void notifyOperationInserted(Operation* op, OpBuilder::InsertPoint) override {
    setOrigin(op, origin);
    made.push_back(op);
  }
};

// Marks those of the ops, which are in program order, that none of the values depends on.
void markWeightGradients(ArrayRef<Operation*> ops, ArrayRef<Value> values) {
  DenseSet<Value> needed(values.begin(), values.end());
  for (Operation* op : llvm::reverse(ops)) {
    if (llvm::any_of(op->getResults(), [&](Value v) { return needed.contains(v); })) {
      needed.insert(op->operand_begin(), op->operand_end());
    } else {
      op->setAttr(kWeightGradient, UnitAttr::get(op->getContext()));
    }
  }
}

// What is known of values' cotangents. Slices' parts wait for each other: they may lie side by
// side.
class Cotangents {
 public:
  // `builder` makes the ops that the listener stamps.
  Cotangents(OpBuilder& builder, OriginListener& listener, function_ref<bool(Value)> isWeight)
      : builder_(builder), listener_(listener), isWeight_(isWeight) {}

  // `user` is the origin of who gives it.
  void accumulate(Value value, Value cotangent, int64_t user) {
    Known& known = known_[value];
    if (isPaddedSlice(cotangent)) {
      known.padded.push_back(cotangent);
      padded_.insert(cotangent.getDefiningOp());
      return;
    }
    Operation* producer = value.getDefiningOp();
    listener_.origin = producer ? originOf(producer) : user;
    add(value, known.sum, cotangent);
    listener_.origin = user;
  }

  // The whole cotangent, or null; to be asked once all users of the value have given theirs.
  Value finish(Value value) {
    auto found = known_.find(value);
    if (found == known_.end()) return {};
    Known& known = found->second;
    if (known.padded.empty()) return known.sum;
    Operation* producer = value.getDefiningOp();
    listener_.origin = originOf(producer ? producer : known.padded.back().getDefiningOp());
    Location loc = producer ? producer->getLoc() : known.padded.back().getLoc();
    listener_.made.clear();
    joinPads(builder_, loc, known.padded, [&](Value part) { add(value, known.sum, part); });
    if (isWeight_(value)) markWeightGradients(listener_.made, {});
    known.padded.clear();
    return known.sum;
  }

  // Erases the padded slices that were joined, but for those among `kept`.
  void eraseJoined(ArrayRef<Value> kept) {
    // Slices of slices, the first of which were made last.
    for (Operation* pad : llvm::reverse(padded_)) {
      if (pad->use_empty() && !llvm::is_contained(kept, pad->getResult(0))) pad->erase();
    }
  }

 private:
  struct Known {
    Value sum;
    SmallVector<Value> padded;
  };

  void add(Value value, Value& sum, Value cotangent) {
    if (!sum) {
      sum = cotangent;
      return;
    }
    Operation* producer = value.getDefiningOp();
    Location loc = producer ? producer->getLoc() : cotangent.getLoc();
    sum = ir::AddOp::create(builder_, loc, sum, cotangent);
    if (isWeight_(value)) markWeightGradients(sum.getDefiningOp(), {});
  }

  OpBuilder& builder_;
  OriginListener& listener_;
  const function_ref<bool(Value)> isWeight_;
  DenseMap<Value, Known> known_;
  llvm::SetVector<Operation*> padded_;
};

// The cotangents of an op's operands, null where they are zero or not needed. Fails, with a
// diagnostic, where the op has no derivative or makes a wrong one.
FailureOr<SmallVector<Value>> cotangentsOfOperands(Operation& op, ArrayRef<Value> ofResults,
                                                   ArrayRef<bool> needed, OpBuilder& builder) {
  auto differentiable = dyn_cast<ir::DifferentiableOpInterface>(op);
  if (!differentiable) {
    return op.emitOpError(
        "has no derivative, but the loss depends on a trainable parameter through it");
  }
  SmallVector<Value> cotangents;
  auto build = [&] { return differentiable.buildVjp(builder, ofResults, needed, cotangents); };
  if (failed(ir::runWatched(op.getLoc(), "'" + op.getName().getStringRef() + "': its derivative",
                            build))) {
    return failure();
  }
  if (cotangents.size() != op.getNumOperands()) {
    return op.emitOpError("built ")
           << cotangents.size() << " cotangents for " << op.getNumOperands()
           << " operands: one is expected for each, null where it is zero or not needed";
  }
  for (auto [operand, cotangent, need] : llvm::zip_equal(op.getOperands(), cotangents, needed)) {
    if (need && cotangent && cotangent.getType() != operand.getType()) {
      return op.emitOpError("built a cotangent of type ")
             << cotangent.getType() << " for an operand of type " << operand.getType();
    }
  }
  return cotangents;
}

}  // namespace

bool hasCotangent(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && isa<FloatType>(tensor.getElementType());
}

void setOrigin(Operation* op, int64_t origin) {
  auto info = op->getRegisteredInfo();
  if (!info || !llvm::is_contained(info->getAttributeNames(), kOrigin)) return;
  op->setAttr(kOrigin, IntegerAttr::get(IntegerType::get(op->getContext(), 64), origin));
}

Autodiff::Autodiff(Block& block, ArrayRef<Value> outputs, ArrayRef<Value> wanted)
    : block_(block), outputs_(outputs), wanted_(wanted) {
  depends_.insert(wanted.begin(), wanted.end());
  for (Operation& op : block) {
    if (llvm::none_of(op.getOperands(), [&](Value v) { return depends_.contains(v); })) continue;
    for (Value result : op.getResults()) {
      if (hasCotangent(result.getType())) depends_.insert(result);
    }
  }
  weights_.insert(wanted.begin(), wanted.end());
  for (Operation& op : block) {
    auto isKnown = [&](Value v) {
      Operation* producer = v.getDefiningOp();
      return isWeight(v) || (producer && producer->hasTrait<OpTrait::ConstantLike>());
    };
    if (!llvm::any_of(op.getOperands(), [&](Value v) { return isWeight(v); }) ||
        !llvm::all_of(op.getOperands(), isKnown)) {
      continue;
    }
    weights_.insert(op.result_begin(), op.result_end());
  }
  reaches_.insert(outputs.begin(), outputs.end());
  for (Operation& op : llvm::reverse(block)) {
    if (llvm::none_of(op.getResults(), [&](Value v) { return reaches_.contains(v); })) continue;
    for (Value operand : op.getOperands()) {
      if (hasCotangent(operand.getType())) reaches_.insert(operand);
    }
  }
}

bool Autodiff::isActive(Operation* op) const {
  return llvm::any_of(op->getResults(), [&](Value v) { return isActive(v); });
}

FailureOr<SmallVector<Value>> Autodiff::build(OpBuilder& builder, ArrayRef<Value> seeds) const {
  OriginListener listener;
  OpBuilder stamping(builder);
  stamping.setListener(&listener);
  auto isOfWeights = [this](Value value) { return isWeight(value); };
  Cotangents cotangents(stamping, listener, isOfWeights);
  for (auto [output, seed] : llvm::zip_equal(outputs_, seeds)) {
    if (isActive(output)) cotangents.accumulate(output, seed, -1);
  }

  for (Operation& op : llvm::reverse(block_)) {
    if (!isActive(&op)) continue;
    SmallVector<Value> ofResults;
    for (Value result : op.getResults()) ofResults.push_back(cotangents.finish(result));
    // An op between may have had a cotangent of zero.
    if (llvm::none_of(ofResults, [](Value v) { return static_cast<bool>(v); })) continue;
    SmallVector<bool> needed;
    for (Value operand : op.getOperands()) needed.push_back(isActive(operand));
    listener.origin = originOf(&op);
    listener.made.clear();
    FailureOr<SmallVector<Value>> ofOperands =
        cotangentsOfOperands(op, ofResults, needed, stamping);
    if (failed(ofOperands)) return failure();
    SmallVector<Value> activations;
    for (auto [operand, cotangent] : llvm::zip_equal(op.getOperands(), *ofOperands)) {
      if (cotangent && !isWeight(operand)) activations.push_back(cotangent);
    }
    markWeightGradients(listener.made, activations);
    for (auto [operand, cotangent, need] : llvm::zip_equal(op.getOperands(), *ofOperands, needed)) {
      if (need && cotangent) cotangents.accumulate(operand, cotangent, originOf(&op));
    }
  }
  SmallVector<Value> results;
  for (Value value : wanted_) results.push_back(cotangents.finish(value));
  cotangents.eraseJoined(results);
  builder.restoreInsertionPoint(stamping.saveInsertionPoint());
  return results;
}

}  // namespace oriel
