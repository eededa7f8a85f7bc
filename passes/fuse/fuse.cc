#include "ir/interfaces/view.h"
#include "ir/oriel/segment.h"
#include "llvm/ADT/DenseMap.h"
#include "passes/fuse/cluster.h"
#include "passes/fuse/passes.h"
#include "passes/stage/blocks.h"

namespace oriel {

#define GEN_PASS_DEF_FUSE
#include "passes/fuse/passes.h.inc"

namespace {

using mlir::Operation;
using mlir::Value;

bool isLocal(Operation* op) {
  return !llvm::isa<ir::CollectiveOpInterface, ir::SendOp, ir::ReceiveOp>(op);
}

// Whether the op works element by element on what a chain gives it.
bool continuesChains(Operation* op) {
  return op->getNumResults() == 1 && (op->hasTrait<ir::Pointwise>() || ir::isView(op));
}

class Clusters {
 public:
  explicit Clusters(const Blocks& blocks) : blocks_(blocks) {}

  int64_t of(Operation* op) {
    int64_t cluster = next_;
    Operation* before = continuesChains(op) ? chainBefore(op) : nullptr;
    if (before) {
      cluster = clusterOf_.lookup(before);
    } else {
      ++next_;
    }
    clusterOf_[op] = cluster;
    return cluster;
  }

 private:
  // The last op whose chain this one could continue; null for none.
  Operation* chainBefore(Operation* op) const {
    Operation* last = nullptr;
    for (Value operand : op->getOperands()) {
      Operation* producer = operand.getDefiningOp();
      if (!producer || !clusterOf_.contains(producer) || producer->getNumResults() != 1 ||
          producer->getNumOperands() == 0 || !operand.hasOneUse() ||
          blocks_.of(producer) != blocks_.of(op)) {
        continue;
      }
      if (!last || last->isBeforeInBlock(producer)) last = producer;
    }
    return last;
  }

  const Blocks& blocks_;
  llvm::DenseMap<Operation*, int64_t> clusterOf_;
  int64_t next_ = 0;
};

struct Fuse : impl::FuseBase<Fuse> {
  void runOnOperation() override {
    mlir::Builder builder(&getContext());
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      const Blocks blocks(program);
      for (mlir::func::FuncOp forward : ir::segmentsOfKind(program, "forward")) {
        Clusters clusters(blocks);
        for (Operation& op : forward.getBody().front().without_terminator()) {
          if (isLocal(&op)) op.setAttr(kClusterAttr, builder.getI64IntegerAttr(clusters.of(&op)));
        }
      }
    }
  }
};

}  // namespace
}  // namespace oriel
