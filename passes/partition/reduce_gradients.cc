#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "passes/partition/passes.h"
#include "passes/strategize/grid.h"

namespace oriel {

#define GEN_PASS_DEF_REDUCEGRADIENTS
#include "passes/partition/passes.h.inc"

namespace {

using mlir::Value;

struct ReduceGradients : impl::ReduceGradientsBase<ReduceGradients> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    mlir::FailureOr<Grid> grid = getGrid(module);
    if (failed(grid)) return signalPassFailure();
    std::vector<std::string> axes = grid->atomicAxes("dp");
    if (axes.empty()) return;

    auto update = module.lookupSymbol<mlir::func::FuncOp>("update");
    if (!update) {
      module.emitError("has no segment @update: run the train phase first");
      return signalPassFailure();
    }
    llvm::SmallVector<Value> sums;
    for (mlir::BlockArgument argument : update.getArguments()) {
      mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(update, argument.getArgNumber());
      if (failed(role)) return signalPassFailure();
      if (role->kind == ir::ValueKind::kGradient || role->kind == ir::ValueKind::kAccumulator) {
        sums.push_back(argument);
      }
    }
    if (sums.empty()) return;

    auto builder = mlir::OpBuilder::atBlockBegin(&update.getBody().front());
    llvm::SmallVector<llvm::StringRef> names(axes.begin(), axes.end());
    auto reduced =
        ir::AllReduceOp::create(builder, update.getLoc(), mlir::ValueRange(sums).getTypes(), sums,
                                builder.getStrArrayAttr(names), "sum");
    for (auto [local, global] : llvm::zip_equal(sums, reduced.getResults())) {
      local.replaceAllUsesExcept(global, reduced);
    }
  }
};

}  // namespace
}  // namespace oriel
