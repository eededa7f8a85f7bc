#include "ir/oriel/segment.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "mlir/IR/Threading.h"
#include "passes/remat/block_policy.h"
#include "passes/remat/budget.h"
#include "passes/remat/forward_graph.h"
#include "passes/remat/passes.h"
#include "passes/remat/stash_edit.h"
#include "passes/strategy/remat_policy.h"

namespace oriel {

#define GEN_PASS_DEF_REMAT
#include "passes/remat/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::ModuleOp;
using mlir::success;

double mebibytes(int64_t bytes) { return static_cast<double>(bytes) / (1 << 20); }

void print(ModuleOp program, const BudgetChoice& choice, int64_t budget) {
  llvm::raw_ostream& out = llvm::errs();
  out << "remat: ";
  if (program.getSymName()) out << *program.getSymName() << ": ";
  out << llvm::format("%.6g of %.6g MiB; for each microbatch %.4g ms run again, ",
                      mebibytes(choice.overlap.bytes), mebibytes(budget), choice.seconds * 1e3);
  if (choice.leastSeconds) {
    out << llvm::format("at least %.4g by linear relaxation", *choice.leastSeconds * 1e3);
  } else {
    out << "and no choice fits";
  }
  const PredictedTime& time = choice.overlap.time;
  out << llvm::format("; a step computes %.6g ms and waits %.6g ms for collectives, ",
                      time.computing * 1e3, time.waiting * 1e3)
      << "overlap: " << overlapLevelName(choice.overlap.level) << '\n';
}

// What was chosen for one of several programs.
LogicalResult apply(ModuleOp program, const Blocks& blocks, const BudgetChoice& choice,
                    bool overlaps) {
  if (overlaps) setOverlapLevel(program, choice.overlap.level);
  for (auto [segment, edits] :
       llvm::zip_equal(ir::segmentsOfKind(program, "forward"), choice.edits)) {
    mlir::FailureOr<ForwardGraph> forward = readForward(segment, blocks);
    if (failed(forward) || failed(editStash(*forward, blocks, edits))) return failure();
  }
  return success();
}

struct Remat : impl::RematBase<Remat> {
  using RematBase::RematBase;
  Remat(const Strategy& strategy, const LaunchForms& forms, bool isQuiet)
      : overlap_(strategy.overlap) {
    policy = rematName(strategy.rematPolicy());
    memory = strategy.memory.value_or(0);
    fused = forms.fused;
    generated = forms.generated;
    quiet = isQuiet;
  }

  void getDependentDialects(mlir::DialectRegistry& registry) const override {
    RematBase::getDependentDialects(registry);
    registerLaunchDialects(registry);
  }

  void runOnOperation() override {
    if (failed(run())) signalPassFailure();
  }

  LogicalResult run() {
    absl::StatusOr<RematPolicy> parsed = parseRemat(policy);
    if (!parsed.ok()) return getOperation().emitError(std::string(parsed.status().message()));
    if (*parsed == RematPolicy::kAuto && memory <= 0) {
      return getOperation().emitError("the remat policy 'auto' needs a budget of memory");
    }
    const llvm::SmallVector<ModuleOp> programs = ir::programsOf(getOperation());
    if (*parsed == RematPolicy::kAuto) {
      return applyWithin(programs);
    }
    for (ModuleOp program : programs) {
      if (failed(recomputeBlocks(program, Blocks(program), *parsed))) return failure();
    }
    return success();
  }

  // Many plans are tried for each program, and programs don't depend on each other: each on a
  // thread.
  LogicalResult applyWithin(llvm::ArrayRef<ModuleOp> programs) {
    std::vector<Blocks> blocks;
    for (ModuleOp program : programs) blocks.emplace_back(program);
    std::vector<std::optional<BudgetChoice>> choices(programs.size());
    auto choose = [&](size_t i) -> LogicalResult {
      mlir::FailureOr<BudgetChoice> choice =
          chooseWithin(programs[i], blocks[i], memory, overlap_, {fused, generated});
      if (failed(choice)) return failure();
      choices[i] = *std::move(choice);
      return success();
    };
    if (failed(mlir::failableParallelForEachN(&getContext(), 0, programs.size(), choose))) {
      return failure();
    }
    for (size_t i = 0; i < programs.size(); ++i) {
      if (!quiet) print(programs[i], *choices[i], memory);
      if (failed(apply(programs[i], blocks[i], *choices[i], overlap_.has_value()))) {
        return failure();
      }
    }
    return success();
  }

  std::optional<Overlap> overlap_;
};

}  // namespace

std::unique_ptr<mlir::Pass> createRemat(const Strategy& strategy, const LaunchForms& forms,
                                        bool quiet) {
  return std::make_unique<Remat>(strategy, forms, quiet);
}

}  // namespace oriel
