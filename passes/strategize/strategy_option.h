// The strategy of a pass: given by the compiler, or read from the file that an option names.
#ifndef ORIEL_PASSES_STRATEGIZE_STRATEGY_OPTION_H_
#define ORIEL_PASSES_STRATEGIZE_STRATEGY_OPTION_H_

#include <optional>
#include <string>

#include "mlir/IR/BuiltinOps.h"
#include "passes/strategize/strategy.h"

namespace oriel {

// Reads the file, unless there is a strategy. Fails with a diagnostic at the module.
mlir::LogicalResult readStrategyOption(mlir::ModuleOp module, const std::string& path,
                                       std::optional<Strategy>& strategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_STRATEGY_OPTION_H_
