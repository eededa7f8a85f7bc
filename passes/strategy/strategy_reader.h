// Reads strategy.yaml.
#ifndef ORIEL_PASSES_STRATEGY_STRATEGY_READER_H_
#define ORIEL_PASSES_STRATEGY_STRATEGY_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "passes/strategy/strategy.h"

namespace oriel {

// Reads and checks a strategy. InvalidArgument names file, line and column, what is wrong, and for
// an unknown key the nearest known one; NotFound for a missing file.
absl::StatusOr<Strategy> readStrategy(const std::string& path,
                                      MemoryFrom memory = MemoryFrom::kStrategy);
// The same from text; `name` stands for the file in messages.
absl::StatusOr<Strategy> parseStrategy(const std::string& text, const std::string& name,
                                       MemoryFrom memory = MemoryFrom::kStrategy);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGY_STRATEGY_READER_H_
