// Adds and removes arguments and results of a segment.
#ifndef ORIEL_PASSES_REMAT_SEGMENT_EDIT_H_
#define ORIEL_PASSES_REMAT_SEGMENT_EDIT_H_

#include <map>

#include "ir/oriel/segment.h"

namespace oriel {

// Changes what the block has at once, and the function's type and attributes in finish(), all in
// one: MLIR keeps every list of attributes that ever was.
class SegmentEdit {
 public:
  static mlir::FailureOr<SegmentEdit> create(mlir::func::FuncOp segment);

  mlir::func::FuncOp segment() { return segment_; }
  // The argument with this role; null if there is none.
  mlir::BlockArgument find(const ir::ValueRole& role);
  // The same, made where it is missing, as the last one, with the sharding (null: none).
  mlir::Value argument(const ir::ValueRole& role, mlir::Type type, mlir::Location loc,
                       ir::ShardingAttr sharding);
  void addResult(mlir::Value value, const ir::ValueRole& role, ir::ShardingAttr sharding);
  // Of stash values, the arguments that nothing uses, and the results that `isDropped` names.
  void erase(llvm::function_ref<bool(const ir::ValueRole&)> isDropped);
  // To be called once, last.
  void finish();

 private:
  explicit SegmentEdit(mlir::func::FuncOp segment) : segment_(segment) {}

  mlir::DictionaryAttr attributes(const ir::ValueRole& role, ir::ShardingAttr sharding) const;

  mlir::func::FuncOp segment_;
  llvm::SmallVector<ir::ValueRole> argumentRoles_, resultRoles_;
  llvm::SmallVector<mlir::DictionaryAttr> argumentAttributes_, resultAttributes_;
  std::map<ir::ValueRole, unsigned> places_;  // of arguments
};

}  // namespace oriel

#endif  // ORIEL_PASSES_REMAT_SEGMENT_EDIT_H_
