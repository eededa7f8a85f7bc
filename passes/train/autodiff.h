// Reverse-mode differentiation of straight-line code, through DifferentiableOpInterface.
#ifndef ORIEL_PASSES_TRAIN_AUTODIFF_H_
#define ORIEL_PASSES_TRAIN_AUTODIFF_H_

#include "ir/oriel/location.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringRef.h"
#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Value.h"

namespace oriel {

// On backward ops: of what they compute, nothing but the gradient of a parameter is made.
inline constexpr llvm::StringLiteral kWeightGradient("oriel.weight_gradient");

// True for tensors of floats: only they have cotangents.
bool hasCotangent(mlir::Type type);

using ir::originOf;
// Does nothing to an op without the attribute.
void setOrigin(mlir::Operation* op, int64_t origin);

// The derivatives of some values of a block with respect to others.
//
// A value is active if it depends on a wanted value and an output depends on it, both
// through tensors of floats. Only ops with an active result get a backward, so nothing
// below the first wanted value is differentiated.
class Autodiff {
 public:
  // `outputs` and `wanted` are values that the block computes or has as arguments; its ops
  // have no regions.
  Autodiff(mlir::Block& block, llvm::ArrayRef<mlir::Value> outputs,
           llvm::ArrayRef<mlir::Value> wanted);

  bool isActive(mlir::Value value) const {
    return depends_.contains(value) && reaches_.contains(value);
  }
  bool isActive(mlir::Operation* op) const;

  // Builds the backward at the builder's insertion point, which may be in another function:
  // the new ops use values of the block directly (see isolateBlock). `seeds[i]` is the
  // cotangent of `outputs[i]`. Returns the cotangent of each wanted value, null where it is
  // zero. Those of slices of one value that lie side by side are joined (join_pads.h), others are
  // added. Each new op bears the origin of the op that it differentiates; the sum of several
  // cotangents of a value that of the value's producer or, for a block argument, of the
  // user that came last. Of the ops for one forward op, those that no cotangent of an operand
  // depends on but of wanted values, and of what is computed from these alone, bear
  // `oriel.weight_gradient`.
  // Fails, with a diagnostic, on an active op that can't be differentiated.
  mlir::FailureOr<llvm::SmallVector<mlir::Value>> build(mlir::OpBuilder& builder,
                                                        llvm::ArrayRef<mlir::Value> seeds) const;

 private:
  bool isWeight(mlir::Value value) const { return weights_.contains(value); }

  mlir::Block& block_;
  llvm::SmallVector<mlir::Value> outputs_, wanted_;
  llvm::DenseSet<mlir::Value> depends_;  // on a wanted value
  llvm::DenseSet<mlir::Value> reaches_;  // an output
  llvm::DenseSet<mlir::Value> weights_;  // depend on wanted values and constants only
};

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_AUTODIFF_H_
