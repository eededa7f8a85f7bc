// `oriel simulate`: what a step of a strategy takes on a cluster, without a plan.
#include <cstdio>

#include "absl/strings/str_cat.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/simulation.h"
#include "driver/simulation_text.h"
#include "driver/strategy_flags.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"

namespace oriel::driver {

namespace {

struct Arguments {
  SimulationOptions simulation;
  std::string recipe;
  StrategyOptions strategy;
  std::string cluster;
  std::vector<std::string> stack, unfused;
  bool json = false;
  std::string trace;
};

absl::Status runSimulation(Arguments arguments, const Vocabulary& vocabulary) {
  SimulationOptions& options = arguments.simulation;
  ORIEL_ASSIGN_OR_RETURN(Strategy strategy, strategyFromOptions(arguments.strategy));
  ORIEL_ASSIGN_OR_RETURN(options.cluster, clusterFor(arguments.cluster, strategy));
  if (!strategy.memory) strategy.memory = options.cluster.device.memory;
  absl::StatusOr<SoftwareStack> stack = parseSoftwareStack(arguments.stack);
  if (!stack.ok()) return usageError(absl::StrCat("--stack: ", stack.status().message()));
  options.stack = *stack;
  ORIEL_RETURN_IF_ERROR(checkUnfused(arguments.unfused));
  options.unfusedAttention = !arguments.unfused.empty();
  ORIEL_ASSIGN_OR_RETURN(options.recipe, readRecipe(arguments.recipe));
  ORIEL_ASSIGN_OR_RETURN(const Simulation simulation, simulate(options, strategy, vocabulary));
  if (!arguments.trace.empty()) {
    ORIEL_RETURN_IF_ERROR(
        runtime::WriteTextAtomically(arguments.trace, simulationTrace(simulation)));
  }
  const std::string text =
      arguments.json ? simulationJson(simulation) : simulationText(simulation, options.cluster);
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

}  // namespace

void addSimulateCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      app.add_subcommand("simulate", "Predicts a step's time and memory on a cluster");
  SimulationOptions& options = arguments->simulation;
  command
      ->add_option("MODEL", options.modelPath,
                   "The model: .onnx, or .mlir as `oriel import -o` writes it")
      ->required()
      ->type_name("");
  command->add_option("--recipe", arguments->recipe, "What to train (YAML, docs/recipe.md)")
      ->required()
      ->type_name("FILE");
  addClusterFlag(command, &arguments->cluster, "Times and memory are theirs")->required();
  addStrategyFlags(command, &arguments->strategy);
  command
      ->add_option("--stack", arguments->stack,
                   "What another software adds, e.g. kernel_overhead=6us (an op takes that at "
                   "least), pointwise=1.5 (passes over memory), overlap=0.8 (of communication "
                   "beside computing, what costs nothing), attention=1.5 (times fused attention)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE,..");
  addUnfusedFlag(command, &arguments->unfused);
  command->add_flag("--fuse-loss", options.fuseLoss,
                    "Compute the cross entropy with the output layer, as compile does");
  command->add_flag("--whole", options.whole,
                    "Compile every block, not only some of those that are equal");
  command->add_flag("--json", arguments->json, "For scripts: one JSON object with stable keys");
  command
      ->add_option("--trace", arguments->trace,
                   "Write when each program runs what, for https://ui.perfetto.dev")
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel simulate model.onnx --recipe recipe.yaml --cluster h100 --mesh fsdp=8 --zero 3 \\\n"
      "      --remat none\n"
      "  oriel simulate model.onnx --recipe recipe.yaml --cluster a100-80:4 --mesh tp=8 --sp \\\n"
      "      --stages 4 --microbatches 16 --remat full --trace step.json");
  command->callback([=] { *run = [=] { return runSimulation(*arguments, *vocabulary); }; });
}

}  // namespace oriel::driver
