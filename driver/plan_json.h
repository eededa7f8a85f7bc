// A plan's contents for scripts: `oriel inspect --json`. Keys are only ever added.
#ifndef ORIEL_DRIVER_PLAN_JSON_H_
#define ORIEL_DRIVER_PLAN_JSON_H_

#include <string>

#include "runtime/plan/plan.pb.h"
#include "runtime/plan/plan_stats.h"

namespace oriel::driver {

// One JSON object, of a verified plan. Sizes are bytes, counts of parameters are elements.
std::string planJson(const plan::Plan& plan, const runtime::PlanStats& stats);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PLAN_JSON_H_
