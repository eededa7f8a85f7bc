// What differs between two strategies, key by key.
#ifndef ORIEL_DRIVER_STRATEGY_DIFF_H_
#define ORIEL_DRIVER_STRATEGY_DIFF_H_

#include <string>

#include "driver/comparison.h"
#include "passes/strategy/strategy.h"

namespace oriel::driver {

// Of sound strategies, which are called `nameA` and `nameB`. Keys are those of the file, with what
// a key that is not given stands for; a value is absent where nothing is fixed. The order of
// modules, rules and patterns makes no difference.
Comparison compareStrategies(const Strategy& a, const std::string& nameA, const Strategy& b,
                             const std::string& nameB);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_STRATEGY_DIFF_H_
