#include "driver/peft_adapter.h"

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "driver/command.h"
#include "driver/console.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/convert.h"
#include "runtime/train/json_util.h"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

constexpr char kConfigFile[] = "adapter_config.json";
constexpr char kWeightsFile[] = "adapter_model.safetensors";
constexpr char kModelPrefix[] = "base_model.model.";

// "base_model.model.MODULE.lora_A.weight", "A" or "B".
std::string tensorName(const std::string& module, char kind) {
  return absl::StrCat(kModelPrefix, module, ".lora_", std::string(1, kind), ".weight");
}

std::string configOf(const Adapters& adapters, const std::vector<std::string>& modules) {
  const Json config = {{"peft_type", "LORA"},      {"base_model_name_or_path", nullptr},
                       {"task_type", nullptr},     {"inference_mode", true},
                       {"r", adapters.rank},       {"lora_alpha", adapters.alpha},
                       {"lora_dropout", 0.0},      {"use_rslora", false},
                       {"bias", "none"},           {"fan_in_fan_out", false},
                       {"target_modules", modules}};
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// A tensor of the file to be written, and the parameter that it is.
struct Tensor {
  runtime::NamedSpec spec;
  std::string parameter;
};

struct Contents {
  std::vector<Tensor> tensors;
  std::vector<std::string> modules;
};

absl::StatusOr<Contents> contentsOf(const Adapters& adapters,
                                    const runtime::CheckpointReader& checkpoint,
                                    const ModulePrefix& prefix) {
  Contents contents;
  std::vector<std::string> unknown;  // modules
  bool isRenamed = false;
  const auto& parameters = checkpoint.index().parameters;
  for (const Adapter& adapter : adapters.all) {
    auto a = parameters.find(adapter.a), b = parameters.find(adapter.b);
    if (a == parameters.end() && b == parameters.end()) continue;
    auto hasRank = [&](auto found, size_t dim) {
      return found != parameters.end() && found->second.spec.shape.size() == 2 &&
             found->second.spec.shape[dim] == adapters.rank;
    };
    if (!hasRank(a, 0) || !hasRank(b, 1)) {
      return absl::FailedPreconditionError(
          absl::StrCat(checkpoint.path(), " does not have the adapter of '", adapter.weight,
                       "' with rank ", adapters.rank, ", as the model says"));
    }
    if (adapter.isShared) {
      return absl::FailedPreconditionError(absl::StrCat(
          "something else reads the weight '", adapter.weight,
          "', too (a tied embedding?): PEFT would put its adapter there as well; export --to onnx, "
          "or adapt other layers"));
    }
    if (adapter.module == adapter.weight) unknown.push_back(adapter.module);
    isRenamed |= absl::StartsWith(adapter.module, prefix.from);
    const std::string module = prefix.renamed(adapter.module);
    contents.modules.push_back(module);
    for (const auto& [found, kind] : {std::make_pair(a, 'A'), std::make_pair(b, 'B')}) {
      contents.tensors.push_back(
          {{tensorName(module, kind), {runtime::DType::kF32, found->second.spec.shape}},
           found->first});
    }
  }
  if (contents.tensors.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint.path(), " has none of the model's adapters"));
  }
  if (!isRenamed) {
    return absl::InvalidArgumentError(
        absl::StrCat("--rename-modules: no module's name begins with '", prefix.from,
                     "'; they are called as '", contents.modules.front(), "'"));
  }
  if (!unknown.empty()) {
    printWarning(absl::StrCat(
        "the model's file does not say which module '", unknown.front(), "'",
        unknown.size() > 1 ? absl::StrCat(" and ", unknown.size() - 1, " more weights belong to")
                           : " belongs to",
        ": PEFT will not find it by that name; export with optimize=False, or rename keys"));
  }
  return contents;
}

// Of a number, a text or a switch that changes what adapters compute.
absl::Status unsupported(const std::string& path, const char* key, const Json& value) {
  return absl::InvalidArgumentError(absl::StrCat(
      path, ": '", key, "' is ", value.dump(-1, ' ', false, Json::error_handler_t::replace),
      ", which Oriel's adapters can't be: merge it into the model before the export "
      "(PEFT's merge_and_unload), and begin with new ones"));
}

absl::Status readConfig(const std::string& path, PeftAdapter* adapter) {
  ORIEL_ASSIGN_OR_RETURN(const std::string text, runtime::ReadText(path));
  const auto config = runtime::ParseJsonObject<Json>(text.data(), text.data() + text.size());
  if (!config || runtime::AsText(runtime::Member(*config, "peft_type")) != "LORA") {
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": is not the configuration of an adapter of kind LORA, as PEFT saves"));
  }
  const auto rank = runtime::AsSize(runtime::Member(*config, "r"));
  const Json* alpha = runtime::Member(*config, "lora_alpha");
  if (!rank || *rank < 1 || alpha == nullptr || !alpha->is_number()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": needs numbers for r and lora_alpha"));
  }
  for (const char* key : {"use_dora", "lora_bias", "rank_pattern", "alpha_pattern",
                          "layer_replication", "alora_invocation_tokens"}) {
    const Json* value = runtime::Member(*config, key);
    const bool isOff = value == nullptr || value->is_null() || *value == false ||
                       (value->is_structured() && value->empty());
    if (!isOff) return unsupported(path, key, *value);
  }
  // Others take what the adapter begins with off the weight beside it, when they are loaded again.
  const Json* init = runtime::Member(*config, "init_lora_weights");
  const bool keepsWeights = init == nullptr || init->is_null() || init->is_boolean() ||
                            *init == "gaussian" || *init == "eva" || *init == "orthogonal";
  if (!keepsWeights) return unsupported(path, "init_lora_weights", *init);
  adapter->rank = *rank;
  adapter->alpha = alpha->get<double>();
  const Json* isStabilized = runtime::Member(*config, "use_rslora");  // arXiv 2312.03732
  if (isStabilized != nullptr && *isStabilized == true) {
    adapter->alpha *= std::sqrt(static_cast<double>(*rank));
  }
  return absl::OkStatus();
}

// The module and the kind, 'A' or 'B', of a tensor's name.
std::optional<std::pair<std::string, char>> parseTensorName(absl::string_view name) {
  if (!absl::ConsumePrefix(&name, kModelPrefix)) return std::nullopt;
  for (const char kind : {'A', 'B'}) {
    absl::string_view module = name;
    if (absl::ConsumeSuffix(&module, absl::StrCat(".lora_", std::string(1, kind), ".weight"))) {
      return std::make_pair(std::string(module), kind);
    }
  }
  return std::nullopt;
}

absl::Status readPairs(PeftAdapter* adapter) {
  const std::string& path = adapter->file.path();
  for (const auto& [name, view] : adapter->file.tensors()) {
    const auto parsed = parseTensorName(name);
    if (!parsed) {
      return absl::InvalidArgumentError(
          absl::StrCat(path, ": '", name, "' is not called as the adapter of a linear layer (",
                       tensorName("MODULE", 'A'),
                       "), and would be lost: of modules that are saved whole, biases and "
                       "embeddings Oriel has the model's own"));
    }
    const auto& [module, kind] = *parsed;
    const runtime::TensorSpec& spec = view.spec;
    if (spec.shape.size() != 2 || spec.shape[kind == 'A' ? 0 : 1] != adapter->rank ||
        !runtime::IsConvertible(spec.dtype, runtime::DType::kF32)) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": '", name, "' is ", spec.ToString(),
                                                     ", no matrix of floats with the rank that ",
                                                     kConfigFile, " says, ", adapter->rank));
    }
    PeftAdapter::Pair& pair = adapter->modules[module];
    (kind == 'A' ? pair.a : pair.b) = view;
  }
  for (const auto& [module, pair] : adapter->modules) {
    if (pair.a.data != nullptr && pair.b.data != nullptr) continue;
    return absl::InvalidArgumentError(
        absl::StrCat(path, ": has one of two matrices for '", module, "'; is it incomplete?"));
  }
  if (adapter->modules.empty()) {
    return absl::InvalidArgumentError(absl::StrCat(path, ": has no adapters"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string ModulePrefix::renamed(const std::string& module) const {
  absl::string_view rest = module;
  return absl::ConsumePrefix(&rest, from) ? absl::StrCat(to, rest) : module;
}

absl::StatusOr<ModulePrefix> parseModulePrefix(const std::string& text) {
  const size_t equals = text.find('=');
  if (text.empty()) return ModulePrefix();
  if (equals == std::string::npos) {
    return usageError("--rename-modules: write OLD=NEW, or OLD= to leave it out");
  }
  return ModulePrefix{text.substr(0, equals), text.substr(equals + 1)};
}

void addModulePrefixOption(CLI::App& command, const std::string& needs, std::string* text) {
  command
      .add_option("--rename-modules", *text,
                  absl::StrCat("With ", needs,
                               ", how the PyTorch model begins names that the file begins so; "
                               "'wrapper.=' leaves out a wrapper's"))
      ->type_name("OLD=NEW");
}

absl::StatusOr<PeftAdapter> readPeftAdapter(const std::string& folder) {
  PeftAdapter adapter;
  const std::filesystem::path place(folder);
  adapter.config = (place / kConfigFile).string();
  ORIEL_RETURN_IF_ERROR(readConfig(adapter.config, &adapter));
  const std::string weights = (place / kWeightsFile).string();
  std::error_code error;
  if (!std::filesystem::exists(weights, error)) {
    return absl::NotFoundError(absl::StrCat(
        weights, ": there is no such file; PEFT writes it with safe_serialization, its default"));
  }
  ORIEL_ASSIGN_OR_RETURN(adapter.file, runtime::SafetensorsFile::Open(weights));
  ORIEL_RETURN_IF_ERROR(readPairs(&adapter));
  return adapter;
}

absl::Status writePeftAdapter(const Adapters& adapters, const runtime::CheckpointReader& checkpoint,
                              const ModulePrefix& prefix, const std::string& folder) {
  ORIEL_ASSIGN_OR_RETURN(const Contents contents, contentsOf(adapters, checkpoint, prefix));
  std::error_code code;
  const std::filesystem::path steps(checkpoint.path());
  for (const std::filesystem::path& read : {steps, steps.parent_path()}) {
    if (!std::filesystem::equivalent(read, folder, code)) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("can't write '", folder, "': the checkpoint is there; give another folder"));
  }
  std::vector<runtime::NamedSpec> specs;
  for (const Tensor& tensor : contents.tensors) specs.push_back(tensor.spec);
  ORIEL_RETURN_IF_ERROR(runtime::MakeFolders(folder));
  const std::filesystem::path place(folder);
  const std::string weights = (place / kWeightsFile).string();
  progress("writing " + weights);
  ORIEL_ASSIGN_OR_RETURN(runtime::SafetensorsWriter writer,
                         runtime::SafetensorsWriter::Create(weights, specs, {{"format", "pt"}}));
  for (const Tensor& tensor : contents.tensors) {
    const runtime::TensorSpec& spec = tensor.spec.spec;
    std::vector<float> values(spec.bytes() / sizeof(float));
    ORIEL_RETURN_IF_ERROR(checkpoint.ReadParameter(tensor.parameter, spec,
                                                   runtime::WholeBox(spec.shape), values.data()));
    ORIEL_RETURN_IF_ERROR(writer.Append(values.data(), spec.bytes()));
  }
  ORIEL_RETURN_IF_ERROR(writer.Finish());
  return runtime::WriteTextAtomically((place / kConfigFile).string(),
                                      configOf(adapters, contents.modules));
}

}  // namespace oriel::driver
