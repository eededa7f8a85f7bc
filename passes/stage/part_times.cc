#include "passes/stage/part_times.h"

#include <algorithm>
#include <limits>

#include "ir/oriel/location.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/cost/collective_time.h"
#include "passes/cost/op_time.h"
#include "passes/generate/chains.h"
#include "passes/remat/block_policy.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

namespace {

using mlir::Operation;
using mlir::Value;

class PartTimer {
 public:
  // The grid outlives this.
  PartTimer(mlir::ModuleOp launches, const Grid& grid, bool areGenerated, ModelParts* model)
      : launches_(launches),
        areGenerated_(areGenerated),
        times_(launches),
        collectiveTimes_(launches, grid),
        model_(model) {}

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
  llvm::DenseMap<Operation*, double> secondsIn(mlir::Block& block) {
    llvm::DenseMap<Operation*, double> seconds;
    for (Operation& op : block.without_terminator()) {
      auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op);
      seconds[&op] = collective ? collectiveTimes_.seconds(collective) : times_.seconds(&op);
    }
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

  static SegmentValues valuesOf(mlir::Block& block) {
    return readValues(llvm::cast<mlir::func::FuncOp>(block.getParentOp()));
  }

  // A collective of parameters, which are gathered ahead of their use.
  static bool isBesideComputing(Operation& op, const SegmentValues& values) {
    return llvm::isa<ir::CollectiveOpInterface>(op) &&
           llvm::none_of(op.getOperands(),
                         [&](Value value) { return values.fromInputs.contains(value); });
  }

  void timeForward(mlir::Block& block) {
    const llvm::DenseMap<Operation*, double> seconds = secondsIn(block);
    const SegmentValues values = valuesOf(block);
    for (Operation& op : block.without_terminator()) {
      if (isBesideComputing(op, values)) continue;
      auto part = model_->partOfOrigin.find(ir::originOf(&op));
      if (part != model_->partOfOrigin.end()) {
        model_->parts[part->second].forward += seconds.lookup(&op);
      }
    }
  }

  void timeBackward(mlir::Block& block) {
    const llvm::DenseMap<Operation*, double> seconds = secondsIn(block);
    const SegmentValues values = valuesOf(block);
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
      const bool isAwaited = earliest < part;
      if (isBesideComputing(op, values)) continue;
      // So is the reduction of a weight's gradient, for which no earlier part waits.
      if (llvm::isa<ir::CollectiveOpInterface>(op) && !isAwaited) continue;
      Part& own = model_->parts[part];
      (isAwaited ? own.backwardInput : own.backwardWeight) += seconds.lookup(&op);
    }
  }

  mlir::ModuleOp launches_;
  bool areGenerated_;
  OpTimes times_;
  CollectiveTimes collectiveTimes_;
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
  return timeProgram(*launches, forms, model);
}

mlir::LogicalResult timeProgram(mlir::ModuleOp program, const LaunchForms& forms,
                                ModelParts* model) {
  llvm::SmallVector<mlir::Block*> blocks;
  for (auto segment : program.getOps<mlir::func::FuncOp>()) {
    if (!segment.isDeclaration()) blocks.push_back(&segment.getBody().front());
  }
  mlir::FailureOr<Grid> grid = gridForCollectives(program, blocks);
  if (failed(grid)) return mlir::failure();
  if (forms.fused) formFused(program);
  PartTimer(program, *grid, forms.generated, model).time();
  return mlir::success();
}

}  // namespace oriel
