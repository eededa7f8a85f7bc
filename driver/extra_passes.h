// `--passes-after PHASE:PIPELINE`: passes that the user adds to a compilation.
#ifndef ORIEL_DRIVER_EXTRA_PASSES_H_
#define ORIEL_DRIVER_EXTRA_PASSES_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel::driver {

class ExtraPasses {
 public:
  // `phases` are all there are, the last of which leaves no module. InvalidArgument for a request
  // that is not PHASE:PIPELINE, for an unknown phase and for what MLIR can't parse as a pipeline.
  static absl::StatusOr<ExtraPasses> create(const std::vector<std::string>& requests,
                                            const std::vector<std::string>& phases);

  // Runs those of a phase, in the order of the command line: OP(PASSES) on each such op of the
  // module, and of the modules that pipeline stages have; it is an error if there is none. An error
  // without a message of its own is a diagnostic, which has been printed.
  mlir::LogicalResult runAfter(const std::string& phase, mlir::ModuleOp module) const;

 private:
  struct Request {
    std::string phase, pipeline;
  };
  std::vector<Request> requests_;
};

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_EXTRA_PASSES_H_
