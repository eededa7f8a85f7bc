#include "ir/oriel/oriel.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/passes.h"
#include "passes/strategize/schedule.h"

namespace oriel {

#define GEN_PASS_DEF_DATAPARALLEL
#include "passes/strategize/passes.h.inc"

namespace {

struct DataParallel : impl::DataParallelBase<DataParallel> {
  using DataParallelBase::DataParallelBase;

  void runOnOperation() override {
    if (world < 1) {
      getOperation().emitError("a world of ")
          << world.getValue() << " ranks: at least one is needed";
      return signalPassFailure();
    }
    if (microbatches < 1) {
      getOperation().emitError("a step of ")
          << microbatches.getValue() << " microbatches: at least one is needed";
      return signalPassFailure();
    }
    setGrid(getOperation(), dataParallelGrid(world));
    setSchedule(getOperation(), accumulationSchedule(microbatches));
    if (world > 1 && failed(checkSamplesAreIndependent())) signalPassFailure();
  }

  // Each rank computes with its own samples.
  mlir::LogicalResult checkSamplesAreIndependent() {
    mlir::WalkResult result = getOperation().walk([&](mlir::Operation* op) {
      if (!op->hasTrait<ir::CouplesSamples>()) return mlir::WalkResult::advance();
      op->emitOpError("couples the samples of a batch and can't be split over ")
          << world.getValue()
          << " ranks: for a merge of image features declare `images: {per_sample, "
          << "rows_per_image}` in the recipe; else use --world 1";
      return mlir::WalkResult::interrupt();
    });
    return mlir::failure(result.wasInterrupted());
  }
};

}  // namespace
}  // namespace oriel
