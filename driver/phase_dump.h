// `--dump-after`, `--stop-after` and `--dump-dir`.
#ifndef ORIEL_DRIVER_PHASE_DUMP_H_
#define ORIEL_DRIVER_PHASE_DUMP_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "mlir/IR/BuiltinOps.h"

namespace oriel::driver {

// InvalidArgument, naming the flag and the nearest of the phases, if there is no such phase.
absl::Status checkPhase(const std::string& flag, const std::string& phase,
                        const std::vector<std::string>& phases);

struct DumpRequest {
  std::vector<std::string> after;  // phases, or "all"
  std::string stopAfter;           // empty: run to the end
  std::string folder;              // empty: stdout
  bool locations = false;          // with the nodes that ops come from
};

// Prints what phases leave behind.
class PhaseDumper {
 public:
  // `phases` are all there are, in order. InvalidArgument, naming the nearest, for another one.
  static absl::StatusOr<PhaseDumper> create(const DumpRequest& request,
                                            std::vector<std::string> phases);

  // To be called after each phase: dumps its result if that was asked for.
  absl::Status after(const std::string& phase, mlir::ModuleOp module) const;
  // The same for a phase that leaves no module.
  absl::Status after(const std::string& phase, const std::string& text,
                     const std::string& extension) const;
  bool stopsAfter(const std::string& phase) const { return request_.stopAfter == phase; }

 private:
  PhaseDumper(DumpRequest request, std::vector<std::string> phases)
      : request_(std::move(request)), phases_(std::move(phases)) {}

  bool isWanted(const std::string& phase) const;

  DumpRequest request_;
  std::vector<std::string> phases_;
};

// The IR as text that oriel-opt reads again; with `locations`, also the nodes it came from.
std::string moduleText(mlir::ModuleOp module, bool locations);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PHASE_DUMP_H_
