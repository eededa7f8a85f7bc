// Where this program is.
#ifndef ORIEL_RUNTIME_BASE_EXECUTABLE_H_
#define ORIEL_RUNTIME_BASE_EXECUTABLE_H_

#include <string>

#include "absl/status/statusor.h"

namespace oriel::runtime {

// Its file, of symbolic links the one that they lead to. Unavailable if the system does not say.
absl::StatusOr<std::string> ExecutablePath();
// The folder of that, with a slash at its end.
absl::StatusOr<std::string> ExecutableFolder();

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_EXECUTABLE_H_
