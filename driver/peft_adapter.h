// Trained adapters as PEFT reads them.
#ifndef ORIEL_DRIVER_PEFT_ADAPTER_H_
#define ORIEL_DRIVER_PEFT_ADAPTER_H_

#include <string>

#include "absl/status/status.h"
#include "frontend/adapters.h"
#include "runtime/train/checkpoint_reader.h"

namespace oriel::driver {

// The beginning of modules' names in the file, and in the PyTorch model.
struct ModulePrefix {
  std::string from, to;
};

// Writes `folder`/adapter_model.safetensors and, once that is there, adapter_config.json: what
// PeftModel.from_pretrained(model, folder) loads, if modules are called as in the PyTorch model.
// An adapter that the checkpoint does not have, since the loss does not depend on it, is left out.
// Format: https://huggingface.co/docs/peft/developer_guides/checkpoint
//
// Errors: no adapter in the checkpoint; another rank; one of a weight that something else reads,
// too, as PEFT would put it beside that; a folder of checkpoints.
absl::Status writePeftAdapter(const Adapters& adapters, const runtime::CheckpointReader& checkpoint,
                              const ModulePrefix& prefix, const std::string& folder);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PEFT_ADAPTER_H_
