// The work of an op by the shapes that its time depends on, for the cost model.
//
//   if (auto op = llvm::dyn_cast<oriel::ir::WorkOpInterface>(operation)) op.getWork().products ...
#ifndef ORIEL_IR_INTERFACES_WORK_H_
#define ORIEL_IR_INTERFACES_WORK_H_

#include <cstdint>
#include <optional>

#include "ir/interfaces/interfaces.h"

namespace oriel::ir {

// `count` products [rows x depth] * [depth x columns].
struct MatrixProduct {
  int64_t count = 1;
  int64_t rows = 0;
  int64_t columns = 0;
  int64_t depth = 0;

  double flops() const;  // a multiply-add counts as two
};

// softmax(query key^T) value for each of batch x heads, with no scores in memory.
struct AttentionWork {
  int64_t batch = 0, heads = 0, queries = 0, keys = 0;
  int64_t groups = 0;                 // heads of key and value
  int64_t depth = 0, valueDepth = 0;  // of a query and a key, of a value
  bool isCausal = false;
  int64_t window = 0;       // most keys that a query sees; 0: any number
  bool isGradient = false;  // of all three operands

  // Of what is not masked, which is about half where it is causal. A gradient computes the
  // scores again.
  double flops() const;
  // Likewise, but a gradient is twice the forward (Narayanan et al. 2021 count so).
  double modelFlops() const;
};

struct Work {
  llvm::SmallVector<MatrixProduct, 3> products;
  std::optional<AttentionWork> attention;
  mlir::Type operandType = {};  // elements of what is multiplied; null: those of the first operand
};

// Floating-point operations of an op's products and attention; 0 for other ops.
double workFlops(mlir::Operation* op);
// Those that a model FLOPs utilization counts: nothing that is computed again.
double modelFlops(mlir::Operation* op);

}  // namespace oriel::ir

#include "ir/interfaces/work.h.inc"

#endif  // ORIEL_IR_INTERFACES_WORK_H_
