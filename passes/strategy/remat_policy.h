// What the stash keeps, as the user says it (docs/remat.md).
#ifndef ORIEL_PASSES_STRATEGY_REMAT_POLICY_H_
#define ORIEL_PASSES_STRATEGY_REMAT_POLICY_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel {

enum class RematPolicy { kNone, kFull, kSelective, kAuto };

// Of all policies, in their order.
const std::vector<std::string>& rematNames();
const std::string& rematName(RematPolicy policy);
// InvalidArgument for another name, with the nearest one.
absl::StatusOr<RematPolicy> parseRemat(const std::string& name);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_REMAT_POLICY_H_
