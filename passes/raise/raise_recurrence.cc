#include "ir/oriel/builders.h"
#include "ir/oriel/inference.h"
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

// The product with the right operand as it is.
ir::MatmulOp matchPlainProduct(Value value) {
  ir::MatmulOp product = matchProduct(value);
  return product && !product.getTransposeRhs() ? product : ir::MatmulOp();
}

// `written` of the step, which reads its state.
bool matchWritten(Value written, Step& step) {
  auto isProductOfState = [&](Value value) {
    ir::MatmulOp product = matchPlainProduct(value);
    return product && !product.getTransposeLhs() && product.getRhs() == step.state;
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
  return product.getType() == written.getType() && step.values.getType() == written.getType();
}

// Whether the factor multiplies rows of states, or all of them.
bool isDecayOf(Value factor, Value state) {
  llvm::ArrayRef<int64_t> sizes = shapeOf(factor), all = shapeOf(state);
  if (sizes.size() > all.size() || (!sizes.empty() && sizes.back() != 1)) return false;
  return ir::broadcastsTo(sizes, all);
}

// The step that computes the state `next` of `kept`, the state before or a product with it, and of
// what is written.
std::optional<Step> matchStep(Value next, Value state, Value kept, Value update) {
  Step step;
  step.state = state;
  step.next = next;
  ir::MatmulOp product = matchPlainProduct(update);
  if (!product || !matchWritten(product.getRhs(), step) || update.getType() != next.getType() ||
      state.getType() != next.getType()) {
    return std::nullopt;
  }
  step.writeKeys = product.getLhs();
  step.writesTransposed = !product.getTransposeLhs();
  if (kept == state) return step;
  auto decayed = matchEither<ir::MulOp>(kept, [&](Value operand) { return operand == state; });
  if (!decayed || !isDecayOf(decayed->second, state)) return std::nullopt;
  step.decay = decayed->second;
  return step;
}

std::optional<Step> matchStep(ir::AddOp next) {
  if (!mlir::isa<mlir::FloatType>(next.getType().getElementType())) return std::nullopt;
  for (mlir::OpOperand& operand : next->getOpOperands()) {
    Value kept = operand.get(), update = next->getOperand(1 - operand.getOperandNumber());
    llvm::SmallVector<Value, 3> states = {kept};
    if (auto decayed = kept.getDefiningOp<ir::MulOp>()) {
      states.append({decayed.getLhs(), decayed.getRhs()});
    }
    for (Value state : states) {
      if (auto step = matchStep(next, state, kept, update)) return step;
    }
  }
  return std::nullopt;
}

// Steps that go on from one state to the next, with keys and values of one shape.
using Loop = std::vector<Step>;

bool areAlike(const Step& a, const Step& b) {
  return a.state.getType() == b.state.getType() && a.values.getType() == b.values.getType() &&
         a.readKeys.getType() == b.readKeys.getType() &&
         a.writeKeys.getType() == b.writeKeys.getType() && a.readsNegative == b.readsNegative &&
         a.writesTransposed == b.writesTransposed;
}

// Where the ops of a block were before scans were made.
class Order {
 public:
  explicit Order(mlir::Block& block) {
    for (mlir::Operation& op : block) positions_.insert({&op, positions_.size()});
  }

  // Whether all that the steps read is there before the first of them.
  bool isIndependent(const Loop& loop) const {
    const size_t end = endOf(loop);
    // Ops behind the loop lead back into it by a scan alone that was made of turns behind its
    // beginning.
    const bool ends = positions_.lookup(loop.front().written.getDefiningOp()) > scansEnd_;
    llvm::SetVector<mlir::Operation*> dependents;
    dependents.insert(loop.front().written.getDefiningOp());
    dependents.insert(loop.front().next.getDefiningOp());
    for (size_t i = 0; i < dependents.size(); ++i) {
      mlir::Operation* op = dependents[i];
      for (mlir::Operation* user : op->getUsers()) {
        if (!ends || positions_.lookup(user) <= end) dependents.insert(user);
      }
    }
    auto depends = [&](Value value) {
      return value && value.getDefiningOp() && dependents.contains(value.getDefiningOp());
    };
    return llvm::none_of(loop, [&](const Step& step) {
      return depends(step.values) || depends(step.readKeys) || depends(step.writeKeys) ||
             depends(step.decay);
    });
  }

  // Before the loop is replaced.
  void addScan(const Loop& loop) { scansEnd_ = std::max(scansEnd_, endOf(loop)); }

 private:
  size_t endOf(const Loop& loop) const {
    size_t end = 0;
    for (const Step& step : loop) {
      end = std::max(end, positions_.lookup(step.written.getDefiningOp()));
      if (step.next) end = std::max(end, positions_.lookup(step.next.getDefiningOp()));
    }
    return end;
  }

  llvm::DenseMap<mlir::Operation*, size_t> positions_;  // 0 for new ops
  size_t scansEnd_ = 0;
};

// A loop's last turn has no update where nothing reads the state behind it. Adds it, with keys and
// decays as of the turns before.
void addLastRead(mlir::OpBuilder& builder, const Order& order, Loop& loop) {
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
      if (order.isIndependent(loop)) return;
      loop.pop_back();
    }
  }
}

// Whether the state has a dimension of its own for the chunk, of size 1: the loop takes stretches
// of one chunk along it.
bool hasChunkDim(const Step& step) {
  const int64_t dim = rankOf(step.state) - 3;
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
      return step.decay && rankOf(step.decay) > 1 && shapeOf(step.decay).drop_back().back() != 1;
    });
    Value decays = stack([&](const Step& step) { return decayOf(step, ofRows); });
    Value initial = loop_.front().state;
    if (hasChunkDim_) {
      Ints shape(shapeOf(initial));
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

  int64_t stateDim() const { return rankOf(loop_.front().state) - 2; }
  // Of what is scanned.
  int64_t chunkDim() const { return hasChunkDim_ ? stateDim() - 1 : stateDim(); }

  template <typename Of>
  Value stack(const Of& of) {
    llvm::SmallVector<Value> pieces;
    for (const Step& step : loop_) {
      pieces.push_back(of(step));
      if (hasChunkDim_) continue;
      Ints shape(shapeOf(pieces.back()));
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
    Ints shape(shapeOf(step.state));
    shape.back() = 1;
    if (!ofRows) shape[stateDim()] = 1;
    auto type = tensorType(step.state).clone(shape);
    if (step.decay && step.decay.getType() == type) return step.decay;
    Value decay = step.decay ? step.decay : ir::scalarConstant(rewriter_, loc_, 1.0, step.state);
    return create<ir::BroadcastOp>(type, decay);
  }

  Value pieceOf(Value all, int64_t at, Value like) {
    Value piece = ir::sliceDim(rewriter_, loc_, all, chunkDim(), at, 1, /*folds=*/true);
    return hasChunkDim_ ? piece : Value(create<ir::ReshapeOp>(like.getType(), piece));
  }

  mlir::IRRewriter& rewriter_;
  const Loop& loop_;
  const mlir::Location loc_;
  const bool hasChunkDim_;
};

// Puts each op behind those that it reads, in the order of the block else. In one walk, where
// mlir::sortTopologically takes one for each scan.
void orderByOperands(mlir::Block& block) {
  llvm::SetVector<mlir::Operation*> ordered;
  llvm::SmallVector<mlir::Operation*> open;
  for (mlir::Operation& op : block) {
    open.push_back(&op);
    while (!open.empty()) {
      mlir::Operation* next = open.back();
      const size_t before = open.size();
      if (!ordered.contains(next)) {
        for (Value operand : next->getOperands()) {
          mlir::Operation* producer = operand.getDefiningOp();
          if (producer && !ordered.contains(producer)) open.push_back(producer);
        }
      }
      if (open.size() > before) continue;
      ordered.insert(next);
      open.pop_back();
    }
  }
  for (mlir::Operation* op : ordered) op->moveBefore(&block, block.end());
}

struct RaiseRecurrence : impl::RaiseRecurrenceBase<RaiseRecurrence> {
  void runOnOperation() override {
    if (getOperation().isExternal()) return;
    mlir::Block& block = getOperation().getBody().front();
    const auto states = llvm::to_vector(llvm::make_filter_range(
        block.getOps<ir::AddOp>(), [](ir::AddOp op) { return matchStep(op).has_value(); }));
    llvm::DenseMap<Value, size_t> following;  // of a state, by its index
    for (auto [i, next] : llvm::enumerate(states)) following.insert({matchStep(next)->state, i});
    Order order(block);
    mlir::IRRewriter rewriter(&getContext());
    std::vector<bool> taken(states.size());
    bool changed = false;
    for (size_t i = 0; i < states.size(); ++i) {
      if (taken[i]) continue;
      Loop loop;
      for (size_t at = i;;) {
        Step step = *matchStep(states[at]);  // of what others have become
        if (!loop.empty() && !areAlike(loop.back(), step)) break;
        loop.push_back(step);
        taken[at] = true;
        auto next = following.find(step.next);
        if (next == following.end()) break;
        at = next->second;
      }
      if (loop.size() < 2 || !order.isIndependent(loop)) continue;
      addLastRead(rewriter, order, loop);
      order.addScan(loop);
      Scan(rewriter, loop).replaceLoop();
      changed = true;
    }
    if (!changed) return;
    orderByOperands(block);
    // What computed the states step by step goes.
    if (failed(applyRaise(getOperation(), mlir::RewritePatternSet(&getContext())))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace oriel
