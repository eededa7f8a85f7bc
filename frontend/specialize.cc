#include "frontend/specialize.h"

#include "frontend/node_location.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/segment.h"
#include "mlir/IR/Dominance.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

namespace oriel {

#define GEN_PASS_DEF_ORIELSPECIALIZE
#include "frontend/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;

// Folds to a fixpoint, by the ops' own folders and canonicalisation patterns, and drops dead ops.
LogicalResult foldAll(mlir::ModuleOp module) {
  mlir::MLIRContext* context = module.getContext();
  mlir::RewritePatternSet patterns(context);
  for (mlir::RegisteredOperationName op : context->getRegisteredOperations()) {
    // Those of plugins have a kernel.
    if (op.getDialectNamespace() == ir::OrielDialect::getDialectNamespace() ||
        op.hasInterface<ir::KernelOpInterface>()) {
      op.getCanonicalizationPatterns(patterns, context);
    }
  }
  mlir::GreedyRewriteConfig config;
  config.setMaxIterations(mlir::GreedyRewriteConfig::kNoLimit);
  config.setUseTopDownTraversal(true);
  return mlir::applyPatternsGreedily(module, std::move(patterns), config);
}

void mergeEqualOps(mlir::ModuleOp module) {
  mlir::IRRewriter rewriter(module.getContext());
  mlir::DominanceInfo dominance(module);
  mlir::eliminateCommonSubExpressions(rewriter, dominance, module);
}

// Parameters that @main does not read lose their argument and their symbol.
LogicalResult dropUnusedParameters(mlir::ModuleOp module) {
  auto main = module.lookupSymbol<mlir::func::FuncOp>("main");
  if (!main) {
    return module.emitError("has no function @main");
  }
  llvm::BitVector unused(main.getNumArguments());
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto role = ir::argumentRole(main, i);
    if (failed(role)) {
      return failure();
    }
    if (role->kind == ir::ValueKind::kParameter && main.getArgument(i).use_empty()) {
      unused.set(i);
      if (mlir::Operation* symbol = module.lookupSymbol(role->ref)) {
        symbol->erase();
      }
    }
  }
  return main.eraseArguments(unused);
}

LogicalResult checkTypes(mlir::Operation* op, mlir::TypeRange types) {
  for (mlir::Type type : types) {
    auto tensor = llvm::dyn_cast<mlir::RankedTensorType>(type);
    if (!tensor || !tensor.hasStaticShape()) {
      return op->emitError() << "the ONNX node \"" << nodeNameOf(op->getLoc())
                             << "\" has a value of type " << type
                             << " after specialize, expected a tensor of static shape";
    }
  }
  return success();
}

// The contract of the phase.
LogicalResult verifySpecialized(mlir::ModuleOp module) {
  auto result = module.walk([](mlir::Operation* op) {
    if (llvm::isa<mlir::ModuleOp>(op)) {
      return mlir::WalkResult::advance();
    }
    if (!llvm::isa_and_nonnull<ir::OrielDialect, mlir::func::FuncDialect>(op->getDialect()) &&
        !llvm::isa<ir::KernelOpInterface>(op)) {
      op->emitError() << "the ONNX node \"" << nodeNameOf(op->getLoc()) << "\" left the op "
                      << op->getName() << " after specialize, expected ops with a kernel only";
      return mlir::WalkResult::interrupt();
    }
    bool ok = succeeded(checkTypes(op, op->getResultTypes()));
    if (auto function = llvm::dyn_cast<mlir::func::FuncOp>(op)) {
      ok = ok && succeeded(checkTypes(op, function.getArgumentTypes()));
    }
    return ok ? mlir::WalkResult::advance() : mlir::WalkResult::interrupt();
  });
  return failure(result.wasInterrupted());
}

struct Specialize : impl::OrielSpecializeBase<Specialize> {
  void runOnOperation() override {
    mlir::ModuleOp module = getOperation();
    if (failed(foldAll(module))) {
      module.emitError("folding did not come to an end");
      return signalPassFailure();
    }
    mergeEqualOps(module);
    if (failed(dropUnusedParameters(module)) || failed(verifySpecialized(module))) {
      signalPassFailure();
    }
  }
};

}  // namespace
}  // namespace oriel
