#include "passes/remat/forward_graph.h"

#include "ir/interfaces/interfaces.h"
#include "ir/interfaces/view.h"
#include "ir/oriel/segment.h"
#include "passes/cost/collective_time.h"
#include "passes/cost/op_time.h"
#include "passes/fuse/cluster.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/segment_values.h"
#include "passes/strategize/sharding.h"

namespace oriel {

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::FailureOr;
using mlir::Operation;
using mlir::Value;
using mlir::func::FuncOp;

class GraphReader {
 public:
  GraphReader(FuncOp forward, const Blocks& blocks)
      : blocks_(blocks),
        times_(forward),
        collectiveTimes_(forward, grid_),
        fromInputs_(readValues(forward).fromInputs) {
    result_.forward = forward;
  }

  FailureOr<ForwardGraph> read() {
    mlir::Block& block = result_.forward.getBody().front();
    for (mlir::BlockArgument argument : block.getArguments()) {
      FailureOr<ValueRole> role = ir::argumentRole(result_.forward, argument.getArgNumber());
      if (failed(role)) return mlir::failure();
      if (role->kind == ValueKind::kParameter) fromParameters_.insert(argument);
      addValue(argument);
    }
    FailureOr<Grid> grid =
        gridForCollectives(result_.forward->getParentOfType<mlir::ModuleOp>(), &block);
    if (failed(grid)) return mlir::failure();
    grid_ = *std::move(grid);
    for (Operation& op : block.without_terminator()) addOp(&op);
    for (mlir::OpOperand& result : block.getTerminator()->getOpOperands()) {
      FailureOr<ValueRole> role = ir::resultRole(result_.forward, result.getOperandNumber());
      if (failed(role)) return mlir::failure();
      if (role->kind == ValueKind::kStash) result_.stash[role->ref] = number(result.get());
    }
    if (failed(readReaders())) return mlir::failure();
    return std::move(result_);
  }

 private:
  // Of running the op again. What is made of parameters is made in the backward anyway.
  double replaySeconds(Operation* op, bool readsActivations) {
    if (!readsActivations) return 0;
    auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op);
    return collective ? collectiveTimes_.seconds(collective) : times_.seconds(op);
  }

  int number(Value value) const { return result_.numbers.at(value); }

  void addValue(Value value) {
    result_.numbers[value] = result_.graph.addValue(ir::typeBytes(value.getType()));
    result_.values.push_back(value);
  }

  void addOp(Operation* op) {
    StashGraph::Op node;
    for (Value operand : op->getOperands()) node.operands.push_back(number(operand));
    for (Value value : op->getResults()) {
      addValue(value);
      node.results.push_back(number(value));
    }
    auto cluster = op->getAttrOfType<mlir::IntegerAttr>(kClusterAttr);
    node.block = blocks_.of(op);
    node.cluster = cluster ? cluster.getInt() : StashGraph::kNone;
    node.repeats = !llvm::isa<ir::SendOp, ir::ReceiveOp>(op);
    node.isCollective = llvm::isa<ir::CollectiveOpInterface>(op);
    const bool reads = llvm::any_of(op->getOperands(), [&](Value v) { return isActivation(v); });
    node.seconds = replaySeconds(op, reads);
    node.isFree = ir::isView(op) || (!reads && node.repeats);
    node.ofParameters = !reads && llvm::any_of(op->getOperands(), [&](Value v) {
      return fromParameters_.contains(v);
    });
    if (node.ofParameters) fromParameters_.insert(op->result_begin(), op->result_end());
    if (reads) readProducts(op, &node);
    result_.ops.push_back(op);
    result_.graph.addOp(std::move(node));
  }

  bool isActivation(Value value) const { return fromInputs_.contains(value); }

  // Sums over a factor that two operands have.
  void readProducts(Operation* op, StashGraph::Op* node) const {
    const ir::ShardingRule rule = ruleOf(op);
    for (auto [factor, entry] : llvm::enumerate(rule.factors)) {
      if (entry.kind == ir::FactorKind::kParallel || entry.kind == ir::FactorKind::kMax) continue;
      int activations = 0, parameters = 0;
      for (auto [i, operand] : llvm::enumerate(op->getOperands())) {
        if (!rule.operandHas(i, static_cast<int>(factor))) continue;
        activations += isActivation(operand) ? 1 : 0;
        parameters += fromParameters_.contains(operand) ? 1 : 0;
      }
      node->contracts |= activations >= 2;
      node->projects |= activations >= 1 && parameters >= 1;
    }
  }

  mlir::LogicalResult readReaders() {
    auto program = result_.forward->getParentOfType<mlir::ModuleOp>();
    for (FuncOp segment : program.getOps<FuncOp>()) {
      bool reads = false;
      for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
        FailureOr<ValueRole> role = ir::argumentRole(segment, i);
        if (failed(role)) return mlir::failure();
        if (role->kind != ValueKind::kStash) continue;
        auto value = result_.stash.find(role->ref);
        if (value == result_.stash.end()) continue;
        StashGraph::Value& node = result_.graph.values[value->second];
        (ir::isBackward(segment) ? node.stashed : node.pinned) = true;
        if (!ir::isBackward(segment)) continue;
        node.readers.push_back(static_cast<int>(result_.backwards.size()));
        reads = true;
      }
      if (reads) result_.backwards.push_back(segment);
    }
    return mlir::success();
  }

  const Blocks& blocks_;
  Grid grid_;
  const OpTimes times_;
  CollectiveTimes collectiveTimes_;
  llvm::DenseSet<Value> fromInputs_, fromParameters_;
  ForwardGraph result_;
};

}  // namespace

FailureOr<ForwardGraph> readForward(FuncOp forward, const Blocks& blocks) {
  return GraphReader(forward, blocks).read();
}

}  // namespace oriel
