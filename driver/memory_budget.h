// Whether the ranks have the memory that a plan needs.
#ifndef ORIEL_DRIVER_MEMORY_BUDGET_H_
#define ORIEL_DRIVER_MEMORY_BUDGET_H_

#include "absl/status/status.h"
#include "passes/strategy/strategy.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::driver {

// ResourceExhausted if the arena of a program is larger than `strategy.memory`. The message says of
// the program that needs most: by how much, what is in use at its peak, the largest values by their
// names in the model, and what in the strategy would make it smaller. `plan` is sound, and compiled
// with this strategy.
absl::Status checkMemory(const plan::Plan& plan, const Strategy& strategy);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_MEMORY_BUDGET_H_
