// The `oriel` command line: docs/cli.md.
#ifndef ORIEL_DRIVER_CLI_H_
#define ORIEL_DRIVER_CLI_H_

namespace oriel::driver {

// Runs one command line and returns the process's exit code: 0, 1 for an error in the work,
// 2 for wrong usage.
int runOriel(int argc, char** argv);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_CLI_H_
