// What oriel-run does.
#ifndef ORIEL_RUNTIME_LAUNCH_RUN_MAIN_H_
#define ORIEL_RUNTIME_LAUNCH_RUN_MAIN_H_

namespace oriel::runtime {

// Runs the command line to its end and returns the exit status (options.h).
int RunMain(int argc, const char* const* argv);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_LAUNCH_RUN_MAIN_H_
