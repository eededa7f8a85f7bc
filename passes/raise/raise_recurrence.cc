#include "ir/oriel/inference.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "passes/raise/match.h"
#include "passes/raise/passes.h"
#include "passes/raise/series.h"

namespace oriel {

#define GEN_PASS_DEF_RAISERECURRENCE
#include "passes/raise/passes.h.inc"

namespace {

using mlir::Value;
using Ints = llvm::SmallVector<int64_t>;

// A turn of the loop: written = values ∓ read_keys state, next = decay ⊙ state + write_keysᵀ
// written.
struct Step {
  Value state;
  Value next;  // null for the last one, if nothing reads what it would be
  Value values, written;
  Value readKeys;   // [b.., c, k]
  Value writeKeys;  // [b.., c, k], or [b.., k, c] if `writesTransposed`
  Value decay;      // broadcasts to [b.., k, 1]; null: 1
  bool readsNegative = false, writesTransposed = false;
};

// The op if it multiplies matrices, one with one, and the right one as it is.
ir::MatmulOp matchProduct(Value value) {
  auto op = value.getDefiningOp<ir::MatmulOp>();
  const bool isPlain = op && !op.getTransposeRhs() && op.getRowDims() == 1 &&
                       op.getSumDims() == 1 && op.getColumnDims() == 1;
  return isPlain ? op : ir::MatmulOp();
}

// `written` of the step, by which the state is updated.
bool matchWritten(Value written, Step& step) {
  auto isProductOfState = [&](Value value) {
    auto product = matchProduct(value);
    return product && !product.getTransposeLhs() && (!step.state || product.getRhs() == step.state);
  };
  Value product;
  if (auto sub = written.getDefiningOp<ir::SubOp>()) {
    if (!isProductOfState(sub.getRhs())) return false;
    step.values = sub.getLhs();
    product = sub.getRhs();
    step.readsNegative = true;
  } else if (auto sum = matchEither<ir::AddOp>(written, isProductOfState)) {
    std::tie(product, step.values) = *sum;
  } else {
    return false;
  }
  step.written = written;
  step.readKeys = product.getDefiningOp<ir::MatmulOp>().getLhs();
  step.state = product.getDefiningOp<ir::MatmulOp>().getRhs();
  return product.getType() == written.getType() && step.values.getType() == written.getType();
}

// Whether the factor multiplies rows of states, or all of them.
bool isDecayOf(Value factor, Value state) {
  llvm::ArrayRef<int64_t> sizes = tensorType(factor).getShape(), all = tensorType(state).getShape();
  if (sizes.size() > all.size() || (!sizes.empty() && sizes.back() != 1)) return false;
  return ir::broadcastsTo(sizes, all);
}

// The step that computes the state `next` as `kept` and what is written.
std::optional<Step> matchStep(Value next, Value kept, Value update) {
  Step step;
  step.next = next;
  auto product = matchProduct(update);
  if (!product || !matchWritten(product.getRhs(), step) || update.getType() != next.getType() ||
      step.state.getType() != next.getType()) {
    return std::nullopt;
  }
  step.writeKeys = product.getLhs();
  step.writesTransposed = !product.getTransposeLhs();
  if (kept == step.state) return step;
  auto decayed = matchEither<ir::MulOp>(kept, [&](Value operand) { return operand == step.state; });
  if (!decayed || !isDecayOf(decayed->second, step.state)) return std::nullopt;
  step.decay = decayed->second;
  return step;
}

std::optional<Step> matchStep(Value next) {
  auto sum = next.getDefiningOp<ir::AddOp>();
  if (!sum || !mlir::isa<mlir::FloatType>(tensorType(next).getElementType())) return std::nullopt;
  if (auto step = matchStep(next, sum.getLhs(), sum.getRhs())) return step;
  return matchStep(next, sum.getRhs(), sum.getLhs());
}

// Steps that go on from one state to the next, with keys and values of one shape.
using Loop = std::vector<Step>;

bool areAlike(const Step& a, const Step& b) {
  return a.state.getType() == b.state.getType() && a.values.getType() == b.values.getType() &&
         a.readKeys.getType() == b.readKeys.getType() &&
         a.writeKeys.getType() == b.writeKeys.getType() && a.readsNegative == b.readsNegative &&
         a.writesTransposed == b.writesTransposed;
}

// Whether all that the steps read is there before the first of them.
bool isIndependent(const Loop& loop) {
  // Not by the order of the block, which scans that have been made are not in yet.
  llvm::SetVector<mlir::Operation*> dependents;
  dependents.insert(loop.front().written.getDefiningOp());
  dependents.insert(loop.front().next.getDefiningOp());
  for (size_t i = 0; i < dependents.size(); ++i) {
    mlir::Operation* op = dependents[i];
    dependents.insert(op->user_begin(), op->user_end());
  }
  auto depends = [&](Value value) {
    return value && value.getDefiningOp() && dependents.contains(value.getDefiningOp());
  };
  return llvm::none_of(loop, [&](const Step& step) {
    return depends(step.values) || depends(step.readKeys) || depends(step.writeKeys) ||
           depends(step.decay);
  });
}

// A loop's last turn has no update where nothing reads the state behind it. Adds it, with keys and
// decays as of the turns before.
void addLastRead(mlir::OpBuilder& builder, Loop& loop) {
  if (loop.size() < 2) return;
  const Step last = loop.back(), before = loop[loop.size() - 2];
  for (mlir::Operation* product : last.next.getUsers()) {
    for (mlir::Operation* sum : product->getUsers()) {
      Step step;
      step.state = last.next;
      if (sum->getNumResults() != 1 || !matchWritten(sum->getResult(0), step)) continue;
      NextInSeries next(builder);
      step.writesTransposed = last.writesTransposed;
      step.writeKeys = next.make(before.writeKeys, last.writeKeys);
      const bool decays = last.decay && before.decay;
      step.decay = decays ? next.make(before.decay, last.decay) : last.decay;
      if (!step.writeKeys || !areAlike(last, step) || (decays && !step.decay)) continue;
      loop.push_back(step);
      if (isIndependent(loop)) return;
      loop.pop_back();
    }
  }
}

// Whether the state has a dimension of its own for the chunk, of size 1: the loop takes stretches
// of one chunk along it.
bool hasChunkDim(const Step& step) {
  const int64_t dim = tensorType(step.state).getRank() - 3;
  if (dim < 0 || tensorType(step.state).getDimSize(dim) != 1) return false;
  return llvm::any_of(llvm::ArrayRef({step.values, step.readKeys}), [&](Value value) {
    auto slice = value.getDefiningOp<ir::SliceOp>();
    return slice && startOfStretch(slice, dim);
  });
}

// Other products with the first state whose results are added to what comes of what its chunk
// writes, as later chunks do with theirs. (Of a state that several loops start from, each has its
// own.)
llvm::SmallVector<mlir::OpOperand*> readsOfFirst(const Step& step) {
  auto comesOfWritten = [&](Value value) {
    return value == step.written ||
           (value.getDefiningOp() &&
            llvm::is_contained(value.getDefiningOp()->getOperands(), step.written));
  };
  llvm::SmallVector<mlir::OpOperand*> reads;
  for (mlir::OpOperand& use : step.state.getUses()) {
    auto product = llvm::dyn_cast<ir::MatmulOp>(use.getOwner());
    if (!product || !product->hasOneUse()) continue;
    auto sum = llvm::dyn_cast<ir::AddOp>(*product->user_begin());
    if (sum && sum.getResult() != step.written &&
        llvm::any_of(sum->getOperands(), comesOfWritten)) {
      reads.push_back(&use);
    }
  }
  return reads;
}

// Makes the scan of a loop.
class Scan {
 public:
  Scan(mlir::IRRewriter& rewriter, const Loop& loop)
      : rewriter_(rewriter),
        loop_(loop),
        loc_(loop.front().written.getLoc()),
        hasChunkDim_(hasChunkDim(loop.front())) {
    rewriter.setInsertionPointAfterValue(loop.back().written);
  }

  // Order within the block is left to the caller.
  void replaceLoop() {
    Value values = stack([](const Step& step) { return step.values; });
    Value readKeys = stack([](const Step& step) { return step.readKeys; });
    if (loop_.front().readsNegative) readKeys = create<ir::NegOp>(readKeys);
    Value writeKeys = stack([&](const Step& step) { return writeKeysOf(step); });
    const bool ofRows = llvm::any_of(loop_, [](const Step& step) {
      return step.decay && tensorType(step.decay).getRank() > 1 &&
             tensorType(step.decay).getShape().drop_back().back() != 1;
    });
    Value decays = stack([&](const Step& step) { return decayOf(step, ofRows); });
    Value initial = loop_.front().state;
    if (hasChunkDim_) {
      Ints shape(tensorType(initial).getShape());
      shape.erase(shape.begin() + chunkDim());
      initial = create<ir::ReshapeOp>(tensorType(initial).clone(shape), initial);
    }
    auto scan = create<ir::DeltaScanOp>(values, readKeys, writeKeys, decays, initial, Value(),
                                        /*reverse=*/false);
    for (mlir::OpOperand* read : readsOfFirst(loop_.front())) {
      read->set(pieceOf(scan.getStates(), 0, loop_.front().state));
    }
    for (auto [i, step] : llvm::enumerate(loop_)) {
      const auto at = static_cast<int64_t>(i);
      rewriter_.replaceAllUsesWith(step.written, pieceOf(scan.getWritten(), at, step.written));
      if (at + 1 < static_cast<int64_t>(loop_.size())) {
        rewriter_.replaceAllUsesWith(step.next, pieceOf(scan.getStates(), at + 1, step.next));
      } else if (step.next) {
        Value last = scan.getLast();
        if (hasChunkDim_) last = create<ir::ReshapeOp>(step.next.getType(), last);
        rewriter_.replaceAllUsesWith(step.next, last);
      }
    }
  }

 private:
  template <typename Op, typename... Args>
  Op create(Args&&... args) {
    return Op::create(rewriter_, loc_, std::forward<Args>(args)...);
  }

  int64_t stateDim() const { return tensorType(loop_.front().state).getRank() - 2; }
  // Of what is scanned.
  int64_t chunkDim() const { return hasChunkDim_ ? stateDim() - 1 : stateDim(); }

  template <typename Of>
  Value stack(const Of& of) {
    llvm::SmallVector<Value> pieces;
    for (const Step& step : loop_) {
      pieces.push_back(of(step));
      if (hasChunkDim_) continue;
      Ints shape(tensorType(pieces.back()).getShape());
      shape.insert(shape.begin() + chunkDim(), 1);
      pieces.back() = create<ir::ReshapeOp>(tensorType(pieces.back()).clone(shape), pieces.back());
    }
    return create<ir::ConcatOp>(pieces, chunkDim());
  }

  Value writeKeysOf(const Step& step) {
    if (!step.writesTransposed) return step.writeKeys;
    Value keys = matchTransposed(step.writeKeys);
    if (keys && keys.getType() == step.readKeys.getType()) return keys;
    Ints permutation = llvm::to_vector(llvm::seq<int64_t>(0, stateDim() + 2));
    std::swap(permutation[stateDim()], permutation[stateDim() + 1]);
    return create<ir::TransposeOp>(step.writeKeys, permutation);
  }

  // [b.., k, 1], or [b.., 1, 1].
  Value decayOf(const Step& step, bool ofRows) {
    Ints shape(tensorType(step.state).getShape());
    shape.back() = 1;
    if (!ofRows) shape[stateDim()] = 1;
    auto type = tensorType(step.state).clone(shape);
    if (step.decay && step.decay.getType() == type) return step.decay;
    Value decay = step.decay;
    if (!decay) {
      auto scalar = mlir::RankedTensorType::get({}, type.getElementType());
      decay = create<ir::ConstantOp>(mlir::DenseElementsAttr::get(
          scalar, rewriter_.getFloatAttr(type.getElementType(), 1.0).getValue()));
    }
    return create<ir::BroadcastOp>(type, decay);
  }

  Value pieceOf(Value all, int64_t at, Value like) {
    Value piece = sliceStretch(rewriter_, loc_, all, chunkDim(), at, 1);
    return hasChunkDim_ ? piece : Value(create<ir::ReshapeOp>(like.getType(), piece));
  }

  mlir::IRRewriter& rewriter_;
  const Loop& loop_;
  const mlir::Location loc_;
  const bool hasChunkDim_;
};

struct RaiseRecurrence : impl::RaiseRecurrenceBase<RaiseRecurrence> {
  void runOnOperation() override {
    mlir::Block& block = getOperation().getBody().front();
    std::vector<Step> steps;
    llvm::DenseMap<Value, size_t> stepFrom;  // by the state before
    llvm::DenseSet<Value> computed;          // states
    for (auto sum : block.getOps<ir::AddOp>()) {
      if (std::optional<Step> step = matchStep(sum.getResult())) {
        stepFrom.insert({step->state, steps.size()});
        computed.insert(step->next);
        steps.push_back(*step);
      }
    }
    mlir::IRRewriter rewriter(&getContext());
    bool changed = false;
    for (const Step& first : steps) {
      if (computed.contains(first.state)) continue;
      Loop loop = {first};  // of several that start from one state, such as zero
      for (auto next = stepFrom.find(first.next); next != stepFrom.end();
           next = stepFrom.find(loop.back().next)) {
        if (!areAlike(loop.back(), steps[next->second])) break;
        loop.push_back(steps[next->second]);
      }
      if (loop.size() < 2 || !isIndependent(loop)) continue;
      addLastRead(rewriter, loop);
      Scan(rewriter, loop).replaceLoop();
      changed = true;
    }
    if (!changed) return;
    mlir::sortTopologically(&block);
    // What computed the states step by step goes.
    if (failed(applyRaise(getOperation(), mlir::RewritePatternSet(&getContext())))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace oriel
