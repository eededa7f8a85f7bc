#include "passes/stage/blocks.h"

#include "ir/oriel/location.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/strategize/programs.h"

namespace oriel {

Blocks::Blocks(mlir::ModuleOp program) {
  for (mlir::ModuleOp module = program; module;
       module = module->getParentOfType<mlir::ModuleOp>()) {
    auto blocks = module->getAttrOfType<mlir::DenseI64ArrayAttr>(kBlocksAttr);
    if (blocks) byOrigin_ = blocks.asArrayRef();
  }
}

int64_t Blocks::of(mlir::Operation* op) const {
  const int64_t origin = ir::originOf(op);
  const bool known = origin >= 0 && origin < static_cast<int64_t>(byOrigin_.size());
  return known ? byOrigin_[origin] : kNone;
}

}  // namespace oriel
