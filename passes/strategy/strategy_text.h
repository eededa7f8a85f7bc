// Writes strategy.yaml.
#ifndef ORIEL_PASSES_STRATEGY_STRATEGY_TEXT_H_
#define ORIEL_PASSES_STRATEGY_STRATEGY_TEXT_H_

#include <string>

#include "passes/strategy/strategy.h"

namespace oriel {

// What parseStrategy() reads as this strategy; what is as without a key has none.
std::string strategyText(const Strategy& strategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_STRATEGY_TEXT_H_
