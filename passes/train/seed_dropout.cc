#include <string>
#include <vector>

#include "ir/oriel/inference.h"
#include "ir/oriel/segment.h"
#include "passes/train/passes.h"

namespace oriel {

#define GEN_PASS_DEF_SEEDDROPOUT
#include "passes/train/passes.h.inc"

namespace {

using ir::shapeOf;
using mlir::FailureOr;
using mlir::Value;

struct SeedDropout : impl::SeedDropoutBase<SeedDropout> {
  using SeedDropoutBase::SeedDropoutBase;

  void runOnOperation() override {
    if (samples < 1) {
      getOperation().emitError("a microbatch of ")
          << samples.getValue() << " samples: needs at least one";
      return signalPassFailure();
    }
    mlir::func::FuncOp main = ir::mainOfOneBlock(getOperation());
    if (!main) return;
    llvm::SmallVector<ir::DropoutOp> dropouts;
    main.walk([&](ir::DropoutOp op) {
      if (!op.getSamples()) dropouts.push_back(op);
    });
    if (dropouts.empty()) return;
    FailureOr<Value> bits = addInput(main);
    if (failed(bits)) return signalPassFailure();
    for (ir::DropoutOp dropout : dropouts) {
      mlir::OpBuilder builder(dropout);
      Value own = *bits;
      if (shapeOf(dropout.getInput())[0] % samples != 0) {
        dropout.emitWarning() << "drops elements of " << dropout.getInput().getType()
                              << ", whose first dimension "
                              << "is not that of the " << samples
                              << " samples of a microbatch: which ones depends on "
                              << "how many samples that has; with the batch first it would not";
        own = ir::SliceOp::create(builder, dropout.getLoc(), own, llvm::ArrayRef<int64_t>{0},
                                  llvm::ArrayRef<int64_t>{1}, llvm::ArrayRef<int64_t>{1});
      }
      dropout.getRestMutable().assign(own);
    }
  }

 private:
  FailureOr<Value> addInput(mlir::func::FuncOp main) {
    FailureOr<std::vector<std::string>> taken = ir::inputNames(main);
    if (failed(taken)) return mlir::failure();
    std::string name = "sample_bits";
    while (llvm::is_contained(*taken, name)) name += "_";
    mlir::Builder builder(&getContext());
    auto type = mlir::RankedTensorType::get({samples}, builder.getI64Type());
    const unsigned index = main.getNumArguments();
    if (failed(main.insertArgument(
            index, type, ir::roleAttributes(&getContext(), {ir::ValueKind::kInput, name, ""}),
            mlir::NameLoc::get(builder.getStringAttr(name))))) {
      return mlir::failure();
    }
    getOperation()->setAttr(ir::kSampleBitsAttr, builder.getStringAttr(name));
    return Value(main.getArgument(index));
  }
};

}  // namespace
}  // namespace oriel
