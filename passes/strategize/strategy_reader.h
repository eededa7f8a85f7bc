// Reads strategy.yaml.
#ifndef ORIEL_PASSES_STRATEGIZE_STRATEGY_READER_H_
#define ORIEL_PASSES_STRATEGIZE_STRATEGY_READER_H_

#include <string>

#include "absl/status/statusor.h"
#include "passes/strategize/strategy.h"

namespace oriel {

// For messages about what bytesIn() refuses.
inline constexpr char kByteUnits[] =
    "units are B, KB, KiB, MB, MiB, GB, GiB, TB, TiB, and a number below 1024 needs one";

// Reads and checks a strategy. InvalidArgument names file, line and column, what is wrong, and for
// an unknown key the nearest known one; NotFound for a missing file.
absl::StatusOr<Strategy> readStrategy(const std::string& path);
// The same from text; `name` stands for the file in messages.
absl::StatusOr<Strategy> parseStrategy(const std::string& text, const std::string& name);

}  // namespace oriel

#endif  // ORIEL_PASSES_STRATEGIZE_STRATEGY_READER_H_
