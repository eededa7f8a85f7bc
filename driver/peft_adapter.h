// Trained adapters as PEFT writes and reads them.
#ifndef ORIEL_DRIVER_PEFT_ADAPTER_H_
#define ORIEL_DRIVER_PEFT_ADAPTER_H_

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "frontend/adapters.h"
#include "runtime/train/checkpoint/checkpoint_reader.h"
#include "runtime/train/checkpoint/safetensors.h"

namespace oriel::driver {

// The beginning of modules' names in the file, and in the PyTorch model.
struct ModulePrefix {
  std::string from, to;

  // As the PyTorch model calls it.
  std::string renamed(const std::string& module) const;
};

// Of --rename-modules, "OLD=NEW"; an empty text renames nothing.
absl::StatusOr<ModulePrefix> parseModulePrefix(const std::string& text);
// `command` gets --rename-modules.
void addModulePrefixOption(CLI::App& command, const std::string& needs, std::string* text);

// What a folder that PEFT has saved holds.
struct PeftAdapter {
  // Floats of any type: A [rank, inputs], B [outputs, rank].
  struct Pair {
    runtime::SafetensorsView a, b;
  };

  std::string config;             // the file with the numbers below
  runtime::SafetensorsFile file;  // that the pairs are in
  int64_t rank = 0;
  double alpha = 0;  // adapters are scaled by alpha / rank
  std::map<std::string, Pair> modules;
};

// Errors: files that are missing, damaged or not of LoRA; what Oriel's adapters are not (DoRA,
// ranks by layer, of embeddings and convolutions), or what PEFT saves beside them (biases, whole
// modules).
absl::StatusOr<PeftAdapter> readPeftAdapter(const std::string& folder);

// Writes `folder`/adapter_model.safetensors and, once that is there, adapter_config.json: what
// PeftModel.from_pretrained(model, folder) loads, if modules are called as in the PyTorch model.
// An adapter that the checkpoint does not have, since the loss does not depend on it, is left out.
// Format: https://huggingface.co/docs/peft/developer_guides/checkpoint
//
// Errors: no adapter in the checkpoint; a prefix that no module has; another rank; one of a weight
// that something else reads, too, as PEFT would put it beside that; a folder of checkpoints.
absl::Status writePeftAdapter(const Adapters& adapters, const runtime::CheckpointReader& checkpoint,
                              const ModulePrefix& prefix, const std::string& folder);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PEFT_ADAPTER_H_
