#include "passes/strategize/strategy_pass.h"

#include <utility>

#include "passes/strategy/strategy_reader.h"

namespace oriel {

mlir::LogicalResult readStrategyOption(mlir::ModuleOp module, const std::string& path,
                                       std::optional<Strategy>& strategy) {
  if (strategy) return mlir::success();
  absl::StatusOr<Strategy> read = readStrategy(path);
  if (!read.ok()) return module.emitError(std::string(read.status().message()));
  strategy = *std::move(read);
  return mlir::success();
}

}  // namespace oriel
