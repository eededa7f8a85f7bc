// oriel-run --measure: ranks that measure the machine instead of training.
#ifndef ORIEL_RUNTIME_LAUNCH_RUN_MEASURE_H_
#define ORIEL_RUNTIME_LAUNCH_RUN_MEASURE_H_

#include <string>

#include "absl/status/statusor.h"
#include "runtime/launch/options.h"

namespace oriel::runtime {

// Lines of JSON: the machine, then its measurements (runtime/measure/measure.h). Ranks are threads
// of this process, options.ranks of them or one per core; or, under mpirun, its processes, of which
// the first gets the text and the others none.
absl::StatusOr<std::string> RunMeasure(const RunOptions& options);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_RUN_MEASURE_H_
