// `oriel plan`: the strategies that a model is trained with fastest on a cluster.
#include <cstdio>
#include <optional>

#include "absl/strings/str_cat.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/kernel_flags.h"
#include "driver/report/html_report.h"
#include "driver/search_text.h"
#include "driver/strategy_flags.h"
#include "driver/strategy_search.h"
#include "driver/this_machine.h"
#include "runtime/base/files.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"

namespace oriel::driver {

namespace {

struct Arguments {
  StrategySearch search;
  std::string recipe, cluster, device, objective = "time", output, html;
  StrategyOptions ranks;  // its `world`
  std::vector<std::string> fix;
  KernelOptions kernels;
  std::optional<int64_t> top;

  // Rows; without --top, of what was simulated on the way to the first.
  int64_t rows() const {
    constexpr int64_t kRows = 5;
    return top.value_or(kRows);
  }
  bool json = false;
};

// A timeline needs the first strategy's simulation, of which the search keeps the sums.
absl::StatusOr<std::string> reportOf(const FoundStrategies& found, const Arguments& arguments,
                                     const Vocabulary& vocabulary) {
  SimulationOptions options = arguments.search.simulation;
  options.cluster = found.problem.cluster;
  Strategy strategy = found.best().candidate.strategy();
  strategy.memory = options.cluster.device.memory;
  ORIEL_ASSIGN_OR_RETURN(const Simulation simulation, simulate(options, strategy, vocabulary));
  return htmlReport(
      found, simulation,
      {options.modelPath, arguments.recipe,
       arguments.cluster.empty() ? options.cluster.name : arguments.cluster, arguments.rows()});
}

// Those of --cluster; else this one. The recipe has been read.
absl::Status findMachines(const Arguments& arguments, StrategySearch* search,
                          std::optional<ThisMachine>* thisOne) {
  ORIEL_RETURN_IF_ERROR(strategyFromOptions(arguments.ranks).status());
  search->ranks = arguments.ranks.world;
  if (arguments.cluster.empty()) {
    ORIEL_ASSIGN_OR_RETURN(
        const plan::Device device,
        runtime::ParseDevice(arguments.device.empty() ? runtime::kHostDevice : arguments.device));
    ORIEL_ASSIGN_OR_RETURN(ThisMachine machine, thisMachine(device.kind(), search->ranks));
    if (!search->ranks) {
      // As many of them as the batch can be for, with all that the machine has.
      int64_t ranks = machine.cluster.devices();
      while (search->simulation.recipe.globalBatch % ranks != 0) --ranks;
      ORIEL_ASSIGN_OR_RETURN(machine, thisMachine(device.kind(), ranks));
    }
    search->simulation.cluster = machine.cluster;
    *thisOne = std::move(machine);
    return absl::OkStatus();
  }
  if (!arguments.device.empty()) {
    return usageError("--device says what to use of this machine: drop it, or --cluster");
  }
  ORIEL_ASSIGN_OR_RETURN(search->simulation.cluster,
                         clusterForSearch(arguments.cluster, search->ranks));
  return absl::OkStatus();
}

absl::Status plan(Arguments arguments, const Vocabulary& vocabulary) {
  StrategySearch& search = arguments.search;
  if (arguments.rows() < 1) return usageError("--top must be 1 or more");
  for (const std::string& path : {arguments.output, arguments.html}) {
    ORIEL_RETURN_IF_ERROR(runtime::CheckOutputPath(
        path, {search.simulation.modelPath, arguments.recipe, arguments.cluster}));
  }
  search.wanted = arguments.top.value_or(1);
  search.explain = true;
  if (arguments.objective != "time" && arguments.objective != "world") {
    return usageError(
        absl::StrCat("--objective: can't use '", arguments.objective, "'; it is time or world"));
  }
  search.isSmallest = arguments.objective == "world";
  absl::StatusOr<Pins> pins = parsePins(arguments.fix);
  if (!pins.ok()) return usageError(absl::StrCat("--fix: ", pins.status().message()));
  search.pins = *pins;
  ORIEL_ASSIGN_OR_RETURN(search.simulation.kernels, kernelFormsOf(arguments.kernels));
  ORIEL_ASSIGN_OR_RETURN(search.simulation.recipe, readRecipe(arguments.recipe));
  std::optional<ThisMachine> machine;
  ORIEL_RETURN_IF_ERROR(findMachines(arguments, &search, &machine));
  ORIEL_ASSIGN_OR_RETURN(const FoundStrategies found, findStrategies(search, vocabulary));
  const int64_t memory = search.simulation.cluster.device.memory;
  if (!arguments.output.empty()) {
    ORIEL_RETURN_IF_ERROR(runtime::WriteTextAtomically(
        arguments.output, absl::StrCat(machine ? machine->comment(memory) : "",
                                       found.best().candidate.strategy().text)));
  }
  if (!arguments.html.empty()) {
    ORIEL_ASSIGN_OR_RETURN(const std::string page, reportOf(found, arguments, vocabulary));
    ORIEL_RETURN_IF_ERROR(runtime::WriteTextAtomically(arguments.html, page));
  }
  const std::string text = arguments.json ? searchJson(found, arguments.rows(), machine)
                                          : absl::StrCat(machine ? machine->text(memory) : "",
                                                         searchText(found, arguments.rows()));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void addPlanCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("plan", "Finds the fastest strategies on a cluster, or on this machine");
  SimulationOptions& options = arguments->search.simulation;
  command
      ->add_option("MODEL", options.modelPath,
                   "The model: .onnx, or .mlir as `oriel import -o` writes it")
      ->required()
      ->type_name("");
  command
      ->add_option("--recipe", arguments->recipe,
                   "What to train (YAML, docs/recipe.md); batch.micro is chosen, whichever divisor "
                   "of batch.global it says")
      ->required()
      ->type_name("FILE");
  addClusterFlag(command, &arguments->cluster,
                 "All devices are used, or --world of them; without this, this machine's");
  command
      ->add_option(
          "--world", arguments->ranks.world,
          "Ranks (default: all devices of the cluster; of this machine, its cores or GPUs)")
      ->type_name("N");
  command
      ->add_option("--device", arguments->device,
                   "Without --cluster, what this machine would run it on: host (default) or cuda")
      ->type_name("host|cuda");
  command
      ->add_option("--top", arguments->top,
                   "Find and show that many of the best; without it, the first is found, and "
                   "shown with others that were simulated for that")
      ->type_name("N");
  addFixFlag(command, &arguments->fix);
  command
      ->add_option("--objective", arguments->objective,
                   "time: the fastest on all devices (default); world: on the fewest devices on "
                   "which something fits")
      ->type_name("time|world");
  command
      ->add_option("--time-limit", arguments->search.timeLimit,
                   "End after so many seconds with the best that was simulated until then, once "
                   "something fits; a faster one may be left")
      ->check(CLI::Range(1e-3, 1e9))
      ->type_name("SECONDS");
  addKernelFlags(command, &arguments->kernels);
  command->add_flag("--json", arguments->json, "For scripts: one JSON object with stable keys");
  command
      ->add_option("-o,--output", arguments->output,
                   "Write the first strategy (YAML, docs/strategy.md)")
      ->type_name("FILE");
  command
      ->add_option("--html", arguments->html,
                   "Write what was found and why as a page (docs/report.md)")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel plan model.onnx --recipe recipe.yaml --cluster h100\n"
      "  oriel plan model.onnx --recipe recipe.yaml --cluster a100-80:4 --top 10 --fix tp=2 \\\n"
      "      -o strategy.yaml\n"
      "  oriel plan model.onnx --recipe recipe.yaml --world 4");
  command->callback([=] { *run = [=] { return plan(*arguments, *vocabulary); }; });
}

}  // namespace oriel::driver
