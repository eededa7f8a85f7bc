#include "ir/oriel/segment.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/IR/Matchers.h"
#include "passes/lower/launches.h"
#include "passes/lower/passes.h"
#include "passes/strategize/schedule.h"

namespace oriel {

#define GEN_PASS_DEF_ASSIGNGRADIENTS
#include "passes/lower/passes.h.inc"

namespace {

using mlir::failure;
using mlir::LogicalResult;
using mlir::success;
using mlir::Value;
using mlir::func::FuncOp;

// The places of a gradient in the segments of a program.
struct Gradient {
  int runs = 0;             // of backward segments that make it, in a step
  mlir::BlockArgument sum;  // what a backward adds to
  FuncOp update;
  unsigned reset = 0;  // the result of update
};

// What is added to the sum; null if anything else is done with it.
Value addedTo(mlir::BlockArgument sum) {
  if (!sum || !sum.hasOneUse()) return nullptr;
  auto add = llvm::dyn_cast<ir::AddOp>(*sum.user_begin());
  if (!add) return nullptr;
  Value other = add.getLhs() == sum ? add.getRhs() : add.getLhs();
  return other.getType() == add.getType() ? other : nullptr;
}

LogicalResult collect(mlir::ModuleOp program, llvm::StringMap<Gradient>& gradients) {
  mlir::FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
  if (failed(schedule)) return failure();
  for (FuncOp segment : program.getOps<FuncOp>()) {
    const int runs = static_cast<int>(llvm::count_if(*schedule, [&](const ScheduleEntry& entry) {
      return entry.segment == segment.getSymName();
    }));
    for (unsigned i = 0; i < segment.getNumResults(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::resultRole(segment, i);
      if (failed(role)) return failure();
      if (role->kind != ir::ValueKind::kGradient) continue;
      Gradient& gradient = gradients[role->ref];
      if (ir::isUpdate(segment)) {
        gradient.update = segment;
        gradient.reset = i;
      } else {
        gradient.runs += runs;
      }
    }
    if (ir::isUpdate(segment) || runs == 0) continue;
    for (unsigned i = 0; i < segment.getNumArguments(); ++i) {
      mlir::FailureOr<ir::ValueRole> role = ir::argumentRole(segment, i);
      if (failed(role)) return failure();
      if (role->kind == ir::ValueKind::kGradient) {
        gradients[role->ref].sum = segment.getArgument(i);
      }
    }
  }
  return success();
}

// Arguments and results to be removed from a segment.
struct Erased {
  explicit Erased(FuncOp segment)
      : arguments(segment.getNumArguments()), results(segment.getNumResults()) {}
  llvm::BitVector arguments, results;
};

void erase(FuncOp segment, const Erased& erased) {
  segment.getBody().front().getTerminator()->eraseOperands(erased.results);
  (void)segment.eraseResults(erased.results);
  (void)segment.eraseArguments(erased.arguments);
}

struct AssignGradients : impl::AssignGradientsBase<AssignGradients> {
  void runOnOperation() override {
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      if (failed(assignGradients(program))) return signalPassFailure();
    }
  }
};

}  // namespace

LogicalResult assignGradients(mlir::ModuleOp program) {
  llvm::StringMap<Gradient> gradients;
  if (failed(collect(program, gradients))) return failure();
  llvm::MapVector<mlir::Operation*, Erased> erased;
  auto erasedOf = [&](FuncOp segment) -> Erased& {
    return erased.try_emplace(segment, segment).first->second;
  };
  for (auto& [unused, gradient] : gradients) {
    Value added = gradient.runs == 1 && gradient.update ? addedTo(gradient.sum) : nullptr;
    if (!added) continue;
    mlir::Operation* end = gradient.update.getBody().front().getTerminator();
    if (!mlir::matchPattern(end->getOperand(gradient.reset), mlir::m_AnyZeroFloat())) continue;
    mlir::Operation* sum = *gradient.sum.user_begin();
    sum->getResult(0).replaceAllUsesWith(added);
    sum->erase();
    auto backward = llvm::cast<FuncOp>(gradient.sum.getOwner()->getParentOp());
    erasedOf(backward).arguments.set(gradient.sum.getArgNumber());
    erasedOf(gradient.update).results.set(gradient.reset);
  }
  for (auto& [segment, what] : erased) erase(llvm::cast<FuncOp>(segment), what);
  return success();
}

}  // namespace oriel
