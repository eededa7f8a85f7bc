// Where values of a mixture of experts are 0: at all experts that a row does not choose.
//
//   ExpertZeros zeros(function);
//   for (const ExpertSum& sum : zeros.sums()) ..
#ifndef ORIEL_PASSES_RAISE_EXPERT_ZEROS_H_
#define ORIEL_PASSES_RAISE_EXPERT_ZEROS_H_

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/raise/dim_roles.h"
#include "passes/raise/match.h"

namespace oriel {

// Of a tensor in a mixture of experts a dimension has the number of one of the rows (batch,
// position), which are not of size 1, or is the experts, the choices of a row, or anything else.
inline constexpr int kExpertDim = -1, kChoiceDim = -2;

// What each row chooses: indices among all experts, none twice.
struct Choices {
  mlir::Value index;  // has the elements [r.., k], in order; of type i64
  llvm::SmallVector<int64_t> rows;
  int64_t count = 0;  // k
  int64_t experts = 0;

  friend bool operator==(const Choices& a, const Choices& b) {
    return a.index == b.index && a.rows == b.rows && a.count == b.count && a.experts == b.experts;
  }
};

// A value that is the same, and has no derivative, at experts that a row does not choose; with a
// dimension for choices, at experts that are not this choice.
struct ChosenOnly {
  enum Elsewhere { kZero, kLowest, kFalse, kTrue };  // kLowest: e to it is 0
  Choices choices;
  DimRoles roles;
  Elsewhere elsewhere = kZero;
  bool isOneHot = false;  // true, or 1, at choices
  // What has the elements [r.., k] that the value has at choices, if it is anywhere.
  mlir::Value weight;
};

// An op that sums over experts what is 0 at those that are not chosen: a sum over that dimension, a
// product that sums over it, or a linear layer of experts merged with what they give.
struct ExpertSum {
  mlir::Operation* op;
  mlir::Value summed;  // the operand; of a linear layer, what is merged
};

class ExpertZeros {
 public:
  explicit ExpertZeros(mlir::func::FuncOp function);

  // What is known of the value; null: nothing.
  const ChosenOnly* of(mlir::Value value) const {
    auto known = known_.find(value);
    return known == known_.end() ? nullptr : &known->second;
  }
  llvm::ArrayRef<ExpertSum> sums() const { return sums_; }

 private:
  void visit(mlir::Operation* op);
  void visitProduct(ir::MatmulOp op);
  void visitSum(ir::ReduceSumOp op);
  void visitReshape(ir::ReshapeOp op);
  std::optional<ChosenOnly> result(mlir::Operation* op) const;
  std::optional<ChosenOnly> ofProduct(ir::MulOp op) const;
  std::optional<ChosenOnly> ofSelect(ir::SelectOp op) const;
  std::optional<ChosenOnly> ofComparison(mlir::Operation* op) const;
  // Of an operand that is `elsewhere`, with the roles of the op's result.
  std::optional<ChosenOnly> ofOperand(mlir::Operation* op, unsigned operand,
                                      ChosenOnly::Elsewhere elsewhere) const;

  llvm::DenseMap<mlir::Value, ChosenOnly> known_;
  llvm::SmallVector<ExpertSum> sums_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_RAISE_EXPERT_ZEROS_H_
