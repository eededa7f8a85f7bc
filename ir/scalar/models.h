// Models of the interfaces of scalar.td, by the file that has them; registerScalarModels attaches
// all.
#ifndef ORIEL_IR_SCALAR_MODELS_H_
#define ORIEL_IR_SCALAR_MODELS_H_

#include "mlir/IR/MLIRContext.h"

namespace oriel::ir {

void attachActivationModels(mlir::MLIRContext* context);
void attachReductionModels(mlir::MLIRContext* context);

}  // namespace oriel::ir

#endif  // ORIEL_IR_SCALAR_MODELS_H_
