// Trained adapters as PEFT reads them.
#ifndef ORIEL_DRIVER_PEFT_ADAPTER_H_
#define ORIEL_DRIVER_PEFT_ADAPTER_H_

#include <string>

#include "absl/status/status.h"
#include "frontend/adapters.h"
#include "runtime/train/checkpoint_reader.h"

namespace oriel::driver {

// Writes `folder`/adapter_model.safetensors and, once that is there, adapter_config.json: what
// PeftModel.from_pretrained(model, folder) loads, if modules are called as in the PyTorch model.
// Format: https://huggingface.co/docs/peft/developer_guides/checkpoint
absl::Status writePeftAdapter(const Adapters& adapters, const runtime::CheckpointReader& checkpoint,
                              const std::string& folder);

}  // namespace oriel::driver

#endif  // ORIEL_DRIVER_PEFT_ADAPTER_H_
