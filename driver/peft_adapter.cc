#include "driver/peft_adapter.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "driver/console.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/safetensors.h"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

// As the PyTorch model calls it.
std::string renamed(const std::string& module, const ModulePrefix& prefix) {
  absl::string_view rest = module;
  return absl::ConsumePrefix(&rest, prefix.from) ? absl::StrCat(prefix.to, rest) : module;
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
    const std::string module = renamed(adapter.module, prefix);
    contents.modules.push_back(module);
    for (const auto& [found, kind] : {std::make_pair(a, "A"), std::make_pair(b, "B")}) {
      const std::string name = absl::StrCat("base_model.model.", module, ".lora_", kind, ".weight");
      contents.tensors.push_back(
          {{name, {runtime::DType::kF32, found->second.spec.shape}}, found->first});
    }
  }
  if (contents.tensors.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat(checkpoint.path(), " has none of the model's adapters"));
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

}  // namespace

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
  const std::string weights = (place / "adapter_model.safetensors").string();
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
  return runtime::WriteTextAtomically((place / "adapter_config.json").string(),
                                      configOf(adapters, contents.modules));
}

}  // namespace oriel::driver
