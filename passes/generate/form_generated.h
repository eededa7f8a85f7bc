// What the pass oriel-form-generated does, for who wants to know what a program would take with it.
#ifndef ORIEL_PASSES_GENERATE_FORM_GENERATED_H_
#define ORIEL_PASSES_GENERATE_FORM_GENERATED_H_

#include "mlir/IR/BuiltinOps.h"

namespace oriel {

// Joins chains of pointwise ops of a program to launches of generated code (passes.td). Needs the
// exec dialect and ir::registerScalarModels.
void formGenerated(mlir::ModuleOp program);

}  // namespace oriel

#endif  // ORIEL_PASSES_GENERATE_FORM_GENERATED_H_
