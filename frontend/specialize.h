// The passes between import and raise. See passes.td.
#ifndef ORIEL_FRONTEND_SPECIALIZE_H_
#define ORIEL_FRONTEND_SPECIALIZE_H_

#include <memory>

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace oriel {

#define GEN_PASS_DECL
#define GEN_PASS_REGISTRATION
#include "frontend/passes.h.inc"

}  // namespace oriel

#endif  // ORIEL_FRONTEND_SPECIALIZE_H_
