#include "passes/stage/segment_time.h"

#include <algorithm>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "passes/stage/collective_time.h"
#include "passes/stage/op_time.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using mlir::FailureOr;
using mlir::Operation;

class Replay {
 public:
  Replay(mlir::Block& block, const Grid& grid) : block_(block), grid_(grid) {}

  PredictedTime run() {
    for (Operation& op : block_) {
      if (auto bucket = op.getAttrOfType<mlir::IntegerAttr>(ir::kBucketAttr)) {
        sentInBucket_[bucket.getInt()] +=
            sentBytes(llvm::cast<ir::CollectiveOpInterface>(op), grid_);
      }
    }
    for (Operation& op : block_.without_terminator()) step(&op);
    return {computing_, now_ - computing_};
  }

 private:
  void step(Operation* op) {
    if (auto wait = llvm::dyn_cast<ir::WaitOp>(op)) {
      for (mlir::Value value : wait.getInputs()) {
        now_ = std::max(now_, ends_.lookup(value.getDefiningOp()));
      }
      return;
    }
    auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op);
    if (!collective) {
      const double seconds = predictedSeconds(op);
      computing_ += seconds;
      now_ += seconds;
      return;
    }
    auto stream = op->getAttrOfType<mlir::IntegerAttr>(ir::kStreamAttr);
    if (!stream) {
      now_ += predictedCollectiveSeconds(collective, grid_, sentBytes(collective, grid_));
      return;
    }
    start(collective, stream.getInt());
  }

  // A bucket is started where its first op stands.
  void start(ir::CollectiveOpInterface collective, int64_t stream) {
    double sent = 0;
    if (auto bucket = collective->getAttrOfType<mlir::IntegerAttr>(ir::kBucketAttr)) {
      auto [end, isNew] = bucketEnds_.try_emplace(bucket.getInt(), 0);
      if (!isNew) {
        ends_[collective] = end->second;
        return;
      }
      sent = sentInBucket_.lookup(bucket.getInt());
      end->second = ends_[collective] = occupy(collective, stream, sent);
      return;
    }
    ends_[collective] = occupy(collective, stream, sentBytes(collective, grid_));
  }

  // When what starts now on this stream ends.
  double occupy(ir::CollectiveOpInterface collective, int64_t stream, double sent) {
    double& free = streamFree_[stream];
    free = std::max(now_, free) + predictedCollectiveSeconds(collective, grid_, sent);
    return free;
  }

  mlir::Block& block_;
  const Grid& grid_;
  double now_ = 0, computing_ = 0;
  llvm::DenseMap<int64_t, double> sentInBucket_, bucketEnds_, streamFree_;
  llvm::DenseMap<Operation*, double> ends_;  // of collectives that were started
};

}  // namespace

FailureOr<PredictedTime> predictedTime(mlir::func::FuncOp segment) {
  mlir::Block& block = segment.getBody().front();
  Grid grid;
  if (llvm::any_of(block, llvm::IsaPred<ir::CollectiveOpInterface>)) {
    FailureOr<Grid> own = getGrid(segment->getParentOfType<mlir::ModuleOp>());
    if (failed(own)) return mlir::failure();
    grid = *std::move(own);
  }
  return Replay(block, grid).run();
}

FailureOr<PredictedTime> predictedStepTime(mlir::ModuleOp program) {
  FailureOr<std::vector<ScheduleEntry>> schedule = getSchedule(program);
  if (failed(schedule)) return mlir::failure();
  llvm::StringMap<int64_t> runs;
  for (const ScheduleEntry& entry : *schedule) ++runs[entry.segment];
  PredictedTime sum;
  for (auto segment : program.getOps<mlir::func::FuncOp>()) {
    const int64_t count = schedule->empty() ? 1 : runs.lookup(segment.getSymName());
    if (count == 0) continue;
    FailureOr<PredictedTime> time = predictedTime(segment);
    if (failed(time)) return mlir::failure();
    sum.computing += static_cast<double>(count) * time->computing;
    sum.waiting += static_cast<double>(count) * time->waiting;
  }
  return sum;
}

}  // namespace oriel
