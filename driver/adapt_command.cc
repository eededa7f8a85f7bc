// `oriel adapt`: low-rank adapters beside the linear layers of a model.
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "driver/command.h"
#include "driver/console.h"
#include "driver/peft_adapter.h"
#include "frontend/adapters.h"
#include "frontend/model_text.h"
#include "passes/config/glob.h"
#include "passes/config/suggest.h"
#include "passes/train/recipe.h"
#include "runtime/base/files.h"
#include "runtime/base/output_path.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"
#include "runtime/train/random_values.h"

namespace oriel::driver {

namespace {

// PEFT's word for all but the output layer.
constexpr char kAllLinear[] = "all-linear";

struct Arguments {
  std::string model;
  std::vector<std::string> targets = {kAllLinear};
  int64_t rank = 16;
  double alpha = 0;  // twice the rank if not given
  uint64_t seed = 0;
  std::string peft;  // the folder of an adapter to begin with
  std::string renamedModules;
  std::string output;
};

// "q_proj" for "model.layers.0.self_attn.q_proj".
std::string lastComponent(const std::string& module) {
  return module.substr(module.rfind('.') + 1);
}

bool isTarget(const LinearLayer& layer, const std::string& pattern) {
  if (pattern == kAllLinear) return !layer.isOutputLayer;
  return matchesGlob(pattern, layer.weight) || matchesGlob(pattern, layer.module) ||
         matchesGlob("*." + pattern, layer.module);
}

absl::Status noTarget(const ModelFile& model, const std::vector<LinearLayer>& layers,
                      const std::string& pattern) {
  const char* inlining =
      hasFunctions(model) ? "; what functions do is not looked at: inline them (onnx.inliner)" : "";
  if (layers.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(
        model.path().str(), " has no linear layers: no MatMul or Gemm multiplies by a ",
        "float initializer of two dimensions", inlining));
  }
  if (pattern == kAllLinear) {
    return absl::InvalidArgumentError(absl::StrCat(
        model.path().str(), " has no linear layers but what gives its output, '",
        layers.front().module, "': name it with --targets if it is to have an adapter", inlining));
  }
  for (const std::string& name : model.initializerNames()) {
    if (!matchesGlob(pattern, name)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("--targets: '", pattern, "' matches '", name,
                     "', which is no weight of a linear layer (a float matrix that MatMul or Gemm "
                     "multiplies by, always as it is or always transposed)"));
  }
  std::set<std::string> names;
  for (const LinearLayer& layer : layers) names.insert(lastComponent(layer.module));
  return absl::InvalidArgumentError(
      absl::StrCat("--targets: '", pattern, "' matches no linear layer of ", model.path().str(),
                   suggestion(pattern, {names.begin(), names.end()})));
}

absl::StatusOr<std::vector<LinearLayer>> chooseLayers(const ModelFile& model,
                                                      const std::vector<std::string>& targets) {
  const std::vector<LinearLayer> layers = linearLayers(model);
  for (const std::string& pattern : targets) {
    const bool isThere =
        absl::c_any_of(layers, [&](const LinearLayer& layer) { return isTarget(layer, pattern); });
    if (!isThere) return noTarget(model, layers, pattern);
  }
  std::vector<LinearLayer> chosen;
  for (const LinearLayer& layer : layers) {
    if (absl::c_any_of(targets, [&](const std::string& p) { return isTarget(layer, p); })) {
      chosen.push_back(layer);
    }
  }
  return chosen;
}

// The layers of an adapter's modules, each once.
absl::StatusOr<std::vector<LinearLayer>> layersOf(const PeftAdapter& adapter,
                                                  const ModulePrefix& prefix,
                                                  const ModelFile& model) {
  const std::vector<LinearLayer> layers = linearLayers(model);
  std::map<std::string, const LinearLayer*> byModule;  // as the adapter calls it
  for (const LinearLayer& layer : layers) {
    const std::string module = prefix.renamed(layer.module);
    if (adapter.modules.count(module) == 0) continue;
    auto [place, isNew] = byModule.try_emplace(module, &layer);
    if (isNew) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "--rename-modules: '", place->second->module, "' and '", layer.module, "' are both '",
        module, "', as the adapter calls it: give more of the names' beginning"));
  }
  std::vector<LinearLayer> chosen;
  std::set<std::string> missing;
  for (const auto& [module, pair] : adapter.modules) {
    auto layer = byModule.find(module);
    if (layer == byModule.end()) {
      missing.insert(module);
      continue;
    }
    chosen.push_back(*layer->second);
    const int64_t inputs = pair.a.spec.shape[1], outputs = pair.b.spec.shape[0];
    if (inputs == chosen.back().inputs && outputs == chosen.back().outputs) continue;
    return absl::InvalidArgumentError(absl::StrCat(adapter.file.path(), ": '", module, "' has ",
                                                   inputs, " inputs and ", outputs, " outputs, in ",
                                                   model.path().str(), " ", chosen.back().inputs,
                                                   " and ", chosen.back().outputs));
  }
  if (missing.empty()) return chosen;
  std::vector<std::string> modules;
  for (const LinearLayer& layer : layers) modules.push_back(prefix.renamed(layer.module));
  return absl::InvalidArgumentError(absl::StrCat(
      adapter.file.path(), ": ", missing.size(), " of ", adapter.modules.size(),
      " modules are no linear layers of ", model.path().str(), ", such as '", *missing.begin(), "'",
      modules.empty() ? ""
                      : absl::StrCat("; layers there are called as '", modules.front(),
                                     "' (--rename-modules OLD=NEW, where names begin otherwise)"),
      suggestion(*missing.begin(), modules)));
}

// As the values of parameters that training begins with: by seed, name and place.
void fillUniform(uint64_t seed, const std::string& name, float bound,
                 llvm::MutableArrayRef<float> values) {
  plan::InitialValue initial;
  initial.set_seed(seed);
  initial.mutable_uniform()->set_low(-bound);
  initial.mutable_uniform()->set_high(bound);
  const runtime::TensorSpec spec{runtime::DType::kF32, {static_cast<int64_t>(values.size())}};
  // Of a float type and a uniform value it can't fail.
  runtime::FillInitialValue(initial, name, spec, runtime::WholeBox(spec.shape), 1, values.data())
      .IgnoreError();
}

void report(const Arguments& arguments, const std::vector<LinearLayer>& layers,
            int64_t parameters) {
  auto isNoSmaller = [&](const LinearLayer& layer) {
    return arguments.rank >= std::min(layer.inputs, layer.outputs);
  };
  if (auto layer = absl::c_find_if(layers, isNoSmaller); layer != layers.end()) {
    printWarning(absl::StrCat("the rank ", arguments.rank, " is not below the size of '",
                              layer->weight, "', ", layer->outputs, " x ", layer->inputs,
                              ": its adapter is no smaller than it"));
  }
  for (const LinearLayer& layer : layers) {
    if (!layer.isShared) continue;
    printWarning(absl::StrCat("'", layer.weight,
                              "' is read by something else, too: its adapter can't be merged into "
                              "it when training has ended"));
  }
  std::set<std::string> names;
  for (const LinearLayer& layer : layers) names.insert(lastComponent(layer.module));
  std::printf("wrote %s: %zu adapters of rank %lld, %lld parameters, beside %s\n",
              arguments.output.c_str(), layers.size(), static_cast<long long>(arguments.rank),
              static_cast<long long>(parameters), absl::StrJoin(names, ", ").c_str());
  std::printf("to train them alone, the recipe says: parameters: {trainable: [\"*.lora_*\"]}\n");
}

constexpr int64_t kMaxRank = 65536;
constexpr double kMaxScale = 1e6;

void fillFrom(const runtime::SafetensorsView& trained, llvm::MutableArrayRef<float> values) {
  // Readers of adapters have looked at types and sizes.
  runtime::ConvertElements(trained.spec.dtype, trained.data, runtime::DType::kF32, values.data(),
                           static_cast<int64_t>(values.size()))
      .IgnoreError();
}

absl::Status checkScale(const Arguments& arguments, const std::string& rankName,
                        const std::string& alphaName) {
  if (arguments.rank < 1 || arguments.rank > kMaxRank) {
    return usageError(absl::StrCat(rankName, ": must be from 1 to ", kMaxRank));
  }
  const double scale = arguments.alpha / static_cast<double>(arguments.rank);
  if (!(scale <= kMaxScale && scale >= 1 / kMaxScale)) {
    return usageError(alphaName + ": alpha / rank, the scale, must be from 1e-6 to 1e6");
  }
  return absl::OkStatus();
}

absl::Status adapt(Arguments arguments) {
  std::optional<PeftAdapter> trained;
  if (!arguments.peft.empty()) {
    ORIEL_ASSIGN_OR_RETURN(trained, readPeftAdapter(arguments.peft));
    arguments.rank = trained->rank;
    arguments.alpha = trained->alpha;
    ORIEL_RETURN_IF_ERROR(
        checkScale(arguments, trained->config + ": r", trained->config + ": lora_alpha"));
  } else {
    if (arguments.alpha == 0) arguments.alpha = 2 * static_cast<double>(arguments.rank);
    ORIEL_RETURN_IF_ERROR(checkScale(arguments, "--rank", "--alpha"));
  }
  ORIEL_ASSIGN_OR_RETURN(const ModulePrefix prefix, parseModulePrefix(arguments.renamedModules));
  // Trained adapters are merged into the bytes of a model.
  for (const std::string& path : {arguments.model, arguments.output}) {
    if (!isModelText(path)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is ONNX text, which adapters are not added to; save it as .onnx"));
  }
  ORIEL_RETURN_IF_ERROR(runtime::CheckOutputPath(arguments.output, {arguments.model}));
  progress("reading " + arguments.model);
  llvm::Expected<ModelFile> model = ModelFile::open(arguments.model);
  if (!model) return toStatus(model.takeError());
  std::vector<std::string> inputs = model->dataFiles();
  if (trained) inputs.insert(inputs.end(), {trained->file.path(), trained->config});
  ORIEL_RETURN_IF_ERROR(runtime::CheckIsNotRead(arguments.output, inputs));
  ORIEL_ASSIGN_OR_RETURN(
      const std::vector<LinearLayer> layers,
      trained ? layersOf(*trained, prefix, *model) : chooseLayers(*model, arguments.targets));
  AdapterOptions options;
  options.rank = arguments.rank;
  options.alpha = arguments.alpha;
  options.fill = [&](const LinearLayer& layer, const std::string& name, float bound,
                     llvm::MutableArrayRef<float> values) {
    if (!trained) return fillUniform(arguments.seed, name, bound, values);
    const PeftAdapter::Pair& pair = trained->modules.at(prefix.renamed(layer.module));
    fillFrom(bound > 0 ? pair.a : pair.b, values);
  };
  llvm::Expected<AdaptedModel> adapted = adaptModel(*model, layers, options, arguments.output);
  if (!adapted) return toStatus(adapted.takeError());
  progress("writing " + arguments.output);
  ORIEL_RETURN_IF_ERROR(runtime::WriteTextAtomically(arguments.output, adapted->bytes));
  report(arguments, layers, adapted->parameters);
  return absl::OkStatus();
}

}  // namespace

void addAdaptCommand(CLI::App& app, Run* run) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = app.add_subcommand(
      "adapt", "Adds low-rank adapters (LoRA) beside the linear layers of a model");
  command->add_option("MODEL", arguments->model, "The model (.onnx)")->required()->type_name("");
  command
      ->add_option("--targets", arguments->targets,
                   "Names of modules or weights, with * and ?; or all-linear: all layers but the "
                   "one that gives an output of the model")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->default_str(kAllLinear)
      ->type_name("PATTERN,..");
  command->add_option("--rank", arguments->rank, "Columns between an adapter's two products")
      ->capture_default_str()
      ->type_name("N");
  command
      ->add_option("--alpha", arguments->alpha,
                   "What adapters add is scaled by alpha / rank; default: twice the rank")
      ->check(CLI::PositiveNumber)
      ->type_name("X");
  command->add_option("--seed", arguments->seed, "Of the random values that adapters begin with")
      ->capture_default_str()
      ->type_name("N");
  CLI::Option* peft =
      command
          ->add_option("--from-peft", arguments->peft,
                       "A folder that PEFT has saved: with its layers, rank, scale and values")
          ->check([](const std::string& folder) {
            return std::string(folder.empty() ? "give the folder of an adapter" : "");
          })
          ->type_name("DIR");
  for (const char* name : {"--targets", "--rank", "--alpha", "--seed"}) {
    command->get_option(name)->excludes(peft);
  }
  addModulePrefixOption(*command, "--from-peft", &arguments->renamedModules);
  command->get_option("--rename-modules")->needs(peft);
  command->add_option("-o,--output", arguments->output, "The file to write")
      ->required()
      ->type_name("FILE");
  command->footer(
      "Examples:\n"
      "  oriel adapt model.onnx --rank 16 -o adapted.onnx\n"
      "  oriel adapt model.onnx --rank 8 --alpha 16 --targets q_proj,v_proj -o adapted.onnx\n"
      "  oriel adapt model.onnx --from-peft adapter/ -o adapted.onnx\n"
      "  oriel compile adapted.onnx --recipe lora.yaml --world 4 -o lora.oplan\n"
      "  oriel-run lora.oplan -n 4 --data shards/ --save-dir checkpoints/\n"
      "  oriel export lora.oplan --checkpoint checkpoints/ --to onnx --merge-adapters -o out.onnx");
  command->callback([=] { *run = [arguments] { return adapt(*arguments); }; });
}

}  // namespace oriel::driver
