// Whether a file can be written, asked before long work.
#ifndef ORIEL_RUNTIME_BASE_OUTPUT_PATH_H_
#define ORIEL_RUNTIME_BASE_OUTPUT_PATH_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace oriel::runtime {

// InvalidArgument if it is one of the files that are read; empty ones are none.
absl::Status CheckIsNotRead(const std::string& path, const std::vector<std::string>& inputs);

// The same; OK for an empty path. NotFound or PermissionDenied where no file can be made there,
// now; InvalidArgument for a folder.
absl::Status CheckOutputPath(const std::string& path, const std::vector<std::string>& inputs = {});

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_BASE_OUTPUT_PATH_H_
