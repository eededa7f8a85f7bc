// What differs between two compiled plans, for who compares two strategies of a model.
#ifndef ORIEL_DRIVER_PLAN_DIFF_H_
#define ORIEL_DRIVER_PLAN_DIFF_H_

#include <string>

#include "absl/status/statusor.h"
#include "driver/comparison.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// Of verified plans, which are called `nameA` and `nameB`. Memory, communication and launches are
// those of the ranks that have most of them; where both plans have as many grids, more than one,
// also of each grid. Predicted times are there if one of the plans has any. FailedPrecondition if
// the programs of a plan wait for each other for ever.
absl::StatusOr<Comparison> comparePlans(const plan::Plan& a, const std::string& nameA,
                                        const plan::Plan& b, const std::string& nameB);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PLAN_DIFF_H_
