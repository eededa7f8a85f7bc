// Work with parameters that each rank of a mesh axis does, because the axis does not split it.
#ifndef ORIEL_PASSES_STRATEGIZE_REPEATED_WORK_H_
#define ORIEL_PASSES_STRATEGIZE_REPEATED_WORK_H_

#include <cstdint>

#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Operation.h"
#include "passes/strategize/grid.h"
#include "passes/strategize/segment_values.h"

namespace oriel {

// In floating-point operations of products and attention.
class RepeatedWork {
 public:
  // `ranks` of the axis share the op, or each of them does all of it.
  void add(mlir::Operation* op, int64_t ranks, bool isSplit);

  // Of all that was added: 0 to 1, and 0 of nothing.
  double share() const { return all_ > 0 ? repeated_ / all_ : 0; }
  long percent() const;
  // Of what is not split; null for none.
  mlir::Operation* largest() const { return largest_; }
  int64_t ranksOfLargest() const { return ranks_; }

 private:
  double all_ = 0, repeated_ = 0, most_ = 0;
  mlir::Operation* largest_ = nullptr;
  int64_t ranks_ = 1;
};

// Ranks along a mesh axis of the module whose parameter the op uses; 1 for an op without.
int64_t ranksWithParameter(const Grid& grid, mlir::Operation* op, llvm::StringRef axis,
                           const SegmentValues& values);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_REPEATED_WORK_H_
