// Writes the gradients of a step to a file, to be compared with another framework's.
#ifndef ORIEL_RUNTIME_TRAIN_GRADIENT_DUMP_H_
#define ORIEL_RUNTIME_TRAIN_GRADIENT_DUMP_H_

#include <string>

#include "absl/status/status.h"
#include "runtime/exec/executor.h"
#include "runtime/plan/plan.pb.h"

namespace oriel::runtime {

// To be called between the last backward and `update`. Writes, on rank 0, the gradient of the
// mean loss over the global batch for every trainable parameter: what the ranks have accumulated,
// pending sums added up, pieces joined and the sums of several grids (tied weights) added, divided
// by the global token count; not clipped. Collective over `world` (null for one rank). Safetensors,
// f32, by parameter name. One gradient at a time takes memory.
absl::Status DumpGradients(const plan::Plan& plan, Executor& executor, Communicator* world,
                           const std::string& path);

}  // namespace oriel::runtime

#endif  // ORIEL_RUNTIME_TRAIN_GRADIENT_DUMP_H_
