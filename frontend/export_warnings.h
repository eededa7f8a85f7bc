// What an exporter, or an optimizer behind it, has done to a model that training would feel.
#ifndef ORIEL_FRONTEND_EXPORT_WARNINGS_H_
#define ORIEL_FRONTEND_EXPORT_WARNINGS_H_

#include "frontend/float_types.h"
#include "frontend/graph.h"
#include "frontend/model_file.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "mlir/IR/Location.h"

namespace oriel {

// Warns, each kind once, of parameters that were merged, folded or copied, and of tensors that look
// like parameters and are none: single numbers, and weights that are `Constant` nodes. `isSetting`
// says which initializers are operands that an op takes for no weights. Notes what is f16 and bf16
// where `floats` widens it.
void warnOfExport(mlir::Location location, const ModelFile& model, const Graph& graph,
                  FloatTypes floats, llvm::function_ref<bool(llvm::StringRef)> isSetting);

}  // namespace oriel

#endif  // ORIEL_FRONTEND_EXPORT_WARNINGS_H_
