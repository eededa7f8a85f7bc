// Inlines the functions of a model before import.
#ifndef ORIEL_FRONTEND_INLINE_FUNCTIONS_H_
#define ORIEL_FRONTEND_INLINE_FUNCTIONS_H_

#include <memory>

#include "frontend/model_file.h"
#include "frontend/op_registry.h"

namespace oriel {

// The model less its initializers' values, with its local functions inlined, and also the ops that
// ONNX defines by a function body and `registry` does not know. Inlined nodes take over the
// metadata of the call, so that they still say which module they come from.
llvm::Expected<std::unique_ptr<onnx::ModelProto>> inlineFunctions(const ModelFile& model,
                                                                  const OpRegistry& registry);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_INLINE_FUNCTIONS_H_
