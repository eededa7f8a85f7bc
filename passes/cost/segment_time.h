// How long a segment takes, by the predicted times of its ops and collectives.
#ifndef ORIEL_PASSES_COST_SEGMENT_TIME_H_
#define ORIEL_PASSES_COST_SEGMENT_TIME_H_

#include <vector>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel {

// In seconds.
struct PredictedTime {
  double computing = 0;
  double waiting = 0;  // for collectives, beyond that

  double all() const { return computing + waiting; }
};

// Of one run of a segment after `partition`, in the order of its ops: one unit computes, each
// communication stream runs what was started on it in that order, and a wait ends when that has
// ended. A collective without a stream is waited for where it stands. Transfers take no time. Fails
// with a diagnostic if the program of collectives has no grid.
mlir::FailureOr<PredictedTime> predictedTime(mlir::func::FuncOp segment);

// The same piece by piece: what a segment does up to each transfer to or from another program, and
// behind the last. What it waits for there is not in it.
struct SegmentInterval {
  PredictedTime time;
  mlir::Operation* transfer = nullptr;  // that ends it: an oriel.send or an oriel.receive
};
mlir::FailureOr<std::vector<SegmentInterval>> predictedIntervals(mlir::func::FuncOp segment);

// Of all runs of a program's schedule; without one, of each segment once. Ranks of other programs
// are not waited for.
mlir::FailureOr<PredictedTime> predictedStepTime(mlir::ModuleOp program);

}  // namespace oriel

#endif  // ORIEL_PASSES_COST_SEGMENT_TIME_H_
