#include "driver/peft_adapter.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "driver/console.h"
#include "runtime/base/files.h"
#include "runtime/base/status.h"
#include "runtime/train/safetensors.h"

namespace oriel::driver {

namespace {

using Json = nlohmann::ordered_json;

std::string configOf(const Adapters& adapters) {
  std::vector<std::string> modules;
  for (const Adapter& adapter : adapters.all) modules.push_back(adapter.module);
  const Json config = {{"peft_type", "LORA"},      {"base_model_name_or_path", nullptr},
                       {"task_type", nullptr},     {"inference_mode", true},
                       {"r", adapters.rank},       {"lora_alpha", adapters.alpha},
                       {"lora_dropout", 0.0},      {"use_rslora", false},
                       {"bias", "none"},           {"fan_in_fan_out", false},
                       {"target_modules", modules}};
  return config.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

absl::Status writePeftAdapter(const Adapters& adapters, const runtime::CheckpointReader& checkpoint,
                              const std::string& folder) {
  std::vector<runtime::NamedSpec> specs;
  std::vector<std::string> parameters;
  for (const Adapter& adapter : adapters.all) {
    for (const std::string& name : {adapter.a, adapter.b}) {
      auto found = checkpoint.index().parameters.find(name);
      if (found == checkpoint.index().parameters.end()) {
        return absl::FailedPreconditionError(
            absl::StrCat(checkpoint.path(), " has no parameter '", name, "'"));
      }
      parameters.push_back(name);
      specs.push_back({absl::StrCat("base_model.model.", name),
                       {runtime::DType::kF32, found->second.spec.shape}});
    }
  }
  ORIEL_RETURN_IF_ERROR(runtime::MakeFolders(folder));
  const std::filesystem::path place(folder);
  const std::string weights = (place / "adapter_model.safetensors").string();
  progress("writing " + weights);
  ORIEL_ASSIGN_OR_RETURN(runtime::SafetensorsWriter writer,
                         runtime::SafetensorsWriter::Create(weights, specs, {{"format", "pt"}}));
  for (size_t i = 0; i < specs.size(); ++i) {
    const runtime::TensorSpec& spec = specs[i].spec;
    std::vector<float> values(spec.bytes() / sizeof(float));
    ORIEL_RETURN_IF_ERROR(checkpoint.ReadParameter(parameters[i], spec,
                                                   runtime::WholeBox(spec.shape), values.data()));
    ORIEL_RETURN_IF_ERROR(writer.Append(values.data(), spec.bytes()));
  }
  ORIEL_RETURN_IF_ERROR(writer.Finish());
  return runtime::WriteTextAtomically((place / "adapter_config.json").string(), configOf(adapters));
}

}  // namespace oriel::driver
