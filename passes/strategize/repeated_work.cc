#include "passes/strategize/repeated_work.h"

#include <cmath>

#include "ir/interfaces/work.h"
#include "ir/oriel/oriel.h"

namespace oriel {

void RepeatedWork::add(mlir::Operation* op, int64_t ranks, bool isSplit) {
  const double work = ir::workFlops(op);
  all_ += work;
  if (isSplit) return;
  repeated_ += work;
  if (work <= most_) return;
  most_ = work;
  largest_ = op;
  ranks_ = ranks;
}

long RepeatedWork::percent() const { return std::lround(100 * share()); }

int64_t ranksWithParameter(const Grid& grid, mlir::Operation* op, llvm::StringRef axis,
                           const SegmentValues& values) {
  for (mlir::Value operand : op->getOperands()) {
    auto parameter = values.parameters.find(operand);
    if (parameter == values.parameters.end()) continue;
    return grid.meshAxisSize(axis, ir::ParameterOp(parameter->second).getModule());
  }
  return 1;
}

}  // namespace oriel
