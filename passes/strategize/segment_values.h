// What the values of a segment come from.
#ifndef ORIEL_PASSES_STRATEGIZE_SEGMENT_VALUES_H_
#define ORIEL_PASSES_STRATEGIZE_SEGMENT_VALUES_H_

#include "ir/oriel/oriel.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace oriel {

struct SegmentValues {
  llvm::DenseMap<mlir::Value, ir::ParameterOp> parameters;  // by the argument that stands for it
  // Inputs, what other segments and programs have made, and what depends on one.
  llvm::DenseSet<mlir::Value> fromInputs;
  // Parameters, what other segments and programs have made, and what depends on one.
  llvm::DenseSet<mlir::Value> fromParameters;
};

// Of a segment of one block. Arguments without a good role are left out.
SegmentValues readValues(mlir::func::FuncOp segment);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_SEGMENT_VALUES_H_
