#include "driver/console.h"

#include <unistd.h>

#include <cstdio>

namespace oriel::driver {

namespace {

bool verboseFlag = false;

}  // namespace

absl::Status alreadyReported() { return absl::AbortedError(""); }

bool isAlreadyReported(const absl::Status& status) {
  return absl::IsAborted(status) && status.message().empty();
}

absl::Status toStatus(llvm::Error error) {
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(llvm::toString(std::move(error)));
}

void printError(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

void setVerbose(bool verbose) { verboseFlag = verbose; }

void progress(const std::string& text) {
  if (!verboseFlag && !isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "oriel: %s\n", text.c_str());
}

}  // namespace oriel::driver
