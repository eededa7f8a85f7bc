// The collectives of a segment, started and waited for.
#ifndef ORIEL_PASSES_OVERLAP_SEGMENT_OVERLAP_H_
#define ORIEL_PASSES_OVERLAP_SEGMENT_OVERLAP_H_

#include <cstdint>

#include "ir/oriel/oriel.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/overlap_level.h"

namespace oriel {

// The communication streams of a program: one for each list of axes, numbered from 1 in the order
// in which they are asked for.
class CommunicationStreams {
 public:
  int64_t of(mlir::ArrayAttr axes) {
    return numbers_.try_emplace(axes, numbers_.size() + 1).first->second;
  }

 private:
  llvm::DenseMap<mlir::ArrayAttr, int64_t> numbers_;
};

// Receives stand before their first users, sends behind what they send. Collectives are started on
// their streams and waited for, in the order of list_scheduler.h; those of one kind that only the
// end of the segment needs, and those that only bring parameters, travel in buckets.
void overlapSegment(mlir::func::FuncOp segment, const Grid& grid, const OverlapSizes& sizes,
                    CommunicationStreams& streams);

}  // namespace oriel

#endif  // ORIEL_PASSES_OVERLAP_SEGMENT_OVERLAP_H_
