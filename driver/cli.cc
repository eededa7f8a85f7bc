#include "driver/cli.h"

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/version.h"
#include "passes/config/suggest.h"

namespace oriel::driver {

namespace {

constexpr char kDescription[] =
    "Compiles a vision-language model from ONNX into a distributed training program.";

constexpr char kFooter[] =
    "Example:\n"
    "  oriel compile model.onnx --recipe recipe.yaml --world 4 -o model.oplan\n"
    "  oriel-run model.oplan -n 4 --data shards/ --save-dir checkpoints/\n"
    "  oriel export model.oplan --checkpoint checkpoints/ --to onnx -o trained.onnx\n"
    "See docs/cli.md.";

constexpr int kError = 1;
constexpr int kWrongUsage = 2;

// What is wrong with a command line that has no command.
std::string whatCommand(const CLI::App& app, int argc, char** argv) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands(nullptr)) names.push_back(command->get_name());
  for (int i = 1; i < argc; ++i) {
    if (argv[i][0] == '-') {
      // The next word may be this option's value.
      const CLI::Option* option = app.get_option_no_throw(argv[i]);
      if (option == nullptr || option->get_items_expected_min() == 0) continue;
      if (++i < argc && absl::c_linear_search(names, argv[i])) {
        return absl::StrCat("'", argv[i], "' is taken for the value of ", argv[i - 1],
                            ", which needs one of its own");
      }
      continue;
    }
    return absl::StrCat("there is no command '", argv[i], "'", suggestion(argv[i], names));
  }
  return absl::StrCat("give a command: ", absl::StrJoin(names, ", "));
}

int wrongUsage(const CLI::App& app, const std::string& message) {
  printError(message);
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  std::fprintf(stderr, "see: oriel %s--help\n",
               chosen.empty() ? "" : (chosen.front()->get_name() + " ").c_str());
  return kWrongUsage;
}

}  // namespace

int runOriel(int argc, char** argv) {
  // A file above the limit (ulimit -f) is an error as a full disk is.
  std::signal(SIGXFSZ, SIG_IGN);
  CLI::App app(kDescription, "oriel");
  app.footer(kFooter);
  app.set_version_flag("--version", std::string("oriel ") + kVersion);
  app.require_subcommand(1);
  app.fallthrough();  // `-v` may stand after the command
  bool verbose = false;
  app.add_flag("-v,--verbose", verbose, "Progress on stderr also where that is no terminal");

  std::vector<std::string> plugins;
  app.add_option("--load-plugin", plugins,
                 "A library with more ops and passes; may be repeated (docs/adding_an_op.md)")
      ->allow_extra_args(false)
      ->type_name("FILE.so");

  Vocabulary vocabulary;
  Run run;
  addImportCommand(app, &vocabulary, &run);
  addCompileCommand(app, &vocabulary, &run);
  addPlanCommand(app, &vocabulary, &run);
  addSimulateCommand(app, &vocabulary, &run);
  addInspectCommand(app, &run);
  addDiffCommand(app, &run);
  addVerifyCommand(app, &run);
  addExportCommand(app, &run);
  addComposeCommand(app, &run);
  addAdaptCommand(app, &run);
  addDoctorCommand(app, &run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
    return wrongUsage(app,
                      app.get_subcommands().empty() ? whatCommand(app, argc, argv) : error.what());
  }

  setVerbose(verbose);
  absl::Status status;
  for (const std::string& plugin : plugins) status.Update(vocabulary.loadPlugin(plugin));
  if (status.ok()) status = run();
  if (status.ok()) return 0;
  if (isUsageError(status)) return wrongUsage(app, std::string(status.message()));
  if (!isAlreadyReported(status)) printError(std::string(status.message()));
  return kError;
}

}  // namespace oriel::driver
