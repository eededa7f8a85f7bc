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

  // What of a value's cotangent is known. Slices' parts wait for each other: they may lie side by
  // side.
  struct Cotangent {
    Value sum;
    SmallVector<Value> padded;
  };
  DenseMap<Value, Cotangent> cotangents;
  llvm::SetVector<Operation*> padded;
  auto add = [&](Value value, Value& sum, Value cotangent) {
    if (!sum) {
      sum = cotangent;
      return;
    }
    Operation* producer = value.getDefiningOp();
    Location loc = producer ? producer->getLoc() : cotangent.getLoc();
    sum = ir::AddOp::create(stamping, loc, sum, cotangent);
    if (isWeight(value)) markWeightGradients(sum.getDefiningOp(), {});
  };
  auto accumulate = [&](Value value, Value cotangent, int64_t user) {
    Cotangent& known = cotangents[value];
    if (isPaddedSlice(cotangent)) {
      known.padded.push_back(cotangent);
      padded.insert(cotangent.getDefiningOp());
      return;
    }
    Operation* producer = value.getDefiningOp();
    listener.origin = producer ? originOf(producer) : user;
    add(value, known.sum, cotangent);
    listener.origin = user;
  };
  // The whole cotangent, or null; to be asked once all users of the value have given theirs.
  auto finish = [&](Value value) {
    auto found = cotangents.find(value);
    if (found == cotangents.end()) return Value();
    Cotangent& known = found->second;
    if (known.padded.empty()) return known.sum;
    Operation* producer = value.getDefiningOp();
    listener.origin = originOf(producer ? producer : known.padded.back().getDefiningOp());
    Location loc = producer ? producer->getLoc() : known.padded.back().getLoc();
    listener.made.clear();
    joinPads(stamping, loc, known.padded, [&](Value part) { add(value, known.sum, part); });
    if (isWeight(value)) markWeightGradients(listener.made, {});
    known.padded.clear();
    return known.sum;
  };
  for (auto [output, seed] : llvm::zip_equal(outputs_, seeds)) {
    if (isActive(output)) accumulate(output, seed, -1);
  }

  for (Operation& op : llvm::reverse(block_)) {
    if (!isActive(&op)) continue;
    SmallVector<Value> resultCotangents, operandCotangents;
    for (Value result : op.getResults()) resultCotangents.push_back(finish(result));
    // An op between may have had a cotangent of zero.
    if (llvm::none_of(resultCotangents, [](Value v) { return static_cast<bool>(v); })) continue;
    auto differentiable = dyn_cast<ir::DifferentiableOpInterface>(op);
    if (!differentiable) {
      return op.emitOpError(
          "has no derivative, but the loss depends on a trainable parameter through it");
    }
    SmallVector<bool> needed;
    for (Value operand : op.getOperands()) needed.push_back(isActive(operand));
    listener.origin = originOf(&op);
    listener.made.clear();
    auto build = [&] {
      return differentiable.buildVjp(stamping, resultCotangents, needed, operandCotangents);
    };
    if (failed(ir::runWatched(op.getLoc(), "'" + op.getName().getStringRef() + "': its derivative",
                              build))) {
      return failure();
    }
    if (operandCotangents.size() != op.getNumOperands()) {
      return op.emitOpError("built ")
             << operandCotangents.size() << " cotangents for " << op.getNumOperands()
             << " operands: one is expected for each, null where it is zero or not needed";
    }
    SmallVector<Value> activations;
    for (auto [operand, cotangent] : llvm::zip_equal(op.getOperands(), operandCotangents)) {
      if (cotangent && !isWeight(operand)) activations.push_back(cotangent);
    }
    markWeightGradients(listener.made, activations);
    for (auto [operand, cotangent, need] :
         llvm::zip_equal(op.getOperands(), operandCotangents, needed)) {
      if (!need || !cotangent) continue;
      if (cotangent.getType() != operand.getType()) {
        return op.emitOpError("built a cotangent of type ")
               << cotangent.getType() << " for an operand of type " << operand.getType();
      }
      accumulate(operand, cotangent, originOf(&op));
    }
  }
  SmallVector<Value> results;
  for (Value value : wanted_) results.push_back(finish(value));
  // What was joined. Slices of slices, the first of which were made last.
  for (Operation* pad : llvm::reverse(padded)) {
    if (pad->use_empty() && !llvm::is_contained(results, pad->getResult(0))) pad->erase();
  }
  builder.restoreInsertionPoint(stamping.saveInsertionPoint());
  return results;
}

}  // namespace oriel
