// Makes a segment function whose arguments are asked for by role.
#ifndef ORIEL_PASSES_TRAIN_SEGMENT_BUILDER_H_
#define ORIEL_PASSES_TRAIN_SEGMENT_BUILDER_H_

#include <map>
#include <utility>

#include "ir/oriel/segment.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/ADT/StringMap.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

namespace oriel {

class SegmentBuilder {
 public:
  // Adds the function at the end of the module.
  SegmentBuilder(mlir::ModuleOp module, llvm::StringRef name, mlir::Location loc);

  mlir::OpBuilder& builder() { return builder_; }
  mlir::Block& block() { return *block_; }

  // The argument with this role; made, if there is none yet.
  mlir::Value argument(const ir::ValueRole& role, mlir::Type type, mlir::Location loc);
  // The argument with this role, or null.
  mlir::Value find(const ir::ValueRole& role) const;
  // The role of an argument of this segment.
  const ir::ValueRole& roleOf(mlir::BlockArgument argument) const;
  void addResult(mlir::Value value, const ir::ValueRole& role);
  bool hasResult(const ir::ValueRole& role) const;

  // Puts arguments and results in order - by kind, then by `rank` of their reference, then as
  // they were made - and adds the return. To be called once, last.
  mlir::func::FuncOp finish(const llvm::StringMap<unsigned>& rank);

 private:
  mlir::func::FuncOp function_;
  mlir::Block* block_;
  mlir::OpBuilder builder_;
  llvm::SmallVector<ir::ValueRole> argumentRoles_;  // by argument number
  std::map<ir::ValueRole, unsigned> arguments_;     // the other way round
  llvm::SmallVector<std::pair<mlir::Value, ir::ValueRole>> results_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_TRAIN_SEGMENT_BUILDER_H_
