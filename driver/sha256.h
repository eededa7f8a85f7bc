// SHA-256 of files: says which model a plan was made from.
#ifndef ORIEL_DRIVER_SHA256_H_
#define ORIEL_DRIVER_SHA256_H_

#include <string>

#include "absl/status/statusor.h"

namespace oriel::driver {

// 64 hexadecimal digits. NotFound or Unavailable names the file.
absl::StatusOr<std::string> sha256OfFile(const std::string& path);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_SHA256_H_
