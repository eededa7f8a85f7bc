// Whether a file can be written, asked before long work.
#ifndef ORIEL_DRIVER_OUTPUT_PATH_H_
#define ORIEL_DRIVER_OUTPUT_PATH_H_

#include <string>

#include "absl/status/status.h"

namespace oriel::driver {

// OK for an empty path. NotFound or PermissionDenied where no file can be made there, now;
// InvalidArgument for a folder.
absl::Status checkOutputPath(const std::string& path);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_OUTPUT_PATH_H_
