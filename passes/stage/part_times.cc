#include "passes/stage/part_times.h"

#include <algorithm>
#include <limits>

#include "ir/oriel/location.h"
#include "ir/oriel/segment.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/cost/op_time.h"
#include "passes/generate/chains.h"
#include "passes/remat/block_policy.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

class PartTimer {
 public:
  PartTimer(mlir::ModuleOp launches, bool areGenerated, ModelParts* model)
      : launches_(launches), areGenerated_(areGenerated), times_(launches), model_(model) {}

  void time() {
    if (model_->parts.empty()) return;
    if (mlir::Block* forward = blockOf("forward")) timeForward(*forward);
    if (mlir::Block* backward = blockOf("backward")) timeBackward(*backward);
  }

 private:
  mlir::Block* blockOf(llvm::StringRef segment) {
    auto function = launches_.lookupSymbol<mlir::func::FuncOp>(segment);
    return function ? &function.getBody().front() : nullptr;
  }

  // By op; what a chain takes is its last op's.
  llvm::DenseMap<Operation*, double> secondsIn(mlir::Block& block) const {
    llvm::DenseMap<Operation*, double> seconds;
    for (Operation& op : block.without_terminator()) seconds[&op] = times_.seconds(&op);
    if (!areGenerated_) return seconds;
    for (const Chain& chain : findChains(block)) {
      double bytes = 0;
      for (Value value : chain.operands) bytes += ir::typeBytes(value.getType());
      for (Value value : chain.results) bytes += ir::typeBytes(value.getType());
      for (Operation* op : chain.ops) seconds[op] = 0;
      seconds[chain.ops.back()] = times_.secondsOfBytes(bytes);
    }
    return seconds;
  }

  void timeForward(mlir::Block& block) {
    const llvm::DenseMap<Operation*, double> seconds = secondsIn(block);
    for (Operation& op : block.without_terminator()) {
      auto part = model_->partOfOrigin.find(ir::originOf(&op));
      if (part != model_->partOfOrigin.end()) {
        model_->parts[part->second].forward += seconds.lookup(&op);
      }
    }
  }

  void timeBackward(mlir::Block& block) {
    const llvm::DenseMap<Operation*, double> seconds = secondsIn(block);
    // By op: the earliest part of what reads it, and of what reads that.
    llvm::DenseMap<Operation*, int> reaches;
    constexpr int kNone = std::numeric_limits<int>::max();
    for (Operation& op : llvm::reverse(block.without_terminator())) {
      auto found = model_->partOfOrigin.find(ir::originOf(&op));
      const int part = found == model_->partOfOrigin.end() ? kNone : found->second;
      int earliest = kNone;
      for (Operation* user : op.getUsers()) {
        auto reached = reaches.find(user);
        if (reached != reaches.end()) earliest = std::min(earliest, reached->second);
      }
      reaches[&op] = std::min(part, earliest);
      if (part == kNone) continue;
      Part& own = model_->parts[part];
      (earliest < part ? own.backwardInput : own.backwardWeight) += seconds.lookup(&op);
    }
  }

  mlir::ModuleOp launches_;
  bool areGenerated_;
  OpTimes times_;
  ModelParts* model_;
};

}  // namespace

mlir::LogicalResult timeParts(mlir::ModuleOp module, RematPolicy remat, const LaunchForms& forms,
                              ModelParts* model) {
  mlir::OwningOpRef<mlir::ModuleOp> launches(module.clone());
  if (remat != RematPolicy::kAuto) {
    annotateBlocks(*launches, *model);
    if (failed(recomputeBlocks(*launches, Blocks(*launches), remat))) return mlir::failure();
  }
  if (forms.fused) formFused(*launches);
  PartTimer(*launches, forms.generated, model).time();
  return mlir::success();
}

}  // namespace oriel
