// The block that an op is in, in any phase behind assign-stages.
#ifndef ORIEL_PASSES_STAGE_BLOCKS_H_
#define ORIEL_PASSES_STAGE_BLOCKS_H_

#include <cstdint>

#include "llvm/ADT/ArrayRef.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel {

// By `origin`, so backward ops, local ops and collectives are in the block of the forward op that
// they come from. Valid as long as the module's attribute stays.
class Blocks {
 public:
  static constexpr int64_t kNone = -1;

  // Of a program, or of the module. Without `oriel.blocks` there are none.
  explicit Blocks(mlir::ModuleOp program);

  // kNone for what is between blocks.
  int64_t of(mlir::Operation* op) const;

 private:
  llvm::ArrayRef<int64_t> byOrigin_;
};

}  // namespace oriel

#endif  // ORIEL_PASSES_STAGE_BLOCKS_H_
