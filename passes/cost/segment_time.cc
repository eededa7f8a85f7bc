#include "passes/cost/segment_time.h"

#include <algorithm>

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/StringMap.h"
#include "passes/cost/cluster_attribute.h"
#include "passes/cost/collective_time.h"
#include "passes/cost/op_time.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/schedule.h"

namespace oriel {

namespace {

using mlir::FailureOr;
using mlir::Operation;

class Replay {
 public:
  Replay(mlir::Block& block, const Grid& grid)
      : block_(block),
        grid_(grid),
        times_(block.getParentOp()),
        collectiveTimes_(block.getParentOp(), grid),
        overlap_(softwareStackOf(block.getParentOp()).overlap *
                 efficiencyOf(block.getParentOp()).overlap) {}

  std::vector<SegmentInterval> run() {
    for (Operation& op : block_) {
      if (auto bucket = op.getAttrOfType<mlir::IntegerAttr>(ir::kBucketAttr)) {
        sentInBucket_[bucket.getInt()] +=
            sentBytes(llvm::cast<ir::CollectiveOpInterface>(op), grid_);
      }
    }
    for (Operation& op : block_.without_terminator()) step(&op);
    endInterval(nullptr);
    return std::move(intervals_);
  }

 private:
  void endInterval(Operation* transfer) {
    const double computing = computing_ - computingBefore_;
    intervals_.push_back({{computing, now_ - before_ - computing}, transfer});
    computingBefore_ = computing_;
    before_ = now_;
  }

  void step(Operation* op) {
    if (llvm::isa<ir::SendOp, ir::ReceiveOp>(op)) return endInterval(op);
    if (auto wait = llvm::dyn_cast<ir::WaitOp>(op)) {
      for (mlir::Value value : wait.getInputs()) {
        now_ = std::max(now_, ends_.lookup(value.getDefiningOp()));
      }
      return;
    }
    auto collective = llvm::dyn_cast<ir::CollectiveOpInterface>(op);
    if (!collective) {
      const double seconds = times_.seconds(op);
      computing_ += seconds;
      now_ += seconds;
      return;
    }
    auto stream = op->getAttrOfType<mlir::IntegerAttr>(ir::kStreamAttr);
    if (!stream) {
      now_ += collectiveTimes_.seconds(collective);
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
    const double seconds = collectiveTimes_.seconds(collective, sent);
    free = std::max(now_, free) + seconds;
    now_ += seconds * (1 - overlap_);
    return free;
  }

  mlir::Block& block_;
  const Grid& grid_;
  const OpTimes times_;
  CollectiveTimes collectiveTimes_;
  const double overlap_;  // the part of a collective beside computing that costs nothing
  double now_ = 0, computing_ = 0;
  double before_ = 0, computingBefore_ = 0;  // the interval
  std::vector<SegmentInterval> intervals_;
  llvm::DenseMap<int64_t, double> sentInBucket_, bucketEnds_, streamFree_;
  llvm::DenseMap<Operation*, double> ends_;  // of collectives that were started
};

}  // namespace

FailureOr<std::vector<SegmentInterval>> predictedIntervals(mlir::func::FuncOp segment) {
  mlir::Block& block = segment.getBody().front();
  FailureOr<Grid> grid = gridForCollectives(segment->getParentOfType<mlir::ModuleOp>(), &block);
  if (failed(grid)) return mlir::failure();
  return Replay(block, *grid).run();
}

FailureOr<PredictedTime> predictedTime(mlir::func::FuncOp segment) {
  FailureOr<std::vector<SegmentInterval>> intervals = predictedIntervals(segment);
  if (failed(intervals)) return mlir::failure();
  PredictedTime sum;
  for (const SegmentInterval& interval : *intervals) {
    sum.computing += interval.time.computing;
    sum.waiting += interval.time.waiting;
  }
  return sum;
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
