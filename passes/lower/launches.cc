#include "passes/lower/launches.h"

#include "ir/exec/exec.h"
#include "ir/scalar/scalar.h"
#include "passes/cost/cluster_attribute.h"
#include "passes/generate/form_generated.h"

namespace oriel {

mlir::LogicalResult formLaunches(mlir::ModuleOp program, const LaunchForms& forms) {
  // In the order of the phase's passes (driver/pipelines.cc).
  if (failed(assignGradients(program))) return mlir::failure();
  // Masters of software whose allocator is modelled are whole.
  const bool ofOthers = softwareStackOf(program).memory.isCached;
  if (forms.fused && !ofOthers) keepRemainders(program);
  if (forms.fused) formFused(program);
  if (forms.generated) formGenerated(program);
  return mlir::success();
}

void registerLaunchDialects(mlir::DialectRegistry& registry) {
  registry.insert<exec::ExecDialect>();
  ir::registerScalarModels(registry);
}

}  // namespace oriel
