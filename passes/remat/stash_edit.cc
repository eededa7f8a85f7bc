#include "passes/remat/stash_edit.h"

#include <string>

#include "ir/interfaces/interfaces.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/StringSet.h"
#include "passes/fuse/cluster.h"
#include "passes/remat/segment_edit.h"

namespace oriel {

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::FailureOr;
using mlir::LogicalResult;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

// The attributes that say what an op computes.
mlir::DictionaryAttr meaningOf(Operation* op) {
  mlir::NamedAttrList list(op->getAttrDictionary());
  list.erase("origin");
  list.erase(kClusterAttr);
  list.erase(kRecomputedAttr);
  return list.getDictionary(op->getContext());
}

// Clones ops of the forward into one segment of the backward.
class Recomputer {
 public:
  Recomputer(const ForwardGraph& forward, const Blocks& blocks,
             const std::vector<std::string>& names, const std::vector<bool>& dropped,
             SegmentEdit& backward)
      : forward_(forward),
        graph_(forward.graph),
        blocks_(blocks),
        names_(names),
        dropped_(dropped),
        edit_(backward) {}

  // `mayRun`: by op of the graph.
  LogicalResult run(const std::vector<bool>& mayRun) {
    numberOps();
    std::vector<std::pair<mlir::BlockArgument, int>> replaced;
    for (const auto& [name, value] : forward_.stash) {
      mlir::BlockArgument argument = edit_.find({ValueKind::kStash, name.str(), ""});
      if (argument && dropped_[value] && !argument.use_empty())
        replaced.emplace_back(argument, value);
    }
    anchors_.assign(graph_.ops.size(), nullptr);
    for (auto [argument, value] : replaced) {
      for (Operation* user : argument.getUsers()) anchor(graph_.values[value].op, user);
    }
    for (size_t i = graph_.ops.size(); i-- > 0;) {
      if (!anchors_[i]) continue;
      for (int operand : graph_.ops[i].operands) {
        const int producer = graph_.values[operand].op;
        if (producer < 0 || isKept(operand) || !mayRun[producer]) continue;
        anchor(producer, anchors_[i]);
      }
    }
    for (size_t i = 0; i < graph_.ops.size(); ++i) {
      if (anchors_[i] && failed(clone(static_cast<int>(i)))) return mlir::failure();
    }
    for (auto [argument, value] : replaced) {
      argument.replaceAllUsesWith(local_.lookup(forward_.values[value]));
    }
    return mlir::success();
  }

 private:
  // By number, in the stash.
  bool isKept(int value) const { return !names_[value].empty() && !dropped_[value]; }

  void numberOps() {
    int64_t next = 0;
    FuncOp segment = edit_.segment();
    for (Operation& op : segment.getBody().front()) order_[&op] = next++;
  }

  // The op has to be there in front of `user`, an op that the backward had before.
  void anchor(int op, Operation* user) {
    Operation*& known = anchors_[op];
    if (!known || order_.lookup(user) < order_.lookup(known)) known = user;
  }

  LogicalResult clone(int index) {
    Operation* op = forward_.ops[index];
    llvm::SmallVector<Value> operands;
    for (auto [value, number] : llvm::zip_equal(op->getOperands(), graph_.ops[index].operands)) {
      FailureOr<Value> local = bring(value, number);
      if (failed(local)) return mlir::failure();
      operands.push_back(*local);
    }
    Operation* copy = shared(index, operands);
    if (copy) {
      if (anchors_[index]->isBeforeInBlock(copy)) copy->moveBefore(anchors_[index]);
    } else {
      mlir::OpBuilder builder(anchors_[index]);
      mlir::IRMapping mapping;
      for (auto [value, local] : llvm::zip_equal(op->getOperands(), operands)) {
        mapping.map(value, local);
      }
      copy = builder.clone(*op, mapping);
      copy->removeAttr(kClusterAttr);
      copy->setAttr(kRecomputedAttr, builder.getUnitAttr());
    }
    for (auto [value, local] : llvm::zip_equal(op->getResults(), copy->getResults())) {
      local_[value] = local;
    }
    return mlir::success();
  }

  // A value that is kept, cloned or an argument. One that is kept may be cloned as well, for
  // another result of its op, and then further down.
  FailureOr<Value> bring(Value value, int number) {
    Value known = local_.lookup(value);
    if (known && !isKept(number)) return known;
    ValueRole role{ValueKind::kStash, names_[number], ""};
    if (auto argument = llvm::dyn_cast<mlir::BlockArgument>(value)) {
      FailureOr<ValueRole> own = ir::argumentRole(forward_.forward, argument.getArgNumber());
      if (failed(own)) return mlir::failure();
      role = std::move(*own);
    }
    return edit_.argument(role, value.getType(), value.getLoc(), ir::shardingOf(value));
  }

  // The op of the backward that makes the same of parameters alone, for the same block.
  Operation* shared(int index, llvm::ArrayRef<Value> operands) const {
    Operation* op = forward_.ops[index];
    if (!graph_.ops[index].ofParameters) return nullptr;
    for (Operation* user : operands.front().getUsers()) {
      if (user->getName() == op->getName() && llvm::equal(user->getOperands(), operands) &&
          user->getResultTypes() == op->getResultTypes() && meaningOf(user) == meaningOf(op) &&
          blocks_.of(user) == blocks_.of(op)) {
        return user;
      }
    }
    return nullptr;
  }

  const ForwardGraph& forward_;
  const StashGraph& graph_;
  const Blocks& blocks_;
  const std::vector<std::string>& names_;  // by value; of what is not stashed: empty
  const std::vector<bool>& dropped_;       // by value
  SegmentEdit& edit_;
  llvm::DenseMap<Operation*, int64_t> order_;  // of the ops that were there before
  std::vector<Operation*> anchors_;            // by op; null: not needed
  llvm::DenseMap<Value, Value> local_;
};

// What nothing uses any more, collectives too: every rank of the program drops the same.
void eraseUnused(FuncOp segment) {
  for (Operation& op : llvm::make_early_inc_range(llvm::reverse(segment.getBody().front()))) {
    const bool hasEffect = llvm::isa<ir::SendOp, ir::ReceiveOp>(op) ||
                           (!mlir::isPure(&op) && !llvm::isa<ir::CollectiveOpInterface>(op) &&
                            !llvm::isa<ir::SliceLocalOp>(op));
    if (op.use_empty() && op.getNumResults() > 0 && !hasEffect) op.erase();
  }
}

}  // namespace

LogicalResult editStash(const ForwardGraph& forward, const Blocks& blocks,
                        const std::vector<Recomputation>& edits) {
  const StashGraph& graph = forward.graph;
  std::vector<bool> dropped(graph.values.size()), added(graph.values.size());
  std::vector<bool> runs(graph.ops.size());
  for (const Recomputation& edit : edits) {
    for (int value : edit.dropped) dropped[value] = true;
    for (int value : edit.added) added[value] = true;
    for (int op : edit.ops) runs[op] = true;
  }
  if (llvm::none_of(dropped, [](bool value) { return value; })) return mlir::success();

  FailureOr<SegmentEdit> own = SegmentEdit::create(forward.forward);
  if (failed(own)) return mlir::failure();
  std::vector<std::string> names(graph.values.size());
  for (const auto& [name, value] : forward.stash) names[value] = name.str();
  // What was added, and what of it is read: the ops that need it may not be needed themselves.
  llvm::StringSet<> addedNames, read;
  const std::string suffix = "." + own->segment().getSymName().str();
  for (size_t i = 0, next = 0; i < added.size(); ++i) {
    if (!added[i]) continue;
    // No phase before makes names with this beginning.
    names[i] = "remat." + std::to_string(next++) + suffix;
    addedNames.insert(names[i]);
    own->addResult(forward.values[i], {ValueKind::kStash, names[i], ""},
                   ir::shardingOf(forward.values[i]));
  }
  for (FuncOp segment : forward.backwards) {
    FailureOr<SegmentEdit> backward = SegmentEdit::create(segment);
    if (failed(backward)) return mlir::failure();
    if (failed(Recomputer(forward, blocks, names, dropped, *backward).run(runs))) {
      return mlir::failure();
    }
    backward->erase([](const ValueRole&) { return false; });
    for (const auto& entry : addedNames) {
      const llvm::StringRef name = entry.getKey();
      if (backward->find({ValueKind::kStash, name.str(), ""})) read.insert(name);
    }
    backward->finish();
  }
  own->erase([&](const ValueRole& role) {
    auto value = forward.stash.find(role.ref);
    if (value != forward.stash.end()) return static_cast<bool>(dropped[value->second]);
    return addedNames.contains(role.ref) && !read.contains(role.ref);
  });
  own->finish();
  eraseUnused(forward.forward);
  return mlir::success();
}

}  // namespace oriel
