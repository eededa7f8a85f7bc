#include "ir/oriel/segment.h"
#include "passes/lower/program_memory.h"
#include "passes/overlap/last_backward.h"
#include "passes/overlap/passes.h"
#include "passes/overlap/program_overlap.h"

namespace oriel {

#define GEN_PASS_DEF_OVERLAPPASS
#include "passes/overlap/passes.h.inc"

namespace {

mlir::FailureOr<bool> fits(mlir::ModuleOp program, int64_t memory) {
  mlir::FailureOr<ProgramMemory> planned = ProgramMemory::of(program);
  if (failed(planned)) return mlir::failure();
  return planned->place(memory).bytes <= memory;
}

// Tries less and less, and leaves the program as it was where nothing fits.
mlir::LogicalResult overlapWithin(mlir::ModuleOp program, const Overlap& overlap, int64_t memory) {
  Overlap nothingAhead = overlap;
  nothingAhead.prefetch = 0;
  mlir::OwningOpRef<mlir::ModuleOp> before = program.clone();
  for (const Overlap& tried : {overlap, nothingAhead}) {
    if (failed(overlapProgram(program, tried))) return mlir::failure();
    mlir::FailureOr<bool> fitting = fits(program, memory);
    if (failed(fitting)) return mlir::failure();
    if (*fitting) return mlir::success();
    mlir::OwningOpRef<mlir::ModuleOp> copy = before->clone();
    program->setAttrs(copy.get()->getAttrDictionary());
    program.getBodyRegion().takeBody(copy->getBodyRegion());
  }
  mlir::FailureOr<bool> fitting = fits(program, memory);
  if (failed(fitting)) return mlir::failure();
  if (*fitting) {
    program.emitWarning("communication does not run beside computing, for which `memory`, ")
        << memory << " bytes, leaves no room";
  }
  return mlir::success();
}

struct OverlapPass : impl::OverlapPassBase<OverlapPass> {
  using impl::OverlapPassBase<OverlapPass>::OverlapPassBase;
  OverlapPass(Overlap overlap, std::optional<int64_t> bytes) : overlap_(std::move(overlap)) {
    memory = bytes.value_or(0);
  }

  void runOnOperation() override {
    if (!overlap_) {
      overlap_.emplace();
      if (bucket >= 0) overlap_->bucket = bucket;
      if (prefetch >= 0) overlap_->prefetch = prefetch;
    }
    llvm::SmallVector<mlir::ModuleOp> programs = ir::programsOf(getOperation());
    for (mlir::ModuleOp program : programs) {
      if (failed(memory > 0 ? overlapWithin(program, *overlap_, memory)
                            : overlapProgram(program, *overlap_))) {
        return signalPassFailure();
      }
    }
    if (failed(alignUpdates(programs))) signalPassFailure();
  }

  std::optional<Overlap> overlap_;
};

}  // namespace

std::unique_ptr<mlir::Pass> createOverlap(Overlap overlap, std::optional<int64_t> memory) {
  return std::make_unique<OverlapPass>(std::move(overlap), memory);
}

}  // namespace oriel
