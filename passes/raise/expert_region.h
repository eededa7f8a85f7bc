// What is computed for every expert, computed for those that each row chooses.
//
//   ExpertRegion region(zeros, choices, builder);
//   Value few = region.convert(all, roles);    // [r.., e, f..] -> [r.., k, f..]
//   if (!few) region.undo();
#ifndef ORIEL_PASSES_RAISE_EXPERT_REGION_H_
#define ORIEL_PASSES_RAISE_EXPERT_REGION_H_

#include <map>

#include "passes/raise/expert_zeros.h"

namespace oriel {

class ExpertRegion {
 public:
  // Ops are made where the builder is: behind all that is converted.
  ExpertRegion(const ExpertZeros& zeros, const Choices& choices, mlir::OpBuilder builder);

  // Of a value whose dimensions have these roles: its elements for the experts that each row
  // chooses, as [r.., k, f..], features in the value's order. Rows and choices on which it does
  // not depend have size 1. Null where it can't be made without all experts.
  mlir::Value convert(mlir::Value value, const DimRoles& roles);

  // A matrix of a weight for each expert, [e, depth, columns] or, transposed, [e, columns, depth],
  // times what was converted, [r.., k, depth]: [r.., k, columns].
  mlir::Value multiply(mlir::Location loc, mlir::Value rows, mlir::Value weight, bool transposed);

  // Whether a product with weights is among what was made, and used.
  bool hasProducts() const;
  // Erases what was made.
  void undo();

  // For what is made of what was converted: notes it for `undo`.
  mlir::OpBuilder& builder() { return builder_; }
  mlir::Value made(mlir::Operation* op);
  mlir::Value reshape(mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);

 private:
  struct Converted {
    DimRoles roles;
    mlir::Value value;
  };

  mlir::Value convertNew(mlir::Value value, const DimRoles& roles);
  mlir::Value convertOp(ir::TransposeOp op, const DimRoles& roles);
  mlir::Value convertOp(ir::ReshapeOp op, const DimRoles& roles);
  mlir::Value convertOp(ir::BroadcastOp op, const DimRoles& roles);
  mlir::Value convertOp(ir::SliceOp op, const DimRoles& roles);
  mlir::Value convertOp(ir::MatmulOp op, const DimRoles& roles);
  mlir::Value convertOp(ir::LinearOp op, const DimRoles& roles);
  mlir::Value convertOp(ir::RmsNormOp op, const DimRoles& roles);
  mlir::Value convertPointwise(mlir::Operation* op, const DimRoles& roles);
  // A linear layer of all experts' columns, which are split off its last dimension.
  mlir::Value convertColumns(ir::LinearOp op, const DimRoles& rows, int64_t columns);

  // A value that is the same for all experts, or for all rows, or of which each row has a number
  // for each expert.
  mlir::Value layOut(mlir::Value value, const DimRoles& roles);
  mlir::Value gather(mlir::Value value, const DimRoles& roles);
  mlir::Value pickNumbers(mlir::Value value, const DimRoles& roles);

  // Columns [from, to) of the last dimension, of products by columns of their weights.
  mlir::Value sliceColumns(mlir::Value value, int64_t from, int64_t to);
  bool isOfProducts(mlir::Value value);

  // [r.., k, ..], where the operand's sizes of these are kept, and features `shape`.
  mlir::Value withFeatures(mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> shape);
  llvm::ArrayRef<int64_t> featuresOf(mlir::Value converted) const;
  mlir::Value transpose(mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> permutation);
  // The dimensions in this order, and then with this shape.
  mlir::Value arrange(mlir::Value value, llvm::ArrayRef<int64_t> order,
                      llvm::ArrayRef<int64_t> shape);
  mlir::Value slice(mlir::Location loc, mlir::Value value, llvm::ArrayRef<int64_t> starts,
                    llvm::ArrayRef<int64_t> limits, llvm::ArrayRef<int64_t> strides);

  const ExpertZeros& zeros_;
  const Choices& choices_;
  const int64_t rowRank_;
  mlir::OpBuilder builder_;
  mlir::Value choice_;  // [r.., k]
  llvm::DenseMap<mlir::Value, Converted> converted_;
  int depth_ = 0;  // of `convert`
  llvm::SmallVector<mlir::Operation*> made_;
  llvm::DenseMap<mlir::Value, bool> ofProducts_;
  std::map<std::pair<mlir::Operation*, int64_t>, mlir::Value> sliced_;  // by the first column
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_EXPERT_REGION_H_
