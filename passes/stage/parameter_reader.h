// Which parameters the ops of a model read.
#ifndef ORIEL_PASSES_STAGE_PARAMETER_READER_H_
#define ORIEL_PASSES_STAGE_PARAMETER_READER_H_

#include "ir/oriel/oriel.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/stage/parts.h"

namespace oriel {

// The parameters that values are made of without any op of a block.
class ParameterReader {
 public:
  // Of a model's function before training, all of it at once: in a chain of sums of a value with
  // itself, the ways from an op to a parameter double with each.
  ParameterReader(mlir::func::FuncOp main, const ModelParts& model);

  // Each once, in the order in which the value's ops read them.
  llvm::ArrayRef<ir::ParameterOp> read(mlir::Value value) const;

 private:
  llvm::DenseMap<mlir::Value, llvm::SmallSetVector<ir::ParameterOp, 1>> parametersOf_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_PARAMETER_READER_H_
