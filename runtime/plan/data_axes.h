// Which ranks have different samples.
#ifndef ORIEL_RUNTIME_PLAN_DATA_AXES_H_
#define ORIEL_RUNTIME_PLAN_DATA_AXES_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// The atomic axes that cut the first dimension of a program's inputs, outermost
// first: ranks that differ on other axes only read the same samples. None for a
// program without inputs. InvalidArgument, naming the inputs, if they differ,
// or another dimension is cut, too.
absl::StatusOr<std::vector<std::string>> DataAxes(const plan::Program& program);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_PLAN_DATA_AXES_H_
