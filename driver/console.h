// Errors and progress on stderr, how errors of the parts become one status, and what stdout is.
#ifndef ORIEL_DRIVER_CONSOLE_H_
#define ORIEL_DRIVER_CONSOLE_H_

#include <string>

#include "absl/status/status.h"
#include "llvm/Support/Error.h"

namespace oriel::driver {

// An error whose text the user has seen already (diagnostics): nothing more is printed.
absl::Status alreadyReported();
bool isAlreadyReported(const absl::Status& status);

// An error in the command line, not in what it asks for: InvalidArgument, which runOriel() tells
// from others.
absl::Status usageError(const std::string& message);
bool isUsageError(const absl::Status& status);

absl::Status toStatus(llvm::Error error);

// "error: MESSAGE" on stderr.
void printError(const std::string& message);
// "warning: MESSAGE" on stderr.
void printWarning(const std::string& message);

// Progress lines appear on a terminal, or anywhere once this was called with true.
void setVerbose(bool verbose);
// "oriel: TEXT" on stderr.
void progress(const std::string& text);

// Of the terminal that stdout is, or 100.
int outputColumns();
// Whether stdout is a terminal, and the environment does not ask for NO_COLOR.
bool outputHasColor();

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_CONSOLE_H_
