// `--start-from PHASE:FILE`: a compilation that goes on from what a phase left, as text.
#ifndef ORIEL_DRIVER_START_FROM_H_
#define ORIEL_DRIVER_START_FROM_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "driver/phase_dump.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/OwningOpRef.h"

namespace oriel::driver {

struct StartFrom {
  std::string phase;  // the last that does not run
  std::string file;   // MLIR, as --dump-after writes it
};

// InvalidArgument for a request that is not PHASE:FILE, for an unknown phase, for the last of them,
// which leaves no module, and where passes (each PHASE:PIPELINE) or the dump ask for what does not
// run. Passes behind the phase itself do.
absl::StatusOr<StartFrom> parseStartFrom(const std::string& request,
                                         const std::vector<std::string>& phases,
                                         const std::vector<std::string>& passesAfter,
                                         const DumpRequest& dump);

// NotFound if there is no such file. An error in its text is a diagnostic, which has been printed.
absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> readStart(mlir::MLIRContext& context,
                                                            const StartFrom& start);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_START_FROM_H_
