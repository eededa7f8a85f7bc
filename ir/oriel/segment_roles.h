// The roles of all arguments and results of one segment function.
#ifndef ORIEL_IR_ORIEL_SEGMENT_ROLES_H_
#define ORIEL_IR_ORIEL_SEGMENT_ROLES_H_

#include <map>
#include <optional>
#include <string>

#include "ir/oriel/segment.h"
#include "llvm/ADT/SmallVector.h"

namespace oriel::ir {

// "optimizer_state 'p0' exp_avg"
std::string roleText(const ValueRole& role);

// Fails with a diagnostic for an origin that is no number of an op: tables are made by them.
mlir::LogicalResult checkOrigins(mlir::func::FuncOp segment);

class SegmentRoles {
 public:
  SegmentRoles() = default;
  // Fails with a diagnostic where the function has not one block, and where an argument or result
  // has no role or the role of another.
  static mlir::FailureOr<SegmentRoles> read(mlir::func::FuncOp segment);

  mlir::func::FuncOp function() const { return function_; }
  // In order.
  llvm::ArrayRef<ValueRole> arguments() const { return arguments_; }
  llvm::ArrayRef<ValueRole> results() const { return results_; }
  // Fails with a diagnostic where a result of these kinds is a new value of what no argument holds.
  mlir::LogicalResult checkReplaces(llvm::ArrayRef<ValueKind> kinds) const;
  // Fails with a diagnostic where an argument of this kind is no result of `earlier`.
  mlir::LogicalResult checkReads(ValueKind kind, const SegmentRoles& earlier) const;
  // Fails with a diagnostic where a result is a new parameter or optimizer state, which only
  // @update makes.
  mlir::LogicalResult checkStepsNothing() const;
  // The number of the one with the role.
  std::optional<unsigned> findArgument(const ValueRole& role) const;
  std::optional<unsigned> findResult(const ValueRole& role) const;

 private:
  mlir::func::FuncOp function_;
  llvm::SmallVector<ValueRole> arguments_, results_;
  std::map<ValueRole, unsigned> argumentNumbers_, resultNumbers_;
};

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_SEGMENT_ROLES_H_
