#include "driver/start_from.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "driver/console.h"
#include "llvm/Support/FileSystem.h"
#include "mlir/Parser/Parser.h"
#include "runtime/base/status.h"

namespace oriel::driver {

absl::StatusOr<StartFrom> parseStartFrom(const std::string& request,
                                         const std::vector<std::string>& phases,
                                         const std::vector<std::string>& passesAfter,
                                         const DumpRequest& dump) {
  const size_t colon = request.find(':');
  if (colon == std::string::npos || colon + 1 == request.size()) {
    return usageError(absl::StrCat("--start-from: '", request,
                                   "' is not PHASE:FILE, such as propagate:propagate.mlir"));
  }
  StartFrom start{request.substr(0, colon), request.substr(colon + 1)};
  ORIEL_RETURN_IF_ERROR(checkPhase("start-from", start.phase, phases));
  if (start.phase == phases.back()) {
    return usageError(absl::StrCat("--start-from: behind ", start.phase, " there is no phase"));
  }
  const auto last = std::find(phases.begin(), phases.end(), start.phase);
  auto check = [&](const std::string& flag, const std::string& phase) {
    if (std::find(phases.begin(), last + 1, phase) == last + 1) return absl::OkStatus();
    return usageError(absl::StrCat("--", flag, ": '", phase, "' does not run, since --start-from=",
                                   start.phase, " begins behind it"));
  };
  ORIEL_RETURN_IF_ERROR(check("stop-after", dump.stopAfter));
  for (const std::string& phase : dump.after) ORIEL_RETURN_IF_ERROR(check("dump-after", phase));
  for (const std::string& passes : passesAfter) {
    const std::string phase = passes.substr(0, passes.find(':'));
    if (phase != start.phase) ORIEL_RETURN_IF_ERROR(check("passes-after", phase));
  }
  return start;
}

absl::StatusOr<mlir::OwningOpRef<mlir::ModuleOp>> readStart(mlir::MLIRContext& context,
                                                            const StartFrom& start) {
  if (!llvm::sys::fs::exists(start.file)) {
    return absl::NotFoundError(absl::StrCat(
        "--start-from: ", start.file, " does not exist; `oriel compile .. --dump-after=",
        start.phase, " --dump-locations --dump-dir DIR` writes such files"));
  }
  mlir::OwningOpRef<mlir::ModuleOp> module =
      mlir::parseSourceFile<mlir::ModuleOp>(start.file, &context);
  if (!module) return alreadyReported();
  return module;
}

}  // namespace oriel::driver
