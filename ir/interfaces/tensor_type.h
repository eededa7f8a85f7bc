// The type of a value that is a ranked tensor, as all values of ours are.
#ifndef ORIEL_IR_INTERFACES_TENSOR_TYPE_H_
#define ORIEL_IR_INTERFACES_TENSOR_TYPE_H_

#include <cstdint>

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"

namespace oriel::ir {

inline mlir::RankedTensorType tensorType(mlir::Value value) {
  return llvm::cast<mlir::RankedTensorType>(value.getType());
}
inline llvm::ArrayRef<int64_t> shapeOf(mlir::Value value) { return tensorType(value).getShape(); }
inline int64_t rankOf(mlir::Value value) { return tensorType(value).getRank(); }
inline mlir::Type elementOf(mlir::Value value) { return tensorType(value).getElementType(); }

}  // namespace oriel::ir

#endif  // ORIEL_IR_INTERFACES_TENSOR_TYPE_H_
