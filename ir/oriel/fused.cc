#include "ir/oriel/fused.h"

#include "ir/oriel/fused_registration.h"

#define GET_OP_CLASSES
#include "ir/oriel/fused_ops.cc.inc"

namespace oriel::ir {

namespace {

template <typename... Ops>
void insert(mlir::Dialect& dialect) {
  (mlir::RegisteredOperationName::insert<Ops>(dialect), ...);
}

}  // namespace

void addFusedOps(mlir::Dialect& dialect) {
  insert<
#define GET_OP_LIST
#include "ir/oriel/fused_ops.cc.inc"
      >(dialect);
  attachLists(dialect.getContext());
  attachFusions(dialect.getContext());
}

}  // namespace oriel::ir
