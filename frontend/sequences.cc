#include "frontend/sequences.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace oriel {

using mlir::UnrealizedConversionCastOp;

bool isSequence(mlir::Value value) { return llvm::isa<mlir::TupleType>(value.getType()); }

mlir::ValueRange tensorsOf(mlir::Value sequence) {
  return sequence.getDefiningOp<UnrealizedConversionCastOp>().getInputs();
}

mlir::Value makeSequence(mlir::OpBuilder& builder, mlir::Location location,
                         llvm::ArrayRef<mlir::Value> tensors) {
  mlir::Type type =
      mlir::TupleType::get(builder.getContext(), mlir::ValueRange(tensors).getTypes());
  return UnrealizedConversionCastOp::create(builder, location, type, tensors).getResult(0);
}

void removeSequences(mlir::Block& block) {
  llvm::SetVector<mlir::Operation*> tensors;
  const llvm::SmallVector<UnrealizedConversionCastOp> sequences(
      block.getOps<UnrealizedConversionCastOp>());
  for (UnrealizedConversionCastOp sequence : llvm::reverse(sequences)) {
    for (mlir::Value tensor : sequence.getInputs()) {
      if (mlir::Operation* producer = tensor.getDefiningOp()) tensors.insert(producer);
    }
    sequence.erase();
  }
  for (mlir::Operation* producer : tensors) {
    if (mlir::isOpTriviallyDead(producer)) producer->erase();
  }
}

}  // namespace oriel
