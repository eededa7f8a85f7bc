#include <set>
#include <string>

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
    auto main = getOperation().lookupSymbol<mlir::func::FuncOp>("main");
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
    std::set<std::string> taken;
    for (unsigned i = 0; i < main.getNumArguments(); ++i) {
      FailureOr<ir::ValueRole> role = ir::argumentRole(main, i);
      if (failed(role)) return mlir::failure();
      if (role->kind == ir::ValueKind::kInput) taken.insert(role->ref);
    }
    std::string name = "sample_bits";
    while (taken.count(name) > 0) name += "_";
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
