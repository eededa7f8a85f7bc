// Elements of tensors as they are stored, and as they are computed with.
#ifndef ORIEL_PASSES_GENERATE_ELEMENTS_H_
#define ORIEL_PASSES_GENERATE_ELEMENTS_H_

#include "mlir/IR/Builders.h"

namespace oriel {

// bf16 is stored as its bits, a boolean as a byte.
mlir::Type storedType(mlir::Type element);

class Elements {
 public:
  Elements(mlir::OpBuilder& builder, mlir::Location loc) : builder_(builder), loc_(loc) {}

  // What is stored as `element` in its compute type (ir::computeType), and back.
  mlir::Value load(mlir::Value stored, mlir::Type element);
  mlir::Value store(mlir::Value computed, mlir::Type element);
  // What another op finds in the value.
  mlir::Value rounded(mlir::Value computed, mlir::Type element);

 private:
  mlir::Value constant(mlir::Type type, int64_t value);
  mlir::Value widen(mlir::Value half);
  mlir::Value narrow(mlir::Value value);

  mlir::OpBuilder& builder_;
  const mlir::Location loc_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_ELEMENTS_H_
