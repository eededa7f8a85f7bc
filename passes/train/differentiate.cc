#include "passes/train/passes.h"
#include "passes/train/vjp_function.h"

namespace oriel {

#define GEN_PASS_DEF_DIFFERENTIATE
#include "passes/train/passes.h.inc"

namespace {

struct Differentiate : impl::DifferentiateBase<Differentiate> {
  using DifferentiateBase::DifferentiateBase;

  void runOnOperation() override {
    auto target = getOperation().lookupSymbol<mlir::func::FuncOp>(function);
    if (!target || !target.getBody().hasOneBlock()) {
      getOperation().emitError("has no function @") << function << " of one block";
      return signalPassFailure();
    }
    llvm::SmallVector<unsigned> arguments(wrt.begin(), wrt.end());
    if (arguments.empty()) arguments = floatArguments(target);
    if (failed(buildVjpFunction(target, arguments))) signalPassFailure();
  }
};

}  // namespace
}  // namespace oriel
