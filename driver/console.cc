#include "driver/console.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "absl/strings/cord.h"

namespace oriel::driver {

namespace {

bool verboseFlag = false;

constexpr char kUsage[] = "oriel/usage";

}  // namespace

absl::Status alreadyReported() { return absl::AbortedError(""); }

bool isAlreadyReported(const absl::Status& status) {
  return absl::IsAborted(status) && status.message().empty();
}

absl::Status usageError(const std::string& message) {
  absl::Status status = absl::InvalidArgumentError(message);
  status.SetPayload(kUsage, absl::Cord());
  return status;
}

bool isUsageError(const absl::Status& status) { return status.GetPayload(kUsage).has_value(); }

absl::Status toStatus(llvm::Error error) {
  if (!error) return absl::OkStatus();
  return absl::InvalidArgumentError(llvm::toString(std::move(error)));
}

void printError(const std::string& message) {
  std::fprintf(stderr, "error: %s\n", message.c_str());
}

void printWarning(const std::string& message) {
  std::fprintf(stderr, "warning: %s\n", message.c_str());
}

void setVerbose(bool verbose) { verboseFlag = verbose; }

void progress(const std::string& text) {
  if (!verboseFlag && !isatty(STDERR_FILENO)) return;
  std::fprintf(stderr, "oriel: %s\n", text.c_str());
}

int outputColumns() {
  winsize size = {};
  const bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 100;
}

bool outputHasColor() {
  const char* const noColor = std::getenv("NO_COLOR");
  return isatty(STDOUT_FILENO) && (noColor == nullptr || *noColor == '\0');
}

}  // namespace oriel::driver
