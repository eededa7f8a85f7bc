// In which types the importer computes with the floats of a file.
#ifndef ORIEL_FRONTEND_FLOAT_TYPES_H_
#define ORIEL_FRONTEND_FLOAT_TYPES_H_

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"

namespace oriel {

// A model that was exported in f16 or bf16 is trained like one in f32: what an initializer, an
// input or a cast has in 16 bits is f32, and the recipe's `precision` alone decides what is
// computed in fewer. So weights have f32 masters, a norm that casts to f32 and back is the norm of
// an f32 export, and the loss is f32.
class FloatTypes {
 public:
  static FloatTypes wide() { return FloatTypes(true); }
  // As the file has them: for tests of single ops.
  static FloatTypes asStored() { return FloatTypes(false); }

  bool isWide() const { return isWide_; }
  bool widens(mlir::Type element) const { return isWide_ && (element.isF16() || element.isBF16()); }
  mlir::Type of(mlir::Type element) const;
  mlir::RankedTensorType of(mlir::RankedTensorType type) const;
  // The same numbers, but for the lowest and the largest that a narrow type has: masks and limits
  // are made of them, and they become those of f32, as in an export in f32. Null for null.
  mlir::DenseElementsAttr of(mlir::DenseElementsAttr constant) const;

 private:
  explicit FloatTypes(bool isWide) : isWide_(isWide) {}
  bool isWide_;
};

}  // namespace oriel

#endif  // ORIEL_FRONTEND_FLOAT_TYPES_H_
