// `--bind NAME=N,...`: sizes of symbolic dimensions on the command line.
#ifndef ORIEL_DRIVER_BINDINGS_H_
#define ORIEL_DRIVER_BINDINGS_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace oriel::driver {

// InvalidArgument for what is not NAME=N with N of at least 0, and for a name with two sizes.
absl::StatusOr<std::map<std::string, int64_t>> parseBindings(const std::vector<std::string>& words);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_BINDINGS_H_
