// Ops that passes make of others, for kernels that do more at once (fused.td).
#ifndef ORIEL_IR_ORIEL_FUSED_H_
#define ORIEL_IR_ORIEL_FUSED_H_

#include "ir/interfaces/fusion.h"
#include "ir/interfaces/list.h"
#include "ir/oriel/oriel.h"

#define GET_OP_CLASSES
#include "ir/oriel/fused_ops.h.inc"

namespace oriel::ir {

// Lets ops of oriel.h implement ListedOpInterface.
void attachLists(mlir::MLIRContext* context);
// The cast of result 0 that a list of such ops does, too; null for none.
CastOp roundingOf(ListedOpInterface op);
// Lets ops of oriel.h implement the interfaces of fusion.h.
void attachFusions(mlir::MLIRContext* context);
void attachNorms(mlir::MLIRContext* context);

// Whether libraries apply the activation, or its derivative, to a product: of others, a
// `linear_activation` would be two launches in any case.
bool isEpilogueActivation(llvm::StringRef kind);

// The loss of each row, 0 of ignored ones, of each row's logsumexp and its label's logit.
mlir::Value rowLosses(mlir::OpBuilder& builder, mlir::Location loc, mlir::Value logsumexp,
                      mlir::Value labelLogit, mlir::Value labels, int64_t ignoreIndex,
                      int64_t origin);

// The results of a cross entropy (sum of losses, count, logsumexp) of each row's logsumexp and its
// label's logit.
llvm::SmallVector<mlir::Value> lossOfRows(mlir::OpBuilder& builder, mlir::Location loc,
                                          mlir::Value logsumexp, mlir::Value labelLogit,
                                          mlir::Value labels, int64_t ignoreIndex, int64_t origin);

}  // namespace oriel::ir

#endif  // ORIEL_IR_ORIEL_FUSED_H_
