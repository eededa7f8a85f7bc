// ONNX's sequences of tensors, while a model is imported.
//
// Which tensors a sequence has is known when a model is compiled. It is a value of the type tuple,
// whose producer, a builtin cast, holds them; nothing of it is left in an imported module.
#ifndef ORIEL_FRONTEND_SEQUENCES_H_
#define ORIEL_FRONTEND_SEQUENCES_H_

#include "mlir/IR/Block.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/ValueRange.h"

namespace oriel {

bool isSequence(mlir::Value value);
// The tensors of a sequence, in order.
mlir::ValueRange tensorsOf(mlir::Value sequence);
mlir::Value makeSequence(mlir::OpBuilder& builder, mlir::Location location,
                         llvm::ArrayRef<mlir::Value> tensors);
// Removes sequences from a block that no op reads one of, and of their tensors those that nothing
// else reads.
void removeSequences(mlir::Block& block);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_SEQUENCES_H_
