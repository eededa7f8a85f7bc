// `oriel compile`: model, recipe and strategy to a plan.
#include <cstdio>
#include <filesystem>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "driver/command.h"
#include "driver/compile_report.h"
#include "driver/compiler.h"
#include "driver/console.h"
#include "driver/kernel_flags.h"
#include "driver/pipelines.h"
#include "driver/search_text.h"
#include "driver/strategy_flags.h"
#include "driver/strategy_search.h"
#include "driver/this_machine.h"
#include "driver/weights.h"
#include "passes/generate/code.h"
#include "passes/train/recipe.h"
#include "runtime/base/files.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"
#include "runtime/plan/device.h"
#include "runtime/plan/plan_file.h"

namespace oriel::driver {

namespace {

struct Arguments {
  CompileOptions compile;
  std::string recipe;
  StrategyOptions strategy;
  std::string cluster;
  std::vector<std::string> fix;
  std::string device = runtime::kHostDevice;
  KernelOptions kernels;
  std::string output;
};

// The plan is last, so that a plan that is there is whole. It gets the weights' checksum.
absl::Status writeFiles(Compilation& compilation, const std::string& path) {
  const std::string weights = runtime::JoinPath(runtime::FolderOf(path), weightsFileName(path));
  std::error_code ignored;
  // Nothing is beside a pipe.
  const bool hasWeights = hasWeightsFile(compilation.plan) && !runtime::IsStream(path);
  const bool isNew = hasWeights && !std::filesystem::exists(weights, ignored);
  if (hasWeights) {
    progress("writing " + weights);
    ORIEL_ASSIGN_OR_RETURN(*compilation.plan.mutable_provenance()->mutable_weights_crc32(),
                           writeWeights(compilation.model, compilation.plan, weights));
  }
  progress("writing " + path);
  absl::Status written = runtime::WritePlan(compilation.plan, path);
  if (!written.ok() && isNew) std::filesystem::remove(weights, ignored);
  return written;
}

// What was assumed and chosen. Standard output is the IR's where a dump goes there.
void say(const std::string& text, const DumpRequest& dump) {
  const bool isDumped = !dump.after.empty() || !dump.stopAfter.empty();
  std::FILE* out = isDumped && dump.folder.empty() ? stderr : stdout;
  std::fwrite(text.data(), 1, text.size(), out);
}

// The machines that the plan is for, if anybody says: --cluster, or --world alone for this one.
absl::Status findMachines(const Arguments& arguments, Strategy* strategy, CompileOptions* options,
                          std::optional<ThisMachine>* thisOne) {
  const std::optional<int64_t>& world = arguments.strategy.world;
  if (!arguments.cluster.empty()) {
    ORIEL_ASSIGN_OR_RETURN(options->cluster, isLeftToSearch(arguments.strategy)
                                                 ? clusterForSearch(arguments.cluster, world)
                                                 : clusterFor(arguments.cluster, *strategy));
    options->clusterFlag = absl::StrCat("--cluster=", arguments.cluster);
  } else if (world && isLeftToSearch(arguments.strategy)) {
    absl::StatusOr<ThisMachine> machine = thisMachine(options->device.kind(), world);
    if (!machine.ok()) {
      return absl::Status(machine.status().code(),
                          absl::StrCat(machine.status().message(),
                                       ", or say the strategy, e.g. --mesh dp=", *world));
    }
    *thisOne = *std::move(machine);
    options->cluster = (*thisOne)->cluster;
    options->clusterFlag = absl::StrCat("--world=", *world);
  } else {
    return absl::OkStatus();
  }
  if (strategy->memory) options->cluster->device.memory = *strategy->memory;
  strategy->memory = options->cluster->device.memory;
  if (*thisOne) say((*thisOne)->text(*strategy->memory), options->dump);
  return absl::OkStatus();
}

// The fastest, on the devices of `--world` or all of the cluster.
absl::Status chooseStrategy(const Arguments& arguments, const Vocabulary& vocabulary,
                            const std::optional<ThisMachine>& thisOne, CompileOptions* options) {
  StrategySearch search;
  search.simulation.modelPath = options->modelPath;
  search.simulation.recipe = options->recipe;
  search.simulation.cluster = *options->cluster;
  search.simulation.kernels = options->kernels;
  search.ranks = arguments.strategy.world;
  absl::StatusOr<Pins> pins = parsePins(arguments.fix);
  if (!pins.ok()) return usageError(absl::StrCat("--fix: ", pins.status().message()));
  search.pins = *pins;
  ORIEL_ASSIGN_OR_RETURN(const FoundStrategies found, findStrategies(search, vocabulary));
  const int64_t memory = options->cluster->device.memory;
  options->strategy = found.best().candidate.strategy();
  options->strategy.memory = memory;
  if (thisOne) options->strategy.text.insert(0, thisOne->comment(memory));
  say(absl::StrCat("strategy ", choiceText(found), "\n"), options->dump);
  return absl::OkStatus();
}

absl::Status compile(Arguments arguments, const Vocabulary& vocabulary) {
  Strategy& strategy = arguments.compile.strategy;
  if (!arguments.cluster.empty()) arguments.strategy.memoryFrom = MemoryFrom::kCluster;
  ORIEL_ASSIGN_OR_RETURN(strategy, strategyFromOptions(arguments.strategy));
  ORIEL_RETURN_IF_ERROR(runtime::CheckOutputPath(
      arguments.output,
      {arguments.compile.modelPath, arguments.recipe, arguments.strategy.file, arguments.cluster}));
  ORIEL_ASSIGN_OR_RETURN(arguments.compile.kernels, kernelFormsOf(arguments.kernels));
  ORIEL_ASSIGN_OR_RETURN(arguments.compile.device, runtime::ParseDevice(arguments.device));
  if (arguments.compile.kernels.launches.generated && hostTargets().empty() &&
      arguments.compile.device.kind() != runtime::kCudaDevice) {
    return absl::UnimplementedError(
        "this oriel generates kernels for the host on x86-64 Linux only; leave out "
        "--generated-kernels");
  }
  ORIEL_ASSIGN_OR_RETURN(arguments.compile.recipe, readRecipe(arguments.recipe));
  std::optional<ThisMachine> thisOne;
  ORIEL_RETURN_IF_ERROR(findMachines(arguments, &strategy, &arguments.compile, &thisOne));
  const bool isSearched = arguments.compile.cluster && isLeftToSearch(arguments.strategy);
  if (!isSearched && !arguments.fix.empty()) {
    return usageError(
        "--fix is for a strategy that is searched: give --cluster or --world, and no option of the "
        "strategy");
  }
  if (isSearched) {
    ORIEL_RETURN_IF_ERROR(chooseStrategy(arguments, vocabulary, thisOne, &arguments.compile));
  }
  arguments.compile.weightsFile = weightsFileName(arguments.output);
  ORIEL_ASSIGN_OR_RETURN(std::optional<Compilation> compilation,
                         runCompiler(arguments.compile, vocabulary));
  if (!compilation) return absl::OkStatus();  // --stop-after
  ORIEL_RETURN_IF_ERROR(writeFiles(*compilation, arguments.output));
  const std::string report = compileReport(compilation->plan, arguments.output);
  std::fwrite(report.data(), 1, report.size(), stdout);
  return absl::OkStatus();
}

std::string phasesHelp() {
  std::string text = "Phases:\n  import      ONNX nodes as ops\n";
  for (const PipelinePhase& phase : pipelinePhases()) {
    absl::StrAppend(&text, absl::StrFormat("  %-12s%s\n", phase.name, phase.summary));
  }
  return text + "  emit        the plan\n";
}

constexpr char kExamples[] =
    "Examples:\n"
    "  oriel compile model.onnx --recipe recipe.yaml --world 4 -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --cluster h100:2 -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --strategy strategy.yaml -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --mesh dp=2,tp=2 --zero 1 --sp \\\n"
    "      -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --stages 4 --schedule 1f1b \\\n"
    "      --microbatches 8 -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --mesh tp=4 --sp --remat selective \\\n"
    "      -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --mesh dp=8 --device cuda -o model.oplan\n"
    "  oriel compile model.onnx --recipe recipe.yaml --stop-after=raise\n"
    "  oriel compile model.onnx --recipe recipe.yaml -o model.oplan \\\n"
    "      --dump-after=all --dump-dir ir\n"
    "  oriel compile model.onnx --recipe recipe.yaml --mesh tp=2 -o model.oplan \\\n"
    "      --start-from propagate:edited.mlir\n"
    "  oriel compile model.onnx --recipe recipe.yaml -o model.oplan \\\n"
    "      --load-plugin acme.so '--passes-after=raise:func.func(acme-raise-snake)'";

// Of those who look at what passes do, or change it.
void addDumpFlags(CLI::App* command, CompileOptions* options) {
  command
      ->add_option("--passes-after", options->passesAfter,
                   "Run these passes too, after a phase; may be repeated")
      ->allow_extra_args(false)
      ->type_name("PHASE:PIPELINE");
  DumpRequest& dump = options->dump;
  command
      ->add_option("--dump-after", dump.after,
                   "Print what these phases leave behind: PHASE,.. or `all`")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->type_name("PHASE");
  command->add_option("--stop-after", dump.stopAfter, "End after this phase; no plan is written")
      ->type_name("PHASE");
  command->add_flag("--dump-locations", dump.locations,
                    "With the nodes that ops come from, for --start-from");
  command
      ->add_option("--start-from", options->startFrom,
                   "Go on from what a phase left, as --dump-after=PHASE --dump-locations wrote it "
                   "with the same options, and you may have changed it")
      ->type_name("PHASE:FILE");
  command->add_option("--dump-dir", dump.folder, "Write dumps to files here, not to stdout")
      ->type_name("DIR");
}

}  // namespace

void addCompileCommand(CLI::App& app, const Vocabulary* vocabulary, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand("compile", "Compiles a model and a recipe to a plan");
  command->add_option("MODEL", arguments->compile.modelPath, "The model (.onnx)")
      ->required()
      ->type_name("");
  command->add_option("--recipe", arguments->recipe, "What to train (YAML, docs/recipe.md)")
      ->required()
      ->type_name("FILE");
  addStrategyFlags(command, &arguments->strategy, "the strategy is searched");
  addClusterFlag(command, &arguments->cluster,
                 "Times are predicted for them, and a rank has the memory of a device unless "
                 "--memory says otherwise. Where no option says the strategy, the fastest on all "
                 "devices (or --world of them) is searched, as `oriel plan` does; with --world and "
                 "no cluster, on this machine");
  addFixFlag(command, &arguments->fix);
  command
      ->add_option("--device", arguments->device,
                   "What runs the plan: host (default), cuda, or cuda on some architectures only "
                   "(docs/cuda.md)")
      ->type_name("host|cuda[:sm_90,..]");
  addKernelFlags(command, &arguments->kernels);
  command->add_flag("--explain-sharding", arguments->compile.explainSharding,
                    "Print what is split and what is not, what moves between ranks, and why");
  command->add_flag("--explain-stages", arguments->compile.explainStages,
                    "Print the model's blocks, what each part costs, and what each stage has");
  command
      ->add_option("-o,--output", arguments->output,
                   "The plan to write (.oplan); weights that the recipe's `init` does not make "
                   "go beside it")
      ->type_name("FILE");
  addDumpFlags(command, &arguments->compile);
  command->footer(phasesHelp() + kExamples);
  command->callback([=] {
    if (arguments->output.empty() && arguments->compile.dump.stopAfter.empty()) {
      throw CLI::RequiredError("-o (where the plan goes)");
    }
    *run = [=] { return compile(*arguments, *vocabulary); };
  });
}

}  // namespace oriel::driver
