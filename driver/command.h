// The commands of `oriel`, one file each.
#ifndef ORIEL_DRIVER_COMMAND_H_
#define ORIEL_DRIVER_COMMAND_H_

#include <CLI/CLI.hpp>
#include <functional>

#include "absl/status/status.h"
#include "driver/vocabulary.h"

namespace oriel::driver {

// What the user asked for, with its arguments bound.
using Run = std::function<absl::Status()>;

// Each adds its command to the parser, which sets `run` where the user chose that command. What
// `run` is to know of plugins is in `vocabulary` by then.
void addImportCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run);
void addCompileCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run);
void addInspectCommand(CLI::App& app, Run* run);
void addPlanCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run);
void addDiffCommand(CLI::App& app, Run* run);
void addSimulateCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run);
void addVerifyCommand(CLI::App& app, Run* run);
void addExportCommand(CLI::App& app, Run* run);
void addComposeCommand(CLI::App& app, Run* run);
void addAdaptCommand(CLI::App& app, Run* run);
void addDoctorCommand(CLI::App& app, Run* run);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_COMMAND_H_
