#include <limits>
#include <memory>

#include "ir/interfaces/tensor_type.h"
#include "ir/oriel/segment_roles.h"
#include "passes/propagate/passes.h"
#include "passes/propagate/segment_propagation.h"

namespace oriel {

#define GEN_PASS_DEF_PROPAGATE
#include "passes/propagate/passes.h.inc"

namespace {

using ir::ValueKind;
using ir::ValueRole;
using mlir::BlockArgument;
using mlir::failure;
using mlir::FailureOr;
using mlir::RankedTensorType;
using mlir::func::FuncOp;

// The segments of one program, one after the other.
class ProgramPropagation {
 public:
  ProgramPropagation(mlir::ModuleOp program, Grid grid, int64_t samples)
      : sharding_(program, std::move(grid), samples), segments_(program.getOps<FuncOp>()) {}

  bool isDone() const { return segments_.empty(); }
  FuncOp segment() const { return segments_.front(); }

  // As far as the channels have values; gives whether that was any further.
  FailureOr<bool> advance(Channels& channels, llvm::raw_ostream* explain) {
    bool any = false;
    while (!isDone()) {
      if (!current_) {
        current_ =
            std::make_unique<SegmentPropagation>(segments_.front(), sharding_, channels, explain);
        any = true;
      }
      size_t before = channels.size();
      FailureOr<bool> ended = current_->advance();
      if (failed(ended)) return failure();
      any |= *ended || channels.size() > before;
      if (!*ended) break;
      current_.reset();
      segments_.erase(segments_.begin());
    }
    return any;
  }

 private:
  ProgramSharding sharding_;
  llvm::SmallVector<FuncOp> segments_;  // that are left
  std::unique_ptr<SegmentPropagation> current_;
};

// The smallest first dimension of an input: others have several rows for each sample.
int64_t samplesOf(mlir::ModuleOp module) {
  int64_t samples = std::numeric_limits<int64_t>::max();
  for (mlir::ModuleOp program : ir::programsOf(module)) {
    for (FuncOp segment : program.getOps<FuncOp>()) {
      for (BlockArgument argument : segment.getArguments()) {
        FailureOr<ValueRole> role = ir::argumentRole(segment, argument.getArgNumber());
        if (failed(role) || role->kind != ValueKind::kInput) continue;
        llvm::ArrayRef<int64_t> shape = ir::shapeOf(argument);
        if (!shape.empty() && shape[0] > 0) samples = std::min(samples, shape[0]);
      }
    }
  }
  return samples;
}

struct Propagate : impl::PropagateBase<Propagate> {
  using PropagateBase::PropagateBase;

  void runOnOperation() override {
    std::vector<std::unique_ptr<ProgramPropagation>> programs;
    const int64_t samples = samplesOf(getOperation());
    for (mlir::ModuleOp program : ir::programsOf(getOperation())) {
      FailureOr<Grid> grid = getGrid(program);
      if (failed(grid)) return signalPassFailure();
      if (ir::segmentsOfKind(program, "forward").empty()) {
        program.emitError("has no segment @forward: run the train phase first");
        return signalPassFailure();
      }
      for (FuncOp segment : program.getOps<FuncOp>()) {
        if (segment.isDeclaration()) {
          segment.emitError("a segment must have a body");
          return signalPassFailure();
        }
        if (failed(ir::checkOrigins(segment))) return signalPassFailure();
      }
      programs.push_back(std::make_unique<ProgramPropagation>(program, *grid, samples));
    }
    // What a program receives has the sharding in which another one sends it. Channels point to
    // the senders' grids, also of those that are done.
    Channels channels;
    std::vector<ProgramPropagation*> open;
    for (const std::unique_ptr<ProgramPropagation>& program : programs) {
      open.push_back(program.get());
    }
    while (!open.empty()) {
      bool any = false;
      for (ProgramPropagation* program : open) {
        FailureOr<bool> further = program->advance(channels, explain ? &llvm::errs() : nullptr);
        if (failed(further)) return signalPassFailure();
        any |= *further;
      }
      if (!any) {
        open.front()->segment().emitError("waits for a value that no program sends");
        return signalPassFailure();
      }
      llvm::erase_if(open, [](ProgramPropagation* program) { return program->isDone(); });
    }
  }
};

}  // namespace
}  // namespace oriel
