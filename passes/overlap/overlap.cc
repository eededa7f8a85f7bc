#include "ir/oriel/segment.h"
#include "passes/overlap/last_backward.h"
#include "passes/overlap/level_choice.h"
#include "passes/overlap/passes.h"

namespace oriel {

#define GEN_PASS_DEF_OVERLAPPASS
#include "passes/overlap/passes.h.inc"

namespace {

// What is less than asked because that does not fit, for the user. Nothing of a program that does
// not fit anyway, which is an error further down.
void warn(mlir::ModuleOp program, const LevelChoice& choice, int64_t memory) {
  if (choice.bytes > memory || choice.asAskedFits) return;
  mlir::InFlightDiagnostic warning = program.emitWarning();
  if (program.getSymName()) warning << *program.getSymName() << ": ";
  warning << "the overlap that is asked does not fit into `memory`, " << memory
          << " bytes; of what does, this is predicted to be fastest: ";
  switch (choice.level) {
    case OverlapLevel::kSmallerBuckets:
      warning << "communication runs beside computing in smaller buckets";
      break;
    case OverlapLevel::kNothingAhead:
      warning << "no parameter is gathered ahead of its use";
      break;
    default:
      warning << "communication does not run beside computing";
  }
}

// As remat has decided; or else as fits.
mlir::LogicalResult overlapWithin(mlir::ModuleOp program, const Overlap& overlap, int64_t memory,
                                  const LaunchForms& forms, BytesBy bytesBy) {
  mlir::FailureOr<std::optional<OverlapLevel>> level = getOverlapLevel(program);
  if (failed(level)) return mlir::failure();
  if (*level) return overlapProgram(program, overlap, **level);
  mlir::FailureOr<std::optional<LevelChoice>> choice =
      chooseLevel(program, overlap, memory, forms, bytesBy);
  if (failed(choice)) return mlir::failure();
  warn(program, **choice, memory);
  setOverlapLevel(program, (*choice)->level);
  return overlapProgram(program, overlap, (*choice)->level);
}

struct OverlapPass : impl::OverlapPassBase<OverlapPass> {
  using impl::OverlapPassBase<OverlapPass>::OverlapPassBase;
  OverlapPass(Overlap overlap, std::optional<int64_t> bytes, const LaunchForms& forms,
              bool isByPeak)
      : overlap_(std::move(overlap)) {
    memory = bytes.value_or(0);
    fused = forms.fused;
    generated = forms.generated;
    byPeak = isByPeak;
  }

  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    OverlapPassBase::getDependentDialects(registry);
    registerLaunchDialects(registry);
  }

  void runOnOperation() override {
    if (!overlap_) {
      overlap_.emplace();
      if (bucket >= 0) overlap_->bucket = bucket;
      if (prefetch >= 0) overlap_->prefetch = prefetch;
    }
    const BytesBy bytesBy = byPeak ? BytesBy::kPeak : BytesBy::kArena;
    llvm::SmallVector<mlir::ModuleOp> programs = ir::programsOf(getOperation());
    for (mlir::ModuleOp program : programs) {
      if (failed(memory > 0 ? overlapWithin(program, *overlap_, memory, {fused, generated}, bytesBy)
                            : overlapProgram(program, *overlap_))) {
        return signalPassFailure();
      }
    }
    if (failed(alignUpdates(programs))) signalPassFailure();
  }

  std::optional<Overlap> overlap_;
};

}  // namespace

std::unique_ptr<mlir::Pass> createOverlap(Overlap overlap, std::optional<int64_t> memory,
                                          const LaunchForms& forms, bool byPeak) {
  return std::make_unique<OverlapPass>(std::move(overlap), memory, forms, byPeak);
}

}  // namespace oriel
