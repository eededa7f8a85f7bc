#include "ir/oriel/segment.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/raw_ostream.h"
#include "passes/remat/block_policy.h"
#include "passes/remat/budget.h"
#include "passes/remat/forward_graph.h"
#include "passes/remat/passes.h"
#include "passes/remat/stash_edit.h"
#include "passes/strategize/remat_policy.h"

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

LogicalResult applyWithin(ModuleOp program, const Blocks& blocks, int64_t budget,
                          const std::optional<Overlap>& overlap, const LaunchForms& forms) {
  mlir::FailureOr<BudgetChoice> choice = chooseWithin(program, blocks, budget, overlap, forms);
  if (failed(choice)) return failure();
  print(program, *choice, budget);
  if (overlap) setOverlapLevel(program, choice->overlap.level);
  for (auto [segment, edits] :
       llvm::zip_equal(ir::segmentsOfKind(program, "forward"), choice->edits)) {
    mlir::FailureOr<ForwardGraph> forward = readForward(segment, blocks);
    if (failed(forward) || failed(editStash(*forward, blocks, edits))) return failure();
  }
  return success();
}

struct Remat : impl::RematBase<Remat> {
  using RematBase::RematBase;
  Remat(const Strategy& strategy, const LaunchForms& forms) : overlap_(strategy.overlap) {
    policy = rematName(strategy.rematPolicy());
    memory = strategy.memory.value_or(0);
    fused = forms.fused;
    generated = forms.generated;
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
    for (ModuleOp program : ir::programsOf(getOperation())) {
      const Blocks blocks(program);
      if (failed(*parsed == RematPolicy::kAuto
                     ? applyWithin(program, blocks, memory, overlap_, {fused, generated})
                     : recomputeBlocks(program, blocks, *parsed))) {
        return failure();
      }
    }
    return success();
  }

  std::optional<Overlap> overlap_;
};

}  // namespace

std::unique_ptr<mlir::Pass> createRemat(const Strategy& strategy, const LaunchForms& forms) {
  return std::make_unique<Remat>(strategy, forms);
}

}  // namespace oriel
