#include "ir/oriel/attach_work.h"
#include "ir/oriel/fused_registration.h"
#include "ir/oriel/oriel.h"
#include "ir/oriel/oriel_dialect.cc.inc"
#include "llvm/ADT/TypeSwitch.h"
#include "mlir/IR/DialectImplementation.h"

#define GET_ATTRDEF_CLASSES
#include "ir/oriel/oriel_attributes.cc.inc"

#define GET_OP_CLASSES
#include "ir/oriel/oriel_ops.cc.inc"

namespace oriel::ir {

void OrielDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "ir/oriel/oriel_attributes.cc.inc"
      >();
  addOperations<
#define GET_OP_LIST
#include "ir/oriel/oriel_ops.cc.inc"
      >();
  addFusedOps(*this);
  attachWork(*this);
}

mlir::Operation* OrielDialect::materializeConstant(mlir::OpBuilder& builder, mlir::Attribute value,
                                                   mlir::Type type, mlir::Location loc) {
  auto elements = llvm::dyn_cast<mlir::ElementsAttr>(value);
  if (!elements || elements.getShapedType() != type) return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

}  // namespace oriel::ir
