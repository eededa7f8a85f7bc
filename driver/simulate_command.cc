// `oriel simulate`: what a step of a strategy, or of a plan, takes on a cluster.
#include <cstdio>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/kernel_flags.h"
#include "driver/plan_source.h"
#include "driver/simulation.h"
#include "driver/simulation_text.h"
#include "driver/strategy_flags.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/plan/plan_file.h"

namespace oriel::driver {

namespace {

struct Arguments {
  SimulationOptions simulation;  // its path: of a model or a plan
  std::string recipe, model;
  StrategyOptions strategy;
  std::string cluster;
  std::vector<std::string> stack, stragglers;
  KernelOptions kernels;
  bool byKernel = false, json = false;
  std::string trace;
};

absl::StatusOr<Strategy> fromModel(const Arguments& arguments, SimulationOptions* options) {
  if (arguments.recipe.empty()) return usageError("--recipe is required, but for a plan (.oplan)");
  if (!arguments.model.empty()) {
    return usageError(absl::StrCat("--model is for a plan (.oplan), and '", options->modelPath,
                                   "' is none: drop it"));
  }
  ORIEL_ASSIGN_OR_RETURN(Strategy strategy, strategyFromOptions(arguments.strategy));
  ORIEL_ASSIGN_OR_RETURN(options->kernels, kernelFormsOf(arguments.kernels));
  ORIEL_ASSIGN_OR_RETURN(options->recipe, readRecipe(arguments.recipe));
  return strategy;
}

absl::StatusOr<Strategy> fromPlan(const Arguments& arguments, const Vocabulary& vocabulary,
                                  SimulationOptions* options) {
  const std::string& path = arguments.simulation.modelPath;
  std::vector<std::string> given = givenOptions(arguments.strategy);
  if (!arguments.recipe.empty()) given.insert(given.begin(), "--recipe");
  for (const std::string& option : givenOptions(arguments.kernels)) given.push_back(option);
  if (!given.empty()) {
    return usageError(
        absl::StrCat("the plan '", path, "' has its own recipe, strategy and flags: ", "drop ",
                     absl::StrJoin(given, ", "), ", or give the model in place of the plan"));
  }
  ORIEL_ASSIGN_OR_RETURN(const plan::Plan plan, runtime::ReadPlan(path));
  ORIEL_ASSIGN_OR_RETURN(PlanSource source, sourceOfPlan(path, plan.provenance(), arguments.model,
                                                         vocabulary.plugins));
  if (!source.notSimulated.empty()) {
    printWarning(absl::StrCat("the plan was compiled with ",
                              absl::StrJoin(source.notSimulated, ", "), ", which ",
                              source.notSimulated.size() == 1 ? "is" : "are", " not simulated"));
  }
  options->modelPath = source.modelPath;
  options->recipe = std::move(source.recipe);
  options->kernels = source.kernels;
  return std::move(source.strategy);
}

absl::Status runSimulation(Arguments arguments, const Vocabulary& vocabulary) {
  arguments.strategy.memoryFrom = MemoryFrom::kCluster;
  SimulationOptions options = arguments.simulation;
  const bool isPlan = absl::EndsWith(options.modelPath, ".oplan");
  ORIEL_ASSIGN_OR_RETURN(Strategy strategy, isPlan ? fromPlan(arguments, vocabulary, &options)
                                                   : fromModel(arguments, &options));
  ORIEL_ASSIGN_OR_RETURN(options.cluster, clusterFor(arguments.cluster, strategy));
  if (!strategy.memory) strategy.memory = options.cluster.device.memory;
  absl::StatusOr<SoftwareStack> stack = parseSoftwareStack(arguments.stack);
  if (!stack.ok()) return usageError(absl::StrCat("--stack: ", stack.status().message()));
  options.stack = *stack;
  if (stack->memory.isCached) options.stack.memory.capacity = options.cluster.device.memory;
  absl::StatusOr<Stragglers> stragglers = parseStragglers(arguments.stragglers, strategy.ranks());
  if (!stragglers.ok()) {
    return usageError(absl::StrCat("--straggler: ", stragglers.status().message()));
  }
  options.stragglers = *std::move(stragglers);
  ORIEL_ASSIGN_OR_RETURN(const Simulation simulation, simulate(options, strategy, vocabulary));
  if (!arguments.trace.empty()) {
    ORIEL_RETURN_IF_ERROR(
        runtime::WriteTextAtomically(arguments.trace, simulationTrace(simulation)));
  }
  std::string text =
      arguments.json ? simulationJson(simulation) : simulationText(simulation, options.cluster);
  if (arguments.byKernel && !arguments.json) text += kernelsText(simulation);
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
                   "The model: .onnx, or .mlir as `oriel import -o` writes it; or a plan (.oplan), "
                   "which says model, recipe, strategy and flags")
      ->required()
      ->type_name("");
  command
      ->add_option("--recipe", arguments->recipe,
                   "What to train (YAML, docs/recipe.md); required, but for a plan")
      ->type_name("FILE");
  command
      ->add_option("--model", arguments->model,
                   "The ONNX file of a plan, where it isn't where the plan says")
      ->type_name("FILE");
  addClusterFlag(command, &arguments->cluster, "Times and memory are theirs")->required();
  addStrategyFlags(command, &arguments->strategy, "all are data-parallel");
  command
      ->add_option("--stack", arguments->stack,
                   "What another software adds, e.g. kernel_overhead=6us (an op takes that at "
                   "least), pointwise=1.5 (passes over memory), overlap=0.8 (of communication "
                   "beside computing, what costs nothing), attention=1.5 (times fused attention), "
                   "allocator=caching (what PyTorch's would reserve; what else such software "
                   "keeps: docs/simulate.md)")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("KEY=VALUE,..");
  command
      ->add_option("--straggler", arguments->stragglers,
                   "A rank that computes so many times as long, e.g. 3=1.5; may be repeated")
      ->allow_extra_args(false)
      ->type_name("RANK=FACTOR");
  addKernelFlags(command, &arguments->kernels);
  command->add_flag("--whole", options.whole,
                    "Compile every block, not only some of those that are equal");
  command->add_flag("--kernels", arguments->byKernel,
                    "Say which kernels the computing is, by their times (in JSON they always are)");
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
      "      --stages 4 --microbatches 16 --remat full --trace step.json\n"
      "  oriel simulate model.oplan --cluster h100:2 --straggler 3=1.5");
  command->callback([=] { *run = [=] { return runSimulation(*arguments, *vocabulary); }; });
}

}  // namespace oriel::driver
